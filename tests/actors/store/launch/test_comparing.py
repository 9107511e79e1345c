"""What a step writes of what is wanted, and what it leaves as somebody else has it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors import catalogue, checks
from tolsey.actors.store.launch.executors.work import LaunchWork, LookAtAll, ReadShop, compare
from tolsey.actors.store.launch.texts import standard_texts

ABOUT = Edit(kind=edits.CORE_PAGE, ids=("about",), wanted={"title": "About", "body": "<p>We.</p>"})
OURS: dict[str, Any] = {"id": "1", "title": "About", "body": "<p>We.</p>", "isPublished": True}
WORK = LaunchWork(
    store_id="store_1",
    launch_id="launch_1",
    milestone="storefront.pages",
    began_at=datetime(2026, 7, 1, tzinfo=UTC),
    spec={"businessName": "Loom", "country": "US"},
    given_kit={},
    kit={},
    results={},
    written={},
    scopes=(),
    decided=frozenset(),
    theme_url=None,
    tax_lines=None,
)


def missing(work: LaunchWork, found: Mapping[str, Any] | None, edit: Edit = ABOUT) -> list[Edit]:
    """Say what is written where this stands."""
    comparing = compare(work, [edit])
    next(comparing)
    try:
        comparing.send([{"found": found}])
    except StopIteration as end:
        return list(end.value.missing)
    raise AssertionError


def written(work: LaunchWork, edit: Edit = ABOUT) -> LaunchWork:
    """Have a page written, and its milestone done."""
    version = edits.version_of(edit, {"found": OURS})
    known = replace(work, written={"page/about": version})
    return replace(known, results={"storefront.pages": {"wrote": known.wrote([edit])}})


def test_what_is_not_there_is_made_once_and_never_again_once_somebody_took_it_away() -> None:
    (made,) = missing(WORK, None)
    assert made.version == edits.version_of(ABOUT, {"found": None})
    assert missing(written(WORK), OURS) == []
    assert missing(written(WORK), None) == []


def test_what_others_made_or_changed_stays_theirs() -> None:
    theirs = {**OURS, "body": "<p>Since 1890.</p>"}
    assert missing(WORK, theirs) == []
    assert missing(written(WORK), theirs) == []


def test_what_the_form_wants_otherwise_by_now_is_written_again_while_nobody_else_changed_it() -> (
    None
):
    other = replace(ABOUT, wanted={"title": "About", "body": "<p>We weave.</p>"})
    assert [one.wanted for one in missing(written(WORK), OURS, other)] == [other.wanted]
    assert missing(written(WORK), {**OURS, "title": "Us"}, other) == []


def test_products_are_named_for_their_addresses_no_two_alike() -> None:
    titles = ["Décor: Cushion", "Blanket", "blanket", "毛布", "Blanket 2"]
    found = catalogue.handles([{"title": one} for one in titles])
    assert found == ["decor-cushion", "blanket", "blanket-2", "product-4", "blanket-2-2"]


def test_texts_leave_out_what_the_form_does_not_say() -> None:
    bare = standard_texts.policies(WORK.spec)
    assert "LEGAL_NOTICE" not in bare
    assert "LEGAL_NOTICE" in standard_texts.policies({**WORK.spec, "country": "DE"})
    shown = [
        standard_texts.html(one)
        for one in (*bare.values(), *standard_texts.pages(WORK.spec, {}).values())
    ]
    assert "None" not in "".join(shown)
    assert "<h2>Returns</h2>" in shown[-1]
    assert "<h2>Where do you ship to?</h2>" not in "".join(shown)
    described = standard_texts.product(WORK.spec, {"title": "A", "description": "<b>"})
    assert standard_texts.html(described) == "<p>&lt;b&gt;</p>"
    about = standard_texts.seo(WORK.spec, "Blanket", "word " * 60)["description"]
    assert (len(about) <= 160, about[-1]) == (True, "…")


SHOP: dict[str, Any] = {
    "contactEmail": "a@b.example",
    "plan": {"publicDisplayName": "Basic", "partnerDevelopment": False},
    "primaryDomain": {"host": "loom.example", "sslEnabled": True},
    "shopPolicies": [
        {"type": one, "body": "Text."}
        for one in (
            "REFUND_POLICY",
            "PRIVACY_POLICY",
            "TERMS_OF_SERVICE",
            "SHIPPING_POLICY",
            "CONTACT_INFORMATION",
        )
    ],
}
BLANKET: dict[str, Any] = {
    "title": "Blanket",
    "featuredMedia": {"id": "1"},
    "seo": {"title": "Blanket", "description": "Of wool."},
    "variants": {
        "nodes": [
            {
                "price": "120.00",
                "inventoryPolicy": "DENY",
                "inventoryQuantity": 3,
                "inventoryItem": {"tracked": True},
            }
        ]
    },
}
READY = checks.Seen(
    state={
        "shop": SHOP,
        "published": {"count": 1},
        "themes": {"nodes": [{"processing": False}]},
        "shopifyPaymentsAccount": {"activated": True},
    },
    products=[BLANKET],
    menus=[
        {"handle": "main-menu", "items": [{"type": "FRONTPAGE"}]},
        {"handle": "footer", "items": [{"type": "SHOP_POLICY"}]},
    ],
    texts=["Of wool."],
    favicon=True,
    orders={"US": {"availableShippingRates": [{}], "taxLines": [{}]}},
    home="US",
    pages={"/": 200},
    has_password=False,
    consent_missing=[],
    is_paid_elsewhere=False,
    was_taxed=True,
)
EMPTY: dict[str, Any] = {"availableShippingRates": [], "taxLines": []}


def test_no_tax_at_home_keeps_nobody_from_opening_who_confirmed_their_taxes_so() -> None:
    bare = {"US": {**EMPTY, "availableShippingRates": [{}]}}
    found = checks.judged(replace(READY, orders=bare, was_taxed=False))
    assert found["tax.lines_domestic"][0] == "unknown"
    assert checks.judged(replace(READY, orders=bare))["tax.lines_domestic"][0] == "red"


def test_a_store_that_is_ready_has_24_green_checks() -> None:
    found = checks.judged(READY)
    assert len(found) == 24
    assert {verdict for verdict, _ in found.values()} == {"green"}


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"products": [{**BLANKET, "featuredMedia": None}]}, ["catalog.image_every_product"]),
        (
            {"products": [{**BLANKET, "seo": {"title": "x", "description": None}}]},
            ["seo.title_description"],
        ),
        ({"menus": []}, ["menu.main_not_empty", "menu.footer_policies"]),
        ({"texts": ["Lorem ipsum dolor"]}, ["pages.no_placeholder_text"]),
        ({"favicon": False}, ["theme.favicon"]),
        ({"orders": {**READY.orders, "CA": EMPTY}}, ["shipping.rate_every_country"]),
        ({"orders": {"US": {**EMPTY, "availableShippingRates": [{}]}}}, ["tax.lines_domestic"]),
        ({"pages": {"/": 200, "/pages/contact": 404}}, ["links.no_4xx_5xx"]),
        ({"consent_missing": ["DE"]}, ["consent.policy_for_markets"]),
        ({"state": {**READY.state, "published": {"count": 0}}}, ["catalog.published_count"]),
        (
            {"state": {**READY.state, "shop": {**SHOP, "shopPolicies": SHOP["shopPolicies"][1:]}}},
            ["policy.refund"],
        ),
        (
            {"state": {**READY.state, "shopifyPaymentsAccount": {"activated": False}}},
            ["payments.active"],
        ),
    ],
)
def test_what_is_missing_is_red_and_says_what_to_do(
    changed: dict[str, Any], names: list[str]
) -> None:
    found = checks.judged(replace(READY, **changed))
    assert [one.partition(":")[0] for one in checks.red(found)] == names


def test_what_could_not_be_looked_at_is_unknown_and_fails_nothing() -> None:
    state = {"shop": {**SHOP, "shopPolicies": None}}
    nothing = replace(
        READY,
        state=state,
        products=None,
        menus=None,
        texts=None,
        favicon=None,
        orders={},
        pages={},
        consent_missing=None,
    )
    found = checks.judged(nothing)
    assert list(checks.red(found)) == []
    assert sum(verdict == "unknown" for verdict, _ in found.values()) == 20


def test_a_password_that_does_not_open_the_storefront_is_told_apart_from_none() -> None:
    for has_password, why in ((False, "the form has no password"), (True, "doesn't open")):
        closed = replace(READY, pages={}, has_password=has_password)
        verdict, said = checks.judged(closed)["links.no_4xx_5xx"]
        assert (verdict, why in said) == ("unknown", True)


def published(decided: frozenset[str]) -> list[str]:
    """Say which drafts are put on sale, of a catalogue with one draft."""
    results: dict[str, Any] = {
        "foundation.audit": {"onlinePublicationId": "gid://shopify/Publication/1"},
        "catalog.products": {"products": [{"id": "gid://shopify/Product/7"}]},
        "catalog.collections": {"collections": []},
    }
    taken = catalogue.publish(replace(WORK, results=results, decided=decided))
    next(taken)
    try:
        looked = taken.send([{"status": "DRAFT"}])
        assert isinstance(looked, LookAtAll)
        taken.send([{"found": {"id": "7", "publishedOnPublication": False}} for _ in looked.edits])
    except StopIteration as end:
        return [edit.ids[0] for edit in end.value.edits if edit.kind == edits.PRODUCT]
    return []


def test_drafts_are_put_on_sale_by_the_word_of_a_person_alone() -> None:
    assert published(frozenset({"catalog.review"})) == ["7"]
    assert published(frozenset()) == []


def test_the_catalogue_is_published_whatever_tags_its_merchant_gives_it_since() -> None:
    results: dict[str, Any] = {
        "foundation.audit": {"onlinePublicationId": "gid://shopify/Publication/1"},
        "catalog.products": {"products": [{"id": "gid://shopify/Product/7"}]},
        "catalog.collections": {"collections": []},
    }
    taken = catalogue.publish(replace(WORK, milestone="catalog.publish", results=results))
    next(taken)
    taken.send([{"status": "ACTIVE"}])
    counted = taken.send([{"found": {"publishedOnPublication": True}}])
    assert isinstance(counted, ReadShop)
    assert "tag" not in counted.variables["onSale"]
