"""What helps a shop to be found and its buyers to come back."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch.executors.catalogue import handles
from tolsey.actors.store.launch.executors.work import (
    Finished,
    LaunchWork,
    ReadShop,
    Taken,
    compare,
    number,
)
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.texts import standard_texts

PICTURES: Final = """
query Pictures($ids: [ID!]!) {
  nodes(ids: $ids) { ... on Product { id title featuredMedia { ... on MediaImage { id alt } } } }
}
"""
MOST_READ: Final = 100
WELCOME: Final = "WELCOME10"
PERCENT: Final = 10
WELCOME_LIFE: Final = timedelta(days=90)
CONSENTING: Final = [
    "AT",
    "BE",
    "BG",
    "CH",
    "CY",
    "CZ",
    "DE",
    "DK",
    "EE",
    "ES",
    "FI",
    "FR",
    "GB",
    "GR",
    "HR",
    "HU",
    "IE",
    "IS",
    "IT",
    "LI",
    "LT",
    "LU",
    "LV",
    "MT",
    "NL",
    "NO",
    "PL",
    "PT",
    "RO",
    "SE",
    "SI",
    "SK",
]
"""Where buyers are asked before anything is kept about them (Regulation (EU) 2016/679, and the like)."""
OPTING_OUT: Final = [
    "CA",
    "CO",
    "CT",
    "DE",
    "FL",
    "IA",
    "IN",
    "KY",
    "MD",
    "MN",
    "MT",
    "NE",
    "NH",
    "NJ",
    "OR",
    "RI",
    "TN",
    "TX",
    "UT",
    "VA",
]
"""The states of the US where buyers can forbid the sale of what is known about them."""
SEGMENTS: Final = {
    "Subscribers without an order": (
        "email_subscription_status = 'SUBSCRIBED' AND number_of_orders = 0"
    ),
    "First-time buyers": "number_of_orders = 1",
    "Lapsed for 90 days": "number_of_orders >= 1 AND last_order_date < -90d",
}


def seo(work: LaunchWork) -> Taken:
    """Fill what search engines show where it is empty, name pictures, and lead old addresses on."""
    wanted = [*_products(work), *_fields(work), *(yield from _pictures(work)), *_redirects(work)]
    found = yield from compare(work, wanted, may_set=lambda _: True)
    if found.missing:
        return found.write
    written = sum(work.was_written(edit) for edit in wanted)
    return Finished(result={"texts": written, "kept": len(wanted) - written})


def _products(work: LaunchWork) -> Iterator[Edit]:
    form = work.spec.get("products") or ()
    told = dict(zip(handles(form), form, strict=True))
    for one in work.results["catalog.products"].get("products", ()):
        about = told.get(one["handle"], {}).get("description")
        yield Edit(
            kind=edits.PRODUCT_SEO,
            ids=(number(one["id"]),),
            wanted=standard_texts.seo(work.spec, one["title"], about),
        )


def _fields(work: LaunchWork) -> Iterator[Edit]:
    """Say what is to stand in the fields of collections and pages."""
    found = {
        "Collection": work.results["catalog.collections"].get("collections", ()),
        "Page": work.results["storefront.pages"].get("pages", ()),
    }
    for kind, things in found.items():
        for one in things:
            ids = (kind, number(one["id"]))
            yield Edit(
                kind=edits.SEO_FIELDS, ids=ids, wanted=standard_texts.seo(work.spec, one["title"])
            )


def _pictures(work: LaunchWork) -> Any:
    """Find the pictures of our products that nothing is said of."""
    ids = [one["id"] for one in work.results["catalog.products"].get("products", ())]
    found = list[Edit]()
    for start in range(0, len(ids), MOST_READ):
        page = yield ReadShop(document=PICTURES, variables={"ids": ids[start : start + MOST_READ]})
        found += [
            Edit(
                kind=edits.ALT_TEXT,
                ids=(number(one["featuredMedia"]["id"]),),
                wanted={"alt": one["title"]},
            )
            for one in page["nodes"]
            if one is not None and (one.get("featuredMedia") or {}).get("id")
        ]
    return found


def _redirects(work: LaunchWork) -> Iterator[Edit]:
    form = work.spec.get("products") or ()
    for one, handle in zip(form, handles(form), strict=True):
        if one.get("oldPath"):
            yield Edit(
                kind=edits.REDIRECT,
                ids=(one["oldPath"],),
                wanted={"target": f"/products/{handle}"},
            )


def analytics(work: LaunchWork) -> Taken:
    """Ask buyers for consent where the shop ships to and the law wants it; listen where the app can."""
    rows = _consent(work)
    wanted = [Edit(kind=edits.CONSENT, ids=("shop",), wanted={"rows": rows})] if rows else []
    can_listen = all(
        work.scopes and covers(work.scopes, scope)
        for scope in ("write_pixels", "read_customer_events")
    )
    pixel = Edit(
        kind=edits.PIXEL,
        ids=("app",),
        wanted={"extra": {"settings": {"accountID": work.store_id}}},
    )
    if can_listen:
        wanted.append(pixel)
    found = yield from compare(work, wanted, may_set=lambda _: True)
    if found.missing:
        return found.write
    listens = can_listen and found.things[-1] is not None
    result: dict[str, Any] = {"consent": sorted(rows)}
    # An app without an extension that listens has no pixel, which is no fault (rules/launch#executors).
    return Finished(result=result if listens else {**result, "note": "pixel_unavailable"})


def _consent(work: LaunchWork) -> dict[str, dict[str, bool]]:
    """Say what is wanted of the countries that the shop ships to."""
    countries = work.results["operations.shipping"].get("countries", ())
    asked = {"consentRequired": True, "dataSaleOptOutRequired": False}
    rows = {country: asked for country in countries if country in CONSENTING}
    if "US" in countries:
        out = {"consentRequired": False, "dataSaleOptOutRequired": True}
        rows |= {f"US-{state}": out for state in OPTING_OUT}
    return rows


def discount(work: LaunchWork) -> Taken:
    """Make the welcome code, unless the shop has something of this name."""
    extra = {
        "percent": PERCENT,
        "starts_at": work.began_at.isoformat(),
        "ends_at": (work.began_at + WELCOME_LIFE).isoformat(),
    }
    title = f"Welcome: {PERCENT} percent off the first order"
    code = Edit(kind=edits.WELCOME_CODE, ids=(WELCOME,), wanted={"title": title, "extra": extra})
    found = yield from compare(work, [code])
    if found.missing:
        return found.write
    result: dict[str, Any] = {"code": WELCOME}
    return Finished(result=result if work.was_written(code) else {**result, "note": "code_taken"})


def email(work: LaunchWork) -> Taken:
    """Make the segments that mails go to."""
    wanted = [
        Edit(kind=edits.SEGMENT, ids=(name,), wanted={"query": query})
        for name, query in SEGMENTS.items()
    ]
    found = yield from compare(work, wanted)
    if found.missing:
        return found.write
    return Finished(result={"segments": list(SEGMENTS)})
