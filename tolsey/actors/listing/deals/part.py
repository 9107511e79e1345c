"""The deals of a listing: their heads are in its state, what happened is in rows alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from rpds import HashTrieMap

from tolsey.actors.listing.deals import drafting, negotiating, rooms
from tolsey.actors.listing.deals.messages import (
    AddDealFile,
    AdvanceDeal,
    AnswerOffer,
    CompleteEnvelope,
    DealDue,
    DiscardOfferDraft,
    DraftOfferReply,
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
from tolsey.actors.listing.deals.signatures import providers, signing
from tolsey.actors.listing.state import NEVER_LED, DealHead, ListingState
from tolsey.runtime.actor import KindPart, on
from tolsey.storage.database import Database
from tolsey.storage.records.selling.deals import BINDING
from tolsey.storage.selling import deals


class Deals(KindPart[ListingState]):
    """Who may see more, what they offer, and how the business is handed over."""

    owns: ClassVar[tuple[str, ...]] = ("deals", "bound", "led")
    decides = (
        on(RequestAccess, negotiating.request),
        on(AdvanceDeal, negotiating.advance),
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

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read every thread with its last offer."""
        found = await deals.load(self._database, keys)
        return {key: _fields(heads) for key, heads in found.items()}

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
