"""The forms in which a seller says what a listing is: when it is begun, and when it is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
from quart import Blueprint, Response, request

from tolsey.actors.refusals import Refusal
from tolsey.http.layout import forms
from tolsey.http.layout.amounts import as_typed, in_minor, plain
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.selling import sell
from tolsey.http.selling.bodies import ListingChanges, NewListing, PositiveAmount
from tolsey.http.web.access import listing_of, member_of, page, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import connections
from tolsey.storage.records.selling.listing import ListingRecord

USUAL_CURRENCY: Final = "USD"
TOLD: Final = ("category", "businessModel", "foundedAt", "country", "reasonForSale")
ASSETS: Final = ("includedAssets", "excludedAssets")
PRIVATE: Final = (
    "businessName",
    "url",
    "profitAndLoss",
    "team",
    "adAccounts",
    "suppliers",
    "notes",
)
DOCUMENTS: Final = "requiredDocuments"
DOCUMENT_KINDS: Final[Mapping[str, str]] = {
    "profit_and_loss": marked("Profit and loss"),
    "tax_return": marked("Tax return"),
    "bank_statement": marked("Bank statement"),
    "contract": marked("Contract"),
    "traffic": marked("Traffic"),
    "advertising": marked("Advertising"),
    "inventory": marked("Inventory"),
    "incorporation": marked("Incorporation"),
    "other": marked("Other"),
}
"""What a file of a data room is about."""

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
    documents: Sequence[str] = ()
    """What the data room must hold before the due diligence."""

    @property
    def document_kinds(self) -> dict[str, str]:
        """What a file can be about."""
        return {name: _(said) for name, said in DOCUMENT_KINDS.items()}


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
    filled = Filled({name: value for name, value in _typed(listing).items() if value})
    documents = orjson.loads(listing.required_documents)
    return shown(EditPage(listing=listing, filled=filled, documents=documents))


@routes.post("/selling/<listing_id>/edit")
@page
async def edit(listing_id: str) -> Response:
    """Change what is said of a listing, and go back to where it shows."""
    listing, values = (await listing_of(listing_id, "admin")).listing, await forms.sent()
    documents = (await request.form).getlist(DOCUMENTS)
    try:
        changes = {**_read(values), **_read_more(values), DOCUMENTS: tuple(documents)}
        await sell.edit_listing(listing_id, data=forms.read(ListingChanges, changes))
    except (Misfilled, Refusal) as wrong:
        filled = filled_again(values, _placed(wrong))
        again = EditPage(listing=listing, filled=filled, documents=documents)
        return shown(again, refusal=wrong)
    return sent_on(f"/selling/{listing_id}?from=edit")


def _placed(wrong: Misfilled | Refusal) -> Misfilled | Refusal:
    """Put what is wrong with a part of what was sent to where it stands on the form."""
    if not isinstance(wrong, Misfilled):
        return wrong
    fields = {"askingPrice": "price", "minOffer": "least", "selfReported": "hoursPerWeek"}
    return Misfilled({fields.get(name, name): said for name, said in wrong.errors.items()})


def _read(values: Mapping[str, str]) -> dict[str, Any]:
    """Read what the form says as what the API is sent; what is left empty is nothing."""
    return {
        "title": values.get("title", ""),
        "teaser": values.get("teaser") or None,
        "askingPrice": _price(values),
        "domain": values.get("domain") or None,
        "anonymous": values.get("anonymous") == "yes",
    }


def _read_more(values: Mapping[str, str]) -> dict[str, Any]:
    """Read what only the form of changes asks: what is sold, what the seller states, and what an NDA opens."""
    price = _price(values)
    currency = price["currency"] if price else ""
    reported: dict[str, Any] = {
        name: _amount(values, name, currency or values.get("currency", "").strip().upper())
        for name in ("ttmRevenue", "ttmProfit")
    }
    reported |= {name: _number(values, name) for name in ("hoursPerWeek", "headcount")}
    least = _amount(values, "least", currency) if price else None
    if price and least and not 0 < least["amount"] <= price["amount"]:
        raise Misfilled({"least": forms.OWN_SENTENCE})
    return {
        **{name: values.get(name, "").strip() or None for name in TOLD},
        **{name: tuple(_lines(values.get(name, ""))) for name in ASSETS},
        # Without a price there is no least offer.
        "minOffer": least,
        "selfReported": {name: said for name, said in reported.items() if said is not None},
        "private": {name: values[name] for name in PRIVATE if values.get(name, "").strip()},
        "autoApproveAccess": values.get("autoApproveAccess") == "yes",
        "financingOffered": values.get("financingOffered") == "yes",
    }


def _number(values: Mapping[str, str], name: str) -> float | None:
    """Read a number, if one is typed; a whole one is one of people."""
    typed = values.get(name, "").strip()
    if not typed:
        return None
    read = plain(typed)
    if read is None:
        raise Misfilled({name: forms.OWN_SENTENCE})
    found = float(read)
    return int(found) if found.is_integer() else found


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _price(values: Mapping[str, str]) -> dict[str, Any] | None:
    """Read the price, if one is asked."""
    price = _amount(values, "price", values.get("currency", "").strip().upper())
    if price is None:
        return None
    try:
        forms.read(PositiveAmount, price)
    except Misfilled as wrong:
        fields = {"amount": "price"}
        raise Misfilled(
            {fields.get(name, name): said for name, said in wrong.errors.items()}
        ) from None
    return price


def _amount(values: Mapping[str, str], name: str, currency: str) -> dict[str, Any] | None:
    """Read an amount, if one is typed."""
    typed = values.get(name, "").strip()
    if not typed:
        return None
    minor = in_minor(typed, currency)
    if minor is None:
        raise Misfilled({name: forms.OWN_SENTENCE})
    return {"amount": minor, "currency": currency}


def _typed(listing: ListingRecord) -> dict[str, str]:
    """Write what is said of a listing as it could have been typed."""
    private, reported = orjson.loads(listing.private), orjson.loads(listing.self_reported)
    currency = listing.currency or USUAL_CURRENCY
    amounts = {
        name: as_typed(reported[name]["amount"], reported[name]["currency"])
        for name in ("ttmRevenue", "ttmProfit")
        if name in reported
    }
    hours, heads = reported.get("hoursPerWeek"), reported.get("headcount")
    return {
        "title": listing.title,
        "teaser": listing.teaser or "",
        "price": as_typed(listing.asking_price, currency),
        "least": as_typed(listing.min_offer, currency),
        "currency": currency,
        "domain": listing.domain or "",
        "anonymous": "yes" if listing.anonymous else "",
        "category": listing.category or "",
        "businessModel": listing.business_model or "",
        "foundedAt": listing.founded_at.isoformat() if listing.founded_at else "",
        "country": listing.country or "",
        "reasonForSale": listing.reason_for_sale or "",
        "includedAssets": "\n".join(orjson.loads(listing.included_assets)),
        "excludedAssets": "\n".join(orjson.loads(listing.excluded_assets)),
        "autoApproveAccess": "yes" if listing.auto_approve_access else "",
        "financingOffered": "yes" if listing.financing_offered else "",
        "hoursPerWeek": f"{hours:g}" if hours is not None else "",
        "headcount": str(heads) if heads is not None else "",
        **amounts,
        **private,
    }
