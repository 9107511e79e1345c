"""The catalogue: products as drafts, their opening stock, collections, and their publication."""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.editing.kinds.kind import folded
from tolsey.actors.store.launch.executors.work import (
    MOST_AT_ONCE,
    Finished,
    LaunchWork,
    LookAtAll,
    ReadShop,
    Taken,
    WriteShop,
    WriteTexts,
    compare,
    number,
    planned,
)
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.texts import standard_texts
from tolsey.actors.store.launch.texts.drafting import TextBrief
from tolsey.storage.records.money.currencies import in_units, to_minor

FEATURED: Final = "featured"
ON_SALE: Final = "status:active published_status:published"
COUNT_PUBLISHED: Final = """
query CountPublished($onSale: String!) { productsCount(query: $onSale) { count } }
"""
NO_PRODUCTS: Final = MilestoneStop(
    kind="permanent",
    reason="missing_input",
    detail="The onboarding form has no products. Add one, then run this again.",
)
NO_LOCATION: Final = MilestoneStop(
    kind="permanent",
    reason="no_location",
    detail="The shop has no active location for its inventory. Add one, then run this again.",
)
NO_CHANNEL: Final = MilestoneStop(
    kind="permanent",
    reason="no_online_store",
    detail="The shop has no Online Store sales channel. Add it under Sales channels, then run this"
    " again.",
)
NOT_SEEN_YET: Final = (
    "Shopify doesn't list all published products yet. Run this again in a few minutes."
)


def handles(products: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name each product for its address, no two alike."""
    found = list[str]()
    for place, one in enumerate(products, 1):
        handle = handle_of(one["title"]) or f"product-{place}"
        others = (f"{handle}-{number}" for number in itertools.count(2))
        found.append(
            handle if handle not in found else next(other for other in others if other not in found)
        )
    return found


def handle_of(title: str) -> str:
    """Write a title as a part of an address."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:100]


def products(work: LaunchWork) -> Taken:
    """Make a draft of each product of the form, at the merchant's prices, under the launch's own tag."""
    form = work.spec.get("products") or ()
    if not form:
        return NO_PRODUCTS
    named = dict(zip(handles(form), form, strict=True))
    brief = _copy(work, named)
    drafted = work.drafted(brief)
    if drafted is None:
        return WriteTexts(brief)
    wanted = [
        _product(
            work, one, handle, drafted.texts.get(handle) or standard_texts.product(work.spec, one)
        )
        for handle, one in named.items()
    ]
    found = yield from compare(work, wanted)
    if found.missing:
        return found.write
    made = [
        {
            "handle": edit.ids[0],
            "title": edit.wanted["title"],
            "id": thing["id"],
            "variants": thing["variants"],
        }
        for edit, thing in zip(wanted, found.things, strict=True)
        # What the shop had before under the same handle is the merchant's own.
        if thing is not None and work.launch_id.casefold() in folded(thing["tags"])
    ]
    return Finished(
        result={
            "products": made,
            "kept": sorted({edit.ids[0] for edit in wanted} - {one["handle"] for one in made}),
            "texts": drafted.told(),
            "wrote": work.wrote(wanted),
        },
        facts={"catalog.product_ids": " ".join(number(one["id"]) for one in made)},
    )


def _copy(work: LaunchWork, named: Mapping[str, Mapping[str, Any]]) -> TextBrief:
    """Say what a model writes of products: the merchant's own words stand."""
    bare = {handle: one for handle, one in named.items() if not one.get("description")}
    return TextBrief(
        facts=standard_texts.facts(work.spec),
        voice=work.kit.get("voice"),
        drafts={handle: standard_texts.product(work.spec, one) for handle, one in bare.items()},
    )


def _product(
    work: LaunchWork, form: Mapping[str, Any], handle: str, described: standard_texts.Text
) -> Edit:
    currency = work.results["foundation.audit"]["shop"]["currency"]
    options = form.get("options") or []
    variants = [_variant(form, one, currency) for one in form.get("variants") or [{}]]
    pictures = []
    if form.get("imageUrl"):
        source = form["imageUrl"]
        pictures = [{"originalSource": source, "alt": form["title"], "contentType": "IMAGE"}]
    wanted = {
        "title": form["title"],
        "descriptionHtml": standard_texts.html(described),
        "productType": form.get("type") or "",
        "vendor": work.spec["businessName"],
        "status": "DRAFT",
        "tags": sorted({work.launch_id, *form.get("tags", ())}),
        "prices": [one["price"] for one in variants],
        "extra": {"options": options, "variants": variants, "files": pictures},
    }
    return Edit(kind=edits.NEW_PRODUCT, ids=(handle,), wanted=wanted)


def _variant(form: Mapping[str, Any], one: Mapping[str, Any], currency: str) -> dict[str, Any]:
    """Take a variant's own values, and those of its product for the rest."""
    cost = one.get("cost") or form.get("cost")
    return {
        "values": one.get("values") or [],
        "price": _amount(one.get("price") or form["price"], currency),
        "cost": None if cost is None else _amount(cost, currency),
        "sku": one.get("sku") or form.get("sku"),
        "tracked": _stock(form, one) is not None,
    }


def _stock(form: Mapping[str, Any], one: Mapping[str, Any]) -> int | None:
    stock: int | None = one.get("stock", form.get("stock"))
    return stock


def _amount(written: str, currency: str) -> str:
    """Write an amount with the digits that its currency has."""
    return f"{in_units(to_minor(Decimal(written), currency), currency):f}"


def inventory(work: LaunchWork) -> Taken:
    """Set the opening stock that the form names; what is counted already stays."""
    location = work.results["operations.location"].get("locationId")
    if location is None:
        return NO_LOCATION
    wanted = [
        Edit(
            kind=edits.OPENING_STOCK,
            ids=(item, number(location)),
            wanted={"available": stock, "extra": {"from": 0}},
        )
        for item, stock in _opening(work)
    ]
    found = yield from compare(work, wanted, may_set=lambda level: level["available"] == 0)
    if found.missing:
        return found.write
    return Finished(result={"items": len(wanted), "locationId": location})


def _opening(work: LaunchWork) -> Iterator[tuple[str, int]]:
    form = work.spec.get("products") or ()
    told = dict(zip(handles(form), form, strict=True))
    for made in work.results["catalog.products"].get("products", ()):
        product = told.get(made["handle"], {})
        variants = product.get("variants") or [{}]
        for one, known in zip(variants, made["variants"], strict=False):
            stock = _stock(product, one)
            if stock is not None:
                yield known["item"], stock


def collections(work: LaunchWork) -> Taken:
    """Make a collection of all products of the launch, and one of each type."""
    kinds = sorted({one["type"] for one in work.spec.get("products") or () if one.get("type")})
    by_type = {handle_of(kind) or f"type-{place}": kind for place, kind in enumerate(kinds, 1)}
    wanted = [_collection(work, FEATURED, "Featured", ("productTag", work.launch_id))]
    wanted += [
        _collection(work, handle, kind[:1].upper() + kind[1:], ("productType", kind))
        for handle, kind in by_type.items()
        if handle != FEATURED
    ]
    found = yield from compare(work, wanted)
    if found.missing:
        return found.write
    made = [
        {"handle": edit.ids[0], "title": thing["title"], "id": thing["id"]}
        for edit, thing in zip(wanted, found.things, strict=True)
        if thing is not None
    ]
    ids = " ".join(number(one["id"]) for one in made)
    return Finished(result={"collections": made}, facts={"catalog.collection_ids": ids})


def _collection(work: LaunchWork, handle: str, title: str, condition: tuple[str, str]) -> Edit:
    wanted = {
        "title": title,
        "descriptionHtml": standard_texts.html(standard_texts.collection(work.spec, title)),
        "extra": {"condition": list(condition)},
    }
    return Edit(kind=edits.NEW_COLLECTION, ids=(handle,), wanted=wanted)


def publish(work: LaunchWork) -> Taken:
    """Put what was approved on sale, and into the online store with its collections."""
    channel = work.results["foundation.audit"].get("onlinePublicationId")
    if channel is None:
        return NO_CHANNEL
    ids = [number(one["id"]) for one in work.results["catalog.products"].get("products", ())]
    sold = [Edit(kind=edits.PRODUCT, ids=(id,), wanted={"status": "ACTIVE"}) for id in ids]
    now = yield LookAtAll(sold)
    # A person who marks the review done approves every draft; found done by a look, it approves those that
    # the merchant put on sale themselves (rules/launch#executors).
    is_all = "catalog.review" in work.decided
    active, drafts = list[str](), list[tuple[Edit, Mapping[str, Any]]]()
    for id, edit, facts in zip(ids, sold, now, strict=True):
        if facts is not None and facts["status"] == "ACTIVE":
            active.append(id)
        # What we put on sale and the merchant took back is theirs.
        elif facts is not None and facts["status"] == "DRAFT" and not work.was_written(edit):
            drafts.append((edit, facts))
    sold_now = planned(drafts) if is_all else WriteShop(())
    approved = [edit.ids[0] for edit in sold_now.edits]
    things = [("Product", id) for id in (*active, *approved)] + [
        ("Collection", number(one["id"]))
        for one in work.results["catalog.collections"].get("collections", ())
    ]
    seen = [
        Edit(
            kind=edits.PUBLISHED,
            ids=(kind, id, number(channel)),
            wanted={"publishedOnPublication": True},
        )
        for kind, id in things
    ]
    found = yield from compare(work, seen, may_set=lambda _: True)
    if sold_now.edits or found.missing:
        some = [*sold_now.edits, *found.missing][:MOST_AT_ONCE]
        return WriteShop(some, {**sold_now.before, **found.write.before})
    published = sum(
        one is not None and one["publishedOnPublication"] for one in found.things[: len(active)]
    )
    # Of all that is on sale: tags are the merchant's to change.
    counted = yield ReadShop(document=COUNT_PUBLISHED, variables={"onSale": ON_SALE})
    if counted["productsCount"]["count"] < published:
        return work.processing(NOT_SEEN_YET)
    return Finished(result={"approved": len(active), "published": published})
