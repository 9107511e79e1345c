"""The storefront: its core pages, its menus, and its policies."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    ReadShop,
    Taken,
    WriteTexts,
    compare,
    number,
)
from tolsey.actors.store.launch.texts import standard_texts
from tolsey.actors.store.launch.texts.drafting import TextBrief

WRITTEN_PAGES: Final = ("about", "faq", "shipping-returns")
WRITTEN_POLICIES: Final = (
    "REFUND_POLICY",
    "PRIVACY_POLICY",
    "TERMS_OF_SERVICE",
    "SHIPPING_POLICY",
)
"""What a model puts in the voice of the brand; the rest is made of addresses."""
POLICY_IDS: Final = "query PolicyIds { shop { shopPolicies { id type title } } }"
MOST_IN_MENU: Final = 5
"""So many collections are named in the main menu."""
AS_SHIPPED: Final = frozenset({"FRONTPAGE", "CATALOG", "SEARCH"})
"""What the entries of a new shop's menus lead to, and to its contact page."""


def pages(work: LaunchWork) -> Taken:
    """Write the core pages that are not there."""
    templates = standard_texts.pages(work.spec, work.kit)
    drafted = work.drafted(_brief(work, templates, WRITTEN_PAGES))
    if drafted is None:
        return WriteTexts(_brief(work, templates, WRITTEN_PAGES))
    bodies = {**templates, **drafted.texts}
    wanted = [
        Edit(kind=edits.CORE_PAGE, ids=(handle,), wanted=_page_of(handle, title, bodies[handle]))
        for handle, title in standard_texts.page_titles(work.spec).items()
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
    return Finished(
        result={"pages": made, "texts": drafted.told(), "wrote": work.wrote(wanted)},
        facts={"storefront.page_ids": ids},
    )


def _page_of(handle: str, title: str, text: standard_texts.Text) -> dict[str, Any]:
    page: dict[str, Any] = {"title": title, "body": standard_texts.html(text)}
    return page | ({"extra": {"templateSuffix": "contact"}} if handle == "contact" else {})


def _brief(
    work: LaunchWork, drafts: Mapping[str, standard_texts.Text], names: Sequence[str]
) -> TextBrief:
    """Say what of the storefront a model writes: what is made of addresses alone stays as it is."""
    return TextBrief(
        facts=standard_texts.facts(work.spec),
        voice=work.kit.get("voice"),
        drafts={name: drafts[name] for name in names},
    )


def policies(work: LaunchWork) -> Taken:
    """Draft the policies that the shop has not; one that the merchant wrote or changed is theirs."""
    templates = standard_texts.policies(work.spec)
    drafted = work.drafted(_brief(work, templates, WRITTEN_POLICIES))
    if drafted is None:
        return WriteTexts(_brief(work, templates, WRITTEN_POLICIES))
    wanted = [
        Edit(kind=edits.POLICY, ids=(kind,), wanted={"body": standard_texts.html(text)})
        for kind, text in {**templates, **drafted.texts}.items()
    ]
    found = yield from compare(work, wanted)
    if found.missing:
        return found.write
    digests = {
        edit.ids[0]: hashlib.sha256(thing["body"].encode()).hexdigest()[:16]
        for edit, facts, thing in zip(wanted, found.facts, found.things, strict=True)
        if thing is not None
        and facts is not None
        and work.was_written(edit)
        and not work.is_overwritten(edit, facts)
    }
    told = " ".join(f"{kind}:{digest}" for kind, digest in sorted(digests.items()))
    return Finished(
        result={
            "drafted": sorted(digests),
            "kept": sorted(templates.keys() - digests.keys()),
            "texts": drafted.told(),
            "wrote": work.wrote(wanted),
        },
        facts={"legal.policy_hashes": told} if told else {},
    )


def navigation(work: LaunchWork) -> Taken:
    """Set both menus while they are as the platform ships them or as we wrote them."""
    pages = {one["handle"]: one for one in work.results["storefront.pages"].get("pages", ())}
    known = yield ReadShop(document=POLICY_IDS)
    main = [_entry("Home", "FRONTPAGE", url="/")]
    main += [
        _entry(one["title"], "COLLECTION", one["id"])
        for one in work.results["catalog.collections"].get("collections", ())[:MOST_IN_MENU]
    ]
    main += [_page(pages, handle) for handle in ("about", "contact") if handle in pages]
    footer = [_page(pages, handle) for handle in ("faq", "shipping-returns") if handle in pages]
    footer += [
        _entry(one["title"], "SHOP_POLICY", one["id"]) for one in known["shop"]["shopPolicies"]
    ]
    menus = {"main-menu": ("Main menu", main), "footer": ("Footer menu", footer)}
    wanted = [
        Edit(kind=edits.MENU, ids=(handle,), wanted={"title": title, "items": items})
        for handle, (title, items) in menus.items()
    ]
    found = yield from compare(work, wanted, may_set=_is_as_shipped)
    if found.missing:
        return found.write
    kept = [edit.ids[0] for edit in wanted if not work.was_written(edit)]
    return Finished(
        result={
            "menus": {edit.ids[0]: len(edit.wanted["items"]) for edit in wanted},
            "kept": kept,
            "wrote": work.wrote(wanted),
        }
    )


def _page(pages: Mapping[str, Any], handle: str) -> dict[str, Any]:
    return _entry(pages[handle]["title"], "PAGE", pages[handle]["id"])


def _entry(title: str, kind: str, id: str | None = None, url: str | None = None) -> dict[str, Any]:
    return {"title": title, "type": kind, "resourceId": id, "url": url}


def _is_as_shipped(menu: Mapping[str, Any]) -> bool:
    """Tell whether a menu is as a new shop has it: nobody chose what stands in it."""
    items: Sequence[Mapping[str, Any]] = menu["items"]
    return all(
        one["type"] in AS_SHIPPED or (one["type"], one["title"]) == ("PAGE", "Contact")
        for one in items
    )
