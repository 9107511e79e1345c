"""Decisions about holds: credits pinned before their cost is known (rules/credits#holds)."""

from dataclasses import replace

from tolsey.actors.organization.ledger import bonuses
from tolsey.actors.organization.ledger.credits import Hold
from tolsey.actors.organization.ledger.entries import Draft, ending, opened
from tolsey.actors.organization.ledger.messages import (
    ExtendHold,
    HoldCredits,
    ReleaseHold,
    Settled,
    SettleHold,
    Standing,
)
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Conflict, Unprocessable
from tolsey.runtime.decision import Decision


def hold(state: OrganizationState, message: HoldCredits) -> Decision[OrganizationState, Standing]:
    """Pin the estimate, or refuse; a repeat while the hold lives answers how things stand."""
    if message.hold_id in state.credits.holds:
        return Decision(state, reply=state.credits.standing)
    if message.amount <= 0:
        raise Unprocessable(
            "The hold amount must be greater than zero. Send a positive amount.",
            code="invalid_amount",
        )
    draft = bonuses.opened(state, message.at)
    draft.require(message.amount)
    lines = draft.pin(message.hold_id, message.amount)
    draft.keep_hold(
        Hold(
            id=message.hold_id,
            lines=lines,
            amount=message.amount,
            used=0,
            lease_until=message.lease_until,
        )
    )
    after, records = draft.close(f"hold:{message.hold_id}", "hold", message.hold_id)
    return Decision(after, reply=after.credits.standing, records=records)


def extend(state: OrganizationState, message: ExtendHold) -> Decision[OrganizationState, Standing]:
    """Pin more under a hold, lengthen its lease, and remember its cost so far."""
    if message.amount < 0:
        raise Unprocessable(
            "A hold can't be reduced. Send an amount at least as high as the current hold.",
            code="invalid_amount",
        )
    draft = bonuses.opened(state, message.at, keep=message.hold_id)
    known = _live(draft, message.hold_id)
    lease_until = max(known.lease_until, message.lease_until)
    longer = replace(known, used=max(known.used, message.used), lease_until=lease_until)
    if not message.amount:
        draft.keep_hold(longer)
        after, records = draft.unsealed()
        return Decision(after, reply=after.credits.standing, records=records)
    draft.require(message.amount)
    lines = (*known.lines, *draft.pin(known.id, message.amount))
    draft.keep_hold(replace(longer, lines=lines, amount=known.amount + message.amount))
    after, records = draft.close(f"extend:{known.id}:{draft.seq}", "extend", known.id)
    return Decision(after, reply=after.credits.standing, records=records)


def settle(state: OrganizationState, message: SettleHold) -> Decision[OrganizationState, Settled]:
    """Pay a hold's cost out of it and free the rest; cost above it is written off."""
    if message.cost < 0:
        raise Unprocessable(
            "The cost must not be negative. Send zero or a positive amount.", code="invalid_amount"
        )
    draft = opened(state, message.at, keep=message.hold_id)
    charged, written_off = draft.end(_live(draft, message.hold_id), message.cost)
    after, records = draft.close(*ending(message.hold_id, message.cost))
    reply = Settled(charged, written_off, after.credits.standing)
    return Decision(after, reply=reply, records=records)


def release(state: OrganizationState, message: ReleaseHold) -> Decision[OrganizationState, Settled]:
    """Free all of a hold."""
    return settle(state, SettleHold(message.hold_id, 0, message.at))


def _live(draft: Draft, hold_id: str) -> Hold:
    found = draft.holds.get(hold_id)
    if found is None:
        raise Conflict(
            "This hold doesn't exist or has ended. Create a new hold.", code="hold_closed"
        )
    return found
