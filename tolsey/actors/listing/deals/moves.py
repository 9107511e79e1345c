"""Which moves a deal can make: their names, who may ask for them when, and what has to stand before (rules/marketplace#stages)."""

from dataclasses import replace
from enum import StrEnum
from typing import Final

from tolsey.actors.listing import machines
from tolsey.actors.listing.deals import guards, marks
from tolsey.actors.listing.deals.cases import DealCase, Stage, is_paused
from tolsey.actors.refusals import Conflict, Forbidden, InvalidTransition, Unprocessable
from tolsey.storage.records.selling.deals import OfferStatus

OFFER_EVENTS: Final = (
    "submit",
    "accept",
    "reject",
    "withdraw",
    "counter",
    "counter_created",
    "timer",
    "supersede",
)
UNPAUSED: Final = ("withdraw", "decline", "access.decline", "listing.gone")
"""What may happen to a deal that waits for another: it ends."""


class DealMoveName(StrEnum):
    """What can happen to a deal that somebody asks for."""

    ACCESS_APPROVE = "access.approve"
    ACCESS_DECLINE = "access.decline"
    OFFER_REOPEN = "offer.reopen"
    DILIGENCE_OPEN = "diligence.open"
    DILIGENCE_RESOLVE = "diligence.resolve"
    FASTTRACK_AGREE = "fasttrack.agree"
    EXCLUSIVITY_PROPOSE = "exclusivity.propose"
    EXCLUSIVITY_AGREE = "exclusivity.agree"
    ESCROW_OPEN = "escrow.open"
    FUNDING_CONFIRM = "funding.confirm"
    ESCROW_FUNDED = "escrow.funded"
    TRANSFER_START = "transfer.start"
    TRANSFER_DELIVER = "transfer.deliver"
    TRANSFER_CONFIRM = "transfer.confirm"
    DEAL_CLOSE = "deal.close"
    WITHDRAW = "withdraw"
    DECLINE = "decline"
    CANCEL_PROPOSE = "cancel.propose"
    CANCEL_AGREE = "cancel.agree"
    ADMIN_CANCEL = "admin.cancel"
    DISPUTE_OPEN = "dispute.open"
    DISPUTE_RESUME = "dispute.resume"
    DISPUTE_REFUND = "dispute.refund"
    DISPUTE_RELEASE = "dispute.release"
    ESCROW_REFUNDED = "escrow.refunded"
    REFUND_REQUEST = "refund.request"
    REFUND_ACCEPT = "refund.accept"
    REFUND_DENY = "refund.deny"
    REFUND_WITHDRAW = "refund.withdraw"


class OwnDealEvent(StrEnum):
    """What happens to a deal by time, by an offer, a signature, a provider or the listing."""

    ACCESS_REQUEST = "access.request"
    OFFER_ACCEPTED = "offer.accepted"
    NDA_SIGNED = "nda.signed_by_all"
    LOI_SIGNED = "loi.signed_by_all"
    APA_SIGNED = "apa.signed_by_all"
    SIGNATURE_ENDED = "signature.ended"
    EXCLUSIVITY_LAPSED = "exclusivity.lapsed"
    DAYS_14 = "timer.14d"
    DAYS_30 = "timer.30d"
    UNFUNDED = "timer.21d_unfunded"
    HOURS_72 = "timer.72h"
    ESCROW_RELEASED = "escrow.released"
    LISTING_GONE = "listing.gone"


machines.DEAL.require(Stage, (*DealMoveName, *OwnDealEvent))
machines.OFFER.require(OfferStatus, OFFER_EVENTS)
if (
    strange := (guards.STANDS.keys() | guards.SAYS.keys() | marks.MARKS.keys())
    - machines.DEAL.events
):
    raise machines.UnsoundMachine(f"deal: code knows {', '.join(sorted(strange))} besides")


class GuardFailed(Conflict):
    """The deal's machine has this move, and something else has to happen before; `allowed` has what can."""

    code = "guard_failed"


def target_of(case: DealCase, event: str, *, asker: str | None = None) -> Stage:
    """Return the stage that an event leads to, or raise why it may not happen.

    A refusal lists what `asker` may do instead; without one, what the actor may do.
    """
    deal = case.deal
    asking = case if asker is None else replace(case, actor=asker)
    move = machines.DEAL.move(deal.stage, event)
    # Who may never send it is the wrong party, whatever the stage (rules/marketplace#answers).
    may_ever = machines.DEAL.knows(case.actor, event)
    if not may_ever or (move is not None and case.actor not in move.actors):
        raise Forbidden(
            "Your side of the deal can't take this action. Choose one of the actions in `allowed`.",
            allowed=list(allowed(asking)),
        )
    if move is None:
        raise InvalidTransition(
            f"The deal is at the stage {deal.stage}, which doesn't allow {event}. Choose one of the actions in `allowed`.",
            list(allowed(asking)),
        )
    if is_paused(case.state, deal.id) and event not in UNPAUSED:
        raise InvalidTransition(
            "Another buyer has exclusivity, so this deal is paused. Wait until the exclusivity"
            " ends.",
            list(allowed(asking)),
        )
    if missing := guards.wanted(case, event):
        raise Unprocessable(
            f"This action requires {', '.join(missing)}. Add the missing fields and try again.",
            code="invalid_request",
            errors=[{"field": camel(name), "message": "is required"} for name in missing],
        )
    for table in (guards.STANDS, guards.SAYS):
        guard = table.get(event)
        if guard is not None and (why := guard(case)) is not None:
            raise GuardFailed(why, allowed=list(allowed(asking)))
    return Stage(move.to)


def camel(name: str) -> str:
    """Write a field's name as the API does."""
    first, *rest = name.split("_")
    return first + "".join(one.title() for one in rest)


def allowed(case: DealCase) -> tuple[str, ...]:
    """List the moves that somebody can ask for now, what they have to say with them left aside."""
    deal, paused = case.deal, is_paused(case.state, case.deal.id)
    return tuple(
        sorted(
            move.event
            for move in machines.DEAL.leaving(deal.stage)
            if case.actor in move.actors
            and move.event in set(DealMoveName)
            and (not paused or move.event in UNPAUSED)
            and guards.STANDS.get(move.event, _always)(case) is None
        )
    )


def _always(case: DealCase) -> None:
    del case
