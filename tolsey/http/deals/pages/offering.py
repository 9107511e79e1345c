"""The form of an offer: a buyer's first, or a counter-offer of either party."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.http.answers.market.offers import OfferAnswer, OfferDraftAnswer, OfferTermsAnswer
from tolsey.http.deals import drafts, threads
from tolsey.http.deals import offers as offer_routes
from tolsey.http.deals.bodies_of_deals import NewOffer
from tolsey.http.deals.pages import words
from tolsey.http.deals.pages.room import listing_of_deal
from tolsey.http.deals.pages.showing import amount
from tolsey.http.deals.parties import party_to
from tolsey.http.layout import forms
from tolsey.http.layout.amounts import as_typed, in_minor, plain
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import whole_money
from tolsey.http.web.access import page
from tolsey.http.web.context import now

LASTS: Final = ("24", "72", "168", "336")
"""For how many hours an offer can stand."""
USUAL: Final = "72"
LENT: Final = ("seller_financing", "mixed")
LATER: Final = ("earnout", "mixed")
PLACES: Final = {
    "amount.amount": "amount",
    "amount.currency": "amount",
    "validUntil": "validFor",
    "sellerFinancing": "downPayment",
    "earnout": "cap",
}
"""Where what the API says of a field stands on the form."""

routes = Blueprint("deal_offer_pages", __name__, url_prefix="/deals/<deal_id>/offer")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class OfferFormPage(Page):
    """An offer to be made, or to be countered."""

    template = "deals/offer.html"
    deal_id: str
    title: str
    asked: str
    least: str
    currency: str
    countered: OfferAnswer | None
    is_drafted: bool = False
    """Whether it begins with what an agent prepared."""
    filled: Filled = field(default_factory=Filled)

    @property
    def address(self) -> str:
        """Where the form goes."""
        to = f"?to={self.countered.id}" if self.countered is not None else ""
        return f"/deals/{self.deal_id}/offer{to}{'&draft=yes' if self.is_drafted else ''}"

    @property
    def theirs(self) -> str:
        """What the other party offered."""
        return amount(self.countered.amount) if self.countered is not None else ""

    @property
    def types(self) -> dict[str, str]:
        """How it can be paid."""
        return {name: _(said) for name, said in words.OFFER_TYPES.items()}

    @property
    def inventories(self) -> dict[str, str]:
        """What can become of the inventory."""
        return {name: _(said) for name, said in words.INVENTORY.items()}

    @property
    def lasts(self) -> dict[str, str]:
        """For how long it can stand."""
        names = {"24": _("A day"), "72": _("Three days"), "168": _("A week"), "336": _("Two weeks")}
        return {hours: names[hours] for hours in LASTS}


@routes.get("")
@page
async def show_form(deal_id: str) -> Response:
    """Show the form of an offer; a counter-offer begins with the terms of what it answers."""
    return shown(await _page(deal_id))


@routes.post("")
@page
async def make_offer(deal_id: str) -> Response:
    """Make an offer, or counter one, and go back to the deal."""
    values, shown_page = await forms.sent(), await _page(deal_id)
    try:
        wanted = forms.read(NewOffer, _read(values, shown_page.currency))
        if shown_page.countered is not None:
            await offer_routes.counter_offer(shown_page.countered.id, data=wanted)
        else:
            await offer_routes.make_offer(deal_id, data=wanted)
    except (Misfilled, Refusal) as wrong:
        return shown(await _page(deal_id, filled_again(values, _placed(wrong))), refusal=wrong)
    return sent_on(f"/deals/{deal_id}?done=moved")


@routes.post("/discard")
@page
async def discard_draft(deal_id: str) -> Response:
    """Discard what an agent prepared, and go back to the deal."""
    await party_to(deal_id)
    try:
        await drafts.discard_offer_draft(request.args.get("to", ""))
    except NotFound:
        return sent_on(f"/deals/{deal_id}")
    return sent_on(f"/deals/{deal_id}?done=discarded")


async def _page(deal_id: str, filled: Filled | None = None) -> OfferFormPage:
    party, deal = await party_to(deal_id), await threads.get_deal(deal_id)
    listing = (await listing_of_deal(party)).listing
    to = request.args.get("to")
    countered = deal.offer if deal.offer is not None and deal.offer.id == to else None
    currency = listing.currency or ""
    drafted = await _drafted(countered)
    begins: OfferAnswer | OfferTermsAnswer | None = drafted or countered
    return OfferFormPage(
        deal_id=deal_id,
        title=listing.title,
        asked=whole_money(listing.asking_price, currency),
        least=whole_money(listing.min_offer, currency),
        currency=currency,
        countered=countered,
        is_drafted=drafted is not None,
        filled=filled or Filled({"validFor": USUAL, **(_typed(begins) if begins else {})}),
    )


async def _drafted(countered: OfferAnswer | None) -> OfferTermsAnswer | None:
    """Read the terms that an agent prepared, where the form was asked for with them."""
    if countered is None or request.args.get("draft") != "yes":
        return None
    try:
        drafted: OfferDraftAnswer = await drafts.get_offer_draft(countered.id)
    except NotFound:
        return None
    return drafted.counter


def _typed(offer: OfferAnswer | OfferTermsAnswer) -> dict[str, str]:
    """Write the terms of an offer as they could have been typed."""
    found = {
        "amount": as_typed(offer.amount.amount, offer.amount.currency),
        "type": offer.type,
        "inventory": offer.inventory,
        "contingencies": "\n".join(offer.contingencies),
        "closingBy": offer.closing_by.isoformat() if offer.closing_by else "",
    }
    if (lent := offer.seller_financing) is not None:
        found["downPayment"] = as_typed(lent.down_payment, offer.amount.currency)
        found |= {"months": str(lent.months), "rate": f"{lent.rate:g}"}
    if (later := offer.earnout) is not None:
        found["cap"] = as_typed(later.cap, offer.amount.currency)
        found |= {"metric": later.metric, "earnoutMonths": str(later.months)}
    if isinstance(offer, OfferTermsAnswer):
        found |= {"message": offer.message or "", "proofOfFunds": offer.proof_of_funds or ""}
        if offer.valid_until is not None:
            found["validFor"] = _nearest(offer.valid_until)
    return found


def _nearest(until: datetime) -> str:
    """Say for how long an offer would stand, of the times that the form has, from now on."""
    hours = (until - now()).total_seconds() / 3600
    return min(LASTS, key=lambda one: abs(int(one) - hours))


def _read(values: Mapping[str, str], currency: str) -> dict[str, Any]:
    """Read the form as the API takes it. Raises Misfilled for an amount that is none."""
    said = {name: text.strip() for name, text in values.items() if text.strip()}
    kind, hours = said.get("type", "cash"), said.get("validFor", USUAL)
    found: dict[str, Any] = {
        "amount": {"amount": _minor(said, "amount", currency), "currency": currency},
        "type": kind,
        "inventory": said.get("inventory", "included"),
        "contingencies": tuple(
            one.strip() for one in said.get("contingencies", "").splitlines() if one.strip()
        ),
        "closingBy": said.get("closingBy"),
        "proofOfFunds": said.get("proofOfFunds"),
        "message": said.get("message"),
        "validUntil": now() + timedelta(hours=int(hours if hours in LASTS else USUAL)),
    }
    if kind in LENT and "downPayment" in said:
        found["sellerFinancing"] = {
            "downPayment": _minor(said, "downPayment", currency),
            "months": _number(said, "months"),
            "rate": plain(said.get("rate", "0")) or said["rate"],
        }
    if kind in LATER and "cap" in said:
        found["earnout"] = {
            "metric": said.get("metric", ""),
            "cap": _minor(said, "cap", currency),
            "months": _number(said, "earnoutMonths"),
        }
    return found


def _minor(said: Mapping[str, str], name: str, currency: str) -> int:
    found = in_minor(said.get(name, ""), currency)
    if found is None:
        raise Misfilled({name: forms.OWN_SENTENCE})
    return found


def _number(said: Mapping[str, str], name: str) -> int:
    typed = said.get(name, "")
    if not (typed.isascii() and typed.isdecimal()):
        raise Misfilled({name: forms.OWN_SENTENCE})
    return int(typed)


def _placed(wrong: Misfilled | Refusal) -> Misfilled | Refusal:
    """Put what the API says of a field to where it stands on the form."""
    if isinstance(wrong, Misfilled):
        return Misfilled({PLACES.get(name, name): said for name, said in wrong.errors.items()})
    return wrong
