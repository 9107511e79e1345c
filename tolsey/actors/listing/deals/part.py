"""The deals of a listing: their heads are in its state, what happened is in rows alone."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from rpds import HashTrieMap

from tolsey.actors.listing.deals import drafting, negotiating, rooms
from tolsey.actors.listing.deals.messages import (
    AddDealFile,
    AdvanceDeal,
    AnswerOffer,
    CompleteEnvelope,
    DealDue,
    DealView,
    DiscardOfferDraft,
    DraftOfferReply,
    DrawUpNda,
    EndSignature,
    FollowEscrow,
    MakeOffer,
    OfferDue,
    ReadDeals,
    RequestAccess,
    RequestSignature,
    SignatureDue,
    SignDocument,
    StoreHandedOver,
    ViewDocument,
)
from tolsey.actors.listing.deals.moves import DealMoveName
from tolsey.actors.listing.deals.signatures import providers, signing
from tolsey.actors.listing.deals.signatures.signing import WriteNda
from tolsey.actors.listing.state import NEVER_LED, DealHead, ListingState
from tolsey.runtime.actor import KindPart, handles, on
from tolsey.runtime.decision import Decision
from tolsey.storage.database import Database
from tolsey.storage.records.selling.deals import BINDING
from tolsey.storage.selling import deals

NdaWriters: TypeAlias = Callable[[str, str], Awaitable[WriteNda]]
"""Reads the names of a seller and a buyer, by their ids, and returns what writes their NDAs."""


class Deals(KindPart[ListingState]):
    """Who may see more, what they offer, and how the business is handed over."""

    owns: ClassVar[tuple[str, ...]] = ("deals", "bound", "led")
    decides = (
        on(MakeOffer, negotiating.offer),
        on(AnswerOffer, negotiating.answer),
        on(DraftOfferReply, drafting.draft),
        on(DiscardOfferDraft, drafting.discard),
        on(AddDealFile, rooms.add),
        on(ReadDeals, negotiating.read),
        on(DealDue, negotiating.due),
        on(OfferDue, negotiating.offer_due),
        on(RequestSignature, signing.request),
        on(ViewDocument, signing.view),
        on(SignDocument, signing.sign),
        on(EndSignature, signing.end),
        on(SignatureDue, signing.due),
        on(CompleteEnvelope, providers.envelope),
        on(FollowEscrow, providers.escrow),
        on(StoreHandedOver, providers.store),
    )

    def __init__(self, database: Database, nda_writer: NdaWriters) -> None:
        self._database = database
        self._nda_writer = nda_writer

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read every thread with its last offer."""
        found = await deals.load(self._database, keys)
        return {key: _fields(heads) for key, heads in found.items()}

    @handles(RequestAccess)
    async def request(
        self, state: ListingState, message: RequestAccess
    ) -> Decision[ListingState, DealView]:
        """Begin a thread; its NDA names both parties where access is approved automatically."""
        seller_id = state.listing.organization_id if state.listing else ""
        write_nda = await self._nda_writer(seller_id, message.buyer_id)
        return negotiating.request(state, message, write_nda)

    @handles(AdvanceDeal)
    async def advance(
        self, state: ListingState, message: AdvanceDeal
    ) -> Decision[ListingState, DealView]:
        """Make a move; approving access comes with an NDA that names both parties."""
        if message.event != DealMoveName.ACCESS_APPROVE:
            return negotiating.advance(state, message)
        write_nda = await self._writer_for(state, message.deal_id)
        return negotiating.approve(state, message, write_nda)

    @handles(DrawUpNda)
    async def draw_up_nda(
        self, state: ListingState, message: DrawUpNda
    ) -> Decision[ListingState, None]:
        """Draw up the NDA that a deal never got."""
        write_nda = await self._writer_for(state, message.deal_id)
        return signing.draw_up_nda(state, message, write_nda)

    async def _writer_for(self, state: ListingState, deal_id: str) -> WriteNda:
        head = state.deals.get(deal_id)
        parties = (head.deal.seller_id, head.deal.buyer_id) if head is not None else ("", "")
        return await self._nda_writer(*parties)

    def changes(self, old: ListingState, new: ListingState) -> Iterable[Any]:
        """List the threads that are to be written; offers and lines of ledgers are by their turns."""
        if new.deals is old.deals:
            return
        for id, head in new.deals.items():
            before = old.deals.get(id)
            if before is None or head.deal is not before.deal:
                yield head.deal


def _fields(heads: Sequence[deals.Head]) -> dict[str, Any]:
    """Put threads in their places."""
    return {
        "deals": HashTrieMap(
            {
                deal.id: DealHead(deal=deal, offer=offer, signature=signature)
                for deal, offer, signature in heads
            }
        ),
        "bound": next((deal.id for deal, *_ in heads if deal.stage in BINDING), None),
        "led": tuple(deal.id for deal, *_ in heads if deal.leads != NEVER_LED),
    }
