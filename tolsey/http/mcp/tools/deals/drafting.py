"""Answers to offers, prepared on an agent's word: a person of the party sends them, and no agent can (rules/marketplace#drafts)."""

from datetime import date, timedelta
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, ValidationError, model_validator

from tolsey.actors.listing.deals.messages import DraftOfferReply
from tolsey.actors.listing.messages import listing
from tolsey.actors.refusals import NotFound, Unprocessable
from tolsey.http.answers.market.offers import OfferAnswer
from tolsey.http.deals.bodies_of_deals import NewOffer
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.deals.reading import DealId, deal_of
from tolsey.http.mcp.tools.writes.contract import WORDED, GivenMoney, WriteArguments
from tolsey.http.mcp.tools.writes.recorded import Effected, RecordedWrite
from tolsey.storage.records.selling.deals import DealOffer, DealThread, OfferDraft, Side
from tolsey.storage.selling import deals

Said = Annotated[str, Field(max_length=2000), WORDED]


class OfferReply(WriteArguments):
    """An answer to be prepared; a counter-offer keeps the type and terms of the offer that it does not name."""

    deal_id: DealId
    offer_id: Annotated[str, Field(max_length=128)]
    reply: Annotated[Literal["accept", "reject", "counter"], Field(description="What to answer.")]
    note: Annotated[Said | None, Field(description="Why, for whoever sends it.")] = None
    amount: Annotated[GivenMoney | None, Field(description="Of a counter.")] = None
    contingencies: Annotated[list[str] | None, Field(description="Its conditions.")] = None
    closing_by: Annotated[date | None, Field(description="Its last day.")] = None
    message: Annotated[Said | None, Field(description="To the other party.")] = None
    valid_hours: Annotated[int, Field(ge=24, le=336, description="How long it stands.")] = 72

    @model_validator(mode="after")
    def _terms_of_a_counter(self) -> "OfferReply":
        terms = self.model_fields_set & TERMS
        if self.reply != "counter" and terms:
            raise ValueError(f"only a counteroffer can have {', '.join(sorted(terms))}")
        if self.reply == "counter" and self.amount is None:
            raise ValueError("a counteroffer requires amount")
        return self


TERMS: Final = (
    OfferReply.model_fields.keys()
    - WriteArguments.model_fields.keys()
    - {"deal_id", "offer_id", "reply", "note"}
)


class OfferReplyWriter(RecordedWrite[OfferReply]):
    """Prepares an answer to an offer for the store's organization."""

    name: ClassVar[str] = "draft_offer_reply"
    title: ClassVar[str] = "Prepare an answer to an offer"
    description: ClassVar[str] = (
        "Prepares an answer to the other party's open offer, which a person changes, sends or discards; a"
        " counter keeps what it does not name."
    )
    scope: ClassVar[str] = "offers:write"
    arguments: ClassVar[type[WriteArguments]] = OfferReply

    def subject(self, given: OfferReply) -> str:
        """Name what it is about."""
        return f"offer:{given.offer_id}"

    async def plan(self, principal: Principal, given: OfferReply) -> Effected:
        """Say what would be kept, after looking whether it could be sent."""
        return await self._told(principal, given, is_trial=True)

    async def carry_out(
        self, principal: Principal, given: OfferReply, operation_id: str
    ) -> Effected:
        """Keep it beside the offer."""
        del operation_id
        return await self._told(principal, given, is_trial=False)

    async def _told(self, principal: Principal, given: OfferReply, *, is_trial: bool) -> Effected:
        service = self._service
        deal, side = await deal_of(service.database, principal, given.deal_id)
        found = await deals.deal_of_offer(service.database, given.offer_id)
        if found is None or found[0].id != deal.id:
            raise NotFound(
                "This offer doesn't exist, or you don't have access to it. Check the link or"
                " the id."
            )
        counter = self._counter(given, found[1]) if given.reply == "counter" else None
        before = await deals.draft_of(service.database, given.offer_id, side)
        wish = DraftOfferReply(
            draft=self._draft(principal, given, deal, side, counter),
            terms=counter.offer_terms() if counter is not None else None,
            is_trial=is_trial,
            at=service.clock(),
        )
        kept = await service.runtime.ask(listing(deal.listing_id), wish)
        where = f"{service.settings.base_url}/deals/{deal.id}"
        return Effected(
            {"reply": before.reply if before is not None else None},
            {
                "reply": kept.reply,
                "counter": counter.model_dump(mode="json", by_alias=False, exclude_none=True)
                if counter is not None
                else None,
                "waits_for": f"a person of the {side}, at {where}",
            },
        )

    def _draft(
        self,
        principal: Principal,
        given: OfferReply,
        deal: DealThread,
        side: Side,
        counter: NewOffer | None,
    ) -> OfferDraft:
        return OfferDraft(
            offer_id=given.offer_id,
            deal_id=deal.id,
            side=side,
            organization_id=principal.organization_id,
            reply=given.reply,
            counter=counter.model_dump_json(by_alias=True) if counter is not None else None,
            note=given.note,
            drafted_by=principal.user_id,
            drafted_at=self._service.clock(),
        )

    def _counter(self, given: OfferReply, offer: DealOffer) -> NewOffer:
        """Put terms together as a person could send them. Raises Unprocessable for what is none."""
        answered = OfferAnswer.of(offer, ()).model_dump(mode="json", by_alias=True)
        kept = ("type", "sellerFinancing", "earnout", "inventory", "contingencies", "closingBy")
        wanted: dict[str, Any] = {name: answered[name] for name in kept}
        named = given.model_dump(mode="json", include={"contingencies", "closing_by"})
        if named["contingencies"] is not None:
            wanted["contingencies"] = named["contingencies"]
        if named["closing_by"] is not None:
            wanted["closingBy"] = named["closing_by"]
        wanted["amount"] = given.amount.pair if given.amount is not None else None
        wanted["message"] = given.message
        until = self._service.clock() + timedelta(hours=given.valid_hours)
        wanted["validUntil"] = until.isoformat()
        try:
            return NewOffer.model_validate(wanted)
        except ValidationError as wrong:
            first = wrong.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(one) for one in first["loc"])
            raise Unprocessable(
                f"{name}: {first['msg']}".removeprefix(": "), code="invalid_request"
            ) from wrong
