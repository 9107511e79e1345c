"""The forms in which a seller says what a listing is: when it is begun, and when it is changed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.selling import sell
from tolsey.http.selling.bodies import ListingChanges, NewListing, PositiveAmount
from tolsey.http.web.access import listing_of, member_of, page, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import connections
from tolsey.storage.records.money.currencies import EXPONENTS
from tolsey.storage.records.selling.listing import ListingRecord

AMOUNT: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,4}))?")
"""An amount without its currency; blanks and the commas between thousands are taken out before."""
USUAL_CURRENCY: Final = "USD"

routes = Blueprint("listing_form_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class NewListingPage(Page):
    """What is said of a business before its revenue is proven."""

    template = "selling/new.html"
    organization_id: str
    store_id: str
    filled: Filled = field(default_factory=Filled)


@dataclass(frozen=True, kw_only=True)
class EditPage(Page):
    """What is said of a listing, to be changed."""

    template = "selling/edit.html"
    listing: ListingRecord
    filled: Filled


@routes.get("/selling/new")
@page
async def new_listing() -> Response:
    """Show the form that begins a listing."""
    organization_id = request.args.get("organizationId", "")
    await member_of(organization_id, at_least="admin")
    store_id = request.args.get("storeId", "")
    filled = Filled({"currency": USUAL_CURRENCY})
    if store_id:
        store = await store_of(store_id)
        shop = (await connections.load(service().database, [store.id]))[store.id].shop
        currency = shop.currency if shop and shop.currency else USUAL_CURRENCY
        domain = shop.primary_domain if shop and shop.primary_domain else ""
        filled = Filled({"title": store.name, "currency": currency, "domain": domain})
    return shown(NewListingPage(organization_id=organization_id, store_id=store_id, filled=filled))


@routes.post("/selling/new")
@page
async def begin_listing() -> Response:
    """Begin a listing and go on to its proof."""
    values = await forms.sent()
    organization_id, store_id = values.get("organizationId", ""), values.get("storeId", "")
    await member_of(organization_id, at_least="admin")
    again = NewListingPage(organization_id=organization_id, store_id=store_id)
    try:
        whose = {"organizationId": organization_id, "storeId": store_id or None}
        wanted = forms.read(NewListing, _read(values) | whose)
        made, _status = await sell.create_listing(data=wanted)
    except (Misfilled, Refusal) as wrong:
        return shown(replace(again, filled=filled_again(values, wrong)), refusal=wrong)
    return sent_on(f"/selling/{made.id}")


@routes.get("/selling/<listing_id>/edit")
@page
async def edit_form(listing_id: str) -> Response:
    """Show what is said of a listing, to be changed."""
    listing = (await listing_of(listing_id, "admin")).listing
    said = {
        "title": listing.title,
        "teaser": listing.teaser,
        "price": _typed(listing.asking_price, listing.currency),
        "currency": listing.currency or USUAL_CURRENCY,
        "domain": listing.domain,
        "anonymous": "yes" if listing.anonymous else None,
    }
    filled = Filled({name: value for name, value in said.items() if value})
    return shown(EditPage(listing=listing, filled=filled))


@routes.post("/selling/<listing_id>/edit")
@page
async def edit(listing_id: str) -> Response:
    """Change what is said of a listing, and go back to where it shows."""
    listing, values = (await listing_of(listing_id, "admin")).listing, await forms.sent()
    try:
        changes = _read(values)
        # The form has no field for the least offer: without a price there are none, and in another
        # currency the number is another amount.
        price = changes["askingPrice"]
        if price is None or price["currency"] != listing.currency:
            changes["minOffer"] = None
        await sell.edit_listing(listing_id, data=forms.read(ListingChanges, changes))
    except (Misfilled, Refusal) as wrong:
        again = EditPage(listing=listing, filled=filled_again(values, wrong))
        return shown(again, refusal=wrong)
    return sent_on(f"/selling/{listing_id}?from=edit")


def _read(values: Mapping[str, str]) -> dict[str, Any]:
    """Read what the form says as what the API is sent; what is left empty is nothing."""
    return {
        "title": values.get("title", ""),
        "teaser": values.get("teaser") or None,
        "askingPrice": _price(values),
        "domain": values.get("domain") or None,
        "anonymous": values.get("anonymous") == "yes",
    }


def _price(values: Mapping[str, str]) -> dict[str, Any] | None:
    """Read the price, if one is asked."""
    typed = re.sub(r"[\s,]", "", values.get("price", ""))
    if not typed:
        return None
    currency = values.get("currency", "").strip().upper()
    found = AMOUNT.fullmatch(typed)
    digits = EXPONENTS.get(currency, 2)
    if found is None or len(found[2] or "") > digits:
        raise Misfilled({"price": forms.OWN_SENTENCE})
    minor = int(found[1]) * 10**digits + int((found[2] or "").ljust(digits, "0") or "0")
    try:
        forms.read(PositiveAmount, price := {"amount": minor, "currency": currency})
    except Misfilled as wrong:
        fields = {"amount": "price"}
        raise Misfilled(
            {fields.get(name, name): said for name, said in wrong.errors.items()}
        ) from None
    return price


def _typed(minor: int | None, currency: str | None) -> str:
    """Write a price as it could have been typed."""
    if minor is None:
        return ""
    digits = EXPONENTS.get(currency or "", 2)
    whole, rest = divmod(minor, 10**digits)
    return f"{whole:,}.{rest:0{digits}}" if rest else f"{whole:,}"
