"""What parties do on the page of a deal: each move says first what it does, and is made on a page of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.http.answers.market.deals import DealAnswer
from tolsey.http.deals import offers as offer_routes
from tolsey.http.deals import threads
from tolsey.http.deals.bodies_of_deals import DealMove, TransferVerdict
from tolsey.http.deals.pages import words
from tolsey.http.deals.pages.words import MoveWords
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import page

DIRECT: Final = ("reason", "evidence", "item")
"""What a form says under the name that the API has for it."""
FLAGS: Final = ("escrowReturned", "escrowReleased", "assetsReturned")

routes = Blueprint("deal_moves", __name__, url_prefix="/deals/<deal_id>")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class MovePage(Page):
    """A move before it is made: what happens then, and what has to be said with it."""

    template = "deals/move.html"
    deal: DealAnswer
    words: MoveWords
    address: str
    item: str = ""
    """What of a list it is about, by its title."""
    filled: Filled = field(default_factory=Filled)

    @property
    def fields(self) -> Sequence[tuple[str, bool]]:
        """What is asked, and whether it has to be said."""
        wanted = [(name, True) for name in self.words.fields]
        return [*wanted, *((name, False) for name in self.words.optional)]

    @property
    def reasons(self) -> dict[str, str]:
        """Why money can be asked back."""
        return {name: _(said) for name, said in words.REFUND_REASONS.items()}

    @property
    def handed_over(self) -> dict[str, str]:
        """What was handed over, by its id."""
        return {one.id: one.title for one in self.deal.transfer_items}

    @property
    def to_return(self) -> dict[str, str]:
        """What has to come back, by its id."""
        return {one: self.handed_over.get(one, one) for one in self.deal.returns}


@routes.get("/moves/<event>")
@page
async def show_move(deal_id: str, event: str) -> Response:
    """Say what a move does, and ask for what it needs."""
    return shown(_move_page(await threads.get_deal(deal_id), event))


@routes.post("/moves/<event>")
@page
async def make_move(deal_id: str, event: str) -> Response:
    """Make a move, and go back to the deal; where it cannot be made, say why."""
    deal, values = await threads.get_deal(deal_id), await forms.sent()
    try:
        asked = {
            "event": event,
            "expectedStage": values.get("stage", deal.stage),
            **_said(values, deal, (await request.form).getlist("items")),
        }
        await threads.advance_deal(deal_id, data=forms.read(DealMove, asked))
    except (Misfilled, Refusal) as wrong:
        again = _move_page(deal, event, filled=filled_again(values, wrong))
        return shown(again, refusal=wrong)
    return sent_on(f"/deals/{deal_id}?done=moved")


@routes.get("/items/<item>")
@page
async def show_rejection(deal_id: str, item: str) -> Response:
    """Ask why a thing that was handed over is rejected."""
    return shown(_rejection(await threads.get_deal(deal_id), item))


@routes.post("/items/<item>")
@page
async def judge_item(deal_id: str, item: str) -> Response:
    """Accept or reject a thing that was handed over."""
    deal, values = await threads.get_deal(deal_id), await forms.sent()
    said = {name: values[name] for name in ("verdict", "reason") if values.get(name)}
    try:
        await threads.judge_item(deal_id, item, data=forms.read(TransferVerdict, said))
    except (Misfilled, Refusal) as wrong:
        return shown(_rejection(deal, item, filled=filled_again(values, wrong)), refusal=wrong)
    return sent_on(f"/deals/{deal_id}?done=moved")


@routes.get("/offers/<offer_id>/<any(accept, reject, withdraw):verb>")
@page
async def show_answer(deal_id: str, offer_id: str, verb: str) -> Response:
    """Say what an answer to an offer does."""
    return shown(_answer_page(await threads.get_deal(deal_id), offer_id, verb))


@routes.post("/offers/<offer_id>/<any(accept, reject, withdraw):verb>")
@page
async def answer_offer(deal_id: str, offer_id: str, verb: str) -> Response:
    """Answer an offer, and go back to the deal."""
    deal = await threads.get_deal(deal_id)
    try:
        await offer_routes.answer_offer(offer_id, verb)
    except Refusal as wrong:
        again = _answer_page(deal, offer_id, verb, filled=filled_again({}, wrong))
        return shown(again, refusal=wrong)
    return sent_on(f"/deals/{deal_id}?done=moved")


def _move_page(deal: DealAnswer, event: str, **more: Any) -> MovePage:
    if event not in words.MOVES and event not in words.OF_ITEMS:
        raise NotFound(
            _(
                "This action doesn't exist for this deal. Go back to the deal and choose one of its"
                " actions."
            )
        )
    said = words.MOVES.get(event) or MoveWords(label=words.EVENTS[event], says="")
    return MovePage(deal=deal, words=said, address=f"/deals/{deal.id}/moves/{event}", **more)


def _rejection(deal: DealAnswer, item: str, **more: Any) -> MovePage:
    titles = {one.id: one.title for one in deal.transfer_items}
    if item not in titles:
        raise NotFound(
            _("This item isn't on the handover checklist. Reload the deal to see the checklist.")
        )
    return MovePage(
        deal=deal,
        words=words.REJECTION,
        address=f"/deals/{deal.id}/items/{item}",
        item=titles[item],
        **more,
    )


def _answer_page(deal: DealAnswer, offer_id: str, verb: str, **more: Any) -> MovePage:
    address = f"/deals/{deal.id}/offers/{offer_id}/{verb}"
    return MovePage(deal=deal, words=words.VERBS[verb], address=address, **more)


def _said(values: Mapping[str, str], deal: DealAnswer, items: Sequence[str]) -> dict[str, Any]:
    """Read what was said with a move as the API takes it."""
    found: dict[str, Any] = {name: values[name] for name in DIRECT if values.get(name)}
    found |= {name: True for name in FLAGS if values.get(name) == "yes"}
    if values.get("refundReason"):
        found["reason"] = values["refundReason"]
    if values.get("until"):
        # A day ends in UTC, as all days of this service do.
        found["until"] = f"{values['until']}T23:59:59Z"
    if values.get("escrowId"):
        # The escrow holds what the agreement says, so that nobody has to type it (rules/marketplace#escrow).
        found["escrowId"] = values["escrowId"]
        found["amount"] = deal.price and deal.price.model_dump()
    if items:
        found["items"] = tuple(items)
    return found
