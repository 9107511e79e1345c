"""The data room of a deal: what is put into it, and from which stage on a buyer reads what (rules/marketplace#data-room)."""

from typing import Final

from tolsey.actors.listing import machines
from tolsey.actors.listing.deals.cases import Stage, is_paused
from tolsey.actors.listing.deals.messages import AddDealFile, DealView
from tolsey.actors.listing.deals.turns import DealTurn
from tolsey.actors.listing.state import ListingState
from tolsey.actors.refusals import InvalidTransition
from tolsey.runtime.decision import Decision
from tolsey.storage.records.selling.deals import DealFile, DealThread, Side

BASIC: Final = 1
"""What a buyer reads once the NDA is signed."""
FULL: Final = 2
"""What a buyer reads from due diligence on."""
LEVELS: Final = {
    Stage.NDA_SIGNED: BASIC,
    Stage.UNDER_OFFER: BASIC,
    Stage.LOI_SIGNED: BASIC,
    Stage.DUE_DILIGENCE: FULL,
    Stage.APA_SIGNED: FULL,
    Stage.ESCROW_FUNDED: FULL,
    Stage.TRANSFERRING: FULL,
    Stage.DISPUTED: FULL,
    Stage.CLOSED: FULL,
    Stage.REFUND_REQUESTED: FULL,
}


def level_of(deal: DealThread, *, paused: bool) -> int:
    """Say what a buyer may read: nothing before the NDA, after the end, or while another buyer has the exclusivity."""
    # Access is suspended while another thread leads (rules/marketplace#one-buyer).
    return 0 if paused else LEVELS.get(deal.stage, 0)


def may_read(file: DealFile, side: Side, level: int) -> bool:
    """Whether a party may read a file: its own, whatever the seller has of the buyer, and what its level opens."""
    return side is Side.SELLER or file.side is side or file.level <= level


def add(state: ListingState, message: AddDealFile) -> Decision[ListingState, DealView]:
    """Put a file into a deal's data room; its hash stands in the ledger."""
    turn = DealTurn(state, message.at)
    head = turn.head(message.file.deal_id)
    deal = head.deal
    # Nothing is added to what is over, and a buyer adds nothing before the NDA or while waiting.
    is_over = deal.stage in machines.DEAL.final
    buyers = message.file.side is Side.BUYER
    if is_over or (buyers and not level_of(deal, paused=is_paused(state, deal.id))):
        raise InvalidTransition(
            "You no longer have access to this deal's data room. Ask the other party if you"
            " still need a document.",
            [],
        )
    turn.records.append(message.file)
    turn.enter(
        head,
        deal,
        event="file.added",
        actor=message.actor,
        by=message.file.added_by,
        facts={
            "fileId": message.file.id,
            "kind": message.file.kind,
            "level": message.file.level,
            "sha256": message.file.sha256,
            "size": message.file.size,
        },
    )
    return turn.decision(deal.id)
