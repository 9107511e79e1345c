"""Answers to offers that agents prepare: a person sends them, or nobody (rules/marketplace#drafts)."""

from dataclasses import replace

from tolsey.actors.listing import lifecycle
from tolsey.actors.listing.deals.cases import open_offer
from tolsey.actors.listing.deals.messages import DiscardOfferDraft, DraftOfferReply
from tolsey.actors.listing.deals.negotiating import offer_of
from tolsey.actors.listing.deals.turns import DealTurn
from tolsey.actors.listing.deals.views import answers_of
from tolsey.actors.listing.state import ListingState
from tolsey.actors.refusals import Forbidden, InvalidTransition
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.selling.deals import OfferDraft, Side

Answer = Decision[ListingState, OfferDraft]


def draft(state: ListingState, message: DraftOfferReply) -> Answer:
    """Keep a prepared answer beside its offer, in place of the one before; only what a person could send."""
    wanted = message.draft
    head = DealTurn(state, message.at).head(wanted.deal_id)
    found = open_offer(head)
    if found is None or found.id != wanted.offer_id:
        raise InvalidTransition(
            "This offer is no longer open. Reload the deal to see its current offer.", []
        )
    # Who made an offer has nothing to answer (rules/marketplace#answers).
    if wanted.side is found.side:
        raise Forbidden("Only the other party can do this. Wait for their answer.")
    possible = answers_of(state, head, message.at, wanted.side)
    if wanted.reply not in possible:
        raise InvalidTransition(
            "The offer can't be answered this way now. Choose one of the actions in `allowed`.",
            list(possible),
        )
    if message.terms is not None:
        least = wanted.side is Side.BUYER
        offer_of(lifecycle.existing(state), message.terms, message.at, least=least)
    return Decision(state, wanted, () if message.is_trial else (wanted,))


def discard(state: ListingState, message: DiscardOfferDraft) -> Answer:
    """Put a prepared answer aside: nobody is shown it any more."""
    gone = replace(message.draft, discarded_at=message.at)
    said = audit_record(
        "offer_draft.discarded", gone.offer_id, gone.organization_id, message.by, deal=gone.deal_id
    )
    return Decision(state, gone, (gone, said))
