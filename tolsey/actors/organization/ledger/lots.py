"""Decisions that grant, use up and end credits (rules/credits#grants)."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from tolsey.actors.organization import plans
from tolsey.actors.organization.ledger import bonuses, payments
from tolsey.actors.organization.ledger.credits import ALLOWANCE, twelve_months_after
from tolsey.actors.organization.ledger.entries import Draft, lapsed, opened
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    CreditsView,
    ExpireCredits,
    GrantCredits,
    ReadCredits,
    ResetAllowance,
    SpendCredits,
    Standing,
)
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound, Unprocessable
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.credits import CreditLot, MonthlyReset

SOURCES = {"purchase": "cash"}
"""The account a kind of grant comes out of; what is not bought is promised."""


def grant(state: OrganizationState, message: GrantCredits) -> Decision[OrganizationState, Standing]:
    """Grant a lot; debts are paid of it first, and what its payment lost already is taken back."""
    _require_positive(message.amount)
    draft = opened(state, message.at)
    _open_lot(
        draft,
        message.key,
        message.kind,
        amount=message.amount,
        expires_at=message.expires_at,
        reference=message.reference,
    )
    if message.kind == "purchase":
        subject = message.reference or message.key
        _audit(draft, "purchase.completed", subject, amount=message.amount, key=message.key)
    return _decided(draft, message.key, message.kind, message.reference)


def reset_allowance(
    state: OrganizationState, message: ResetAllowance
) -> Decision[OrganizationState, Standing]:
    """Start a period's allowance, or top it up within the period; see `ResetAllowance`."""
    draft = opened(state, message.at)
    same = message.period_end == draft.period_end
    older = not same and _is_older(draft, message)
    amount = plans.top_up(draft.allowance if same else 0, message.allowance)
    if older:
        return Decision(state, reply=state.credits.standing)
    if same and not amount:
        return _paid_below(state, draft, message)
    if not same:
        for lot in [one for one in draft.lots.values() if one.kind == ALLOWANCE]:
            draft.expire_lot(lot)
        draft.records.append(
            MonthlyReset(
                organization_id=state.organization_id,
                period_start=message.period_start,
                period_end=message.period_end,
                plan=message.plan,
                at=message.at,
            )
        )
        _audit(
            draft,
            "monthly.reset",
            message.plan,
            amount=amount,
            periodEnd=message.period_end.isoformat(),
        )
    began_at = draft.period_start if same else None
    draft.period_start = max(began_at or message.period_start, message.period_start)
    draft.period_end, draft.allowance = message.period_end, message.allowance
    draft.renewed_by = message.renewed_by
    if amount:
        _open_lot(
            draft,
            message.key,
            ALLOWANCE,
            amount=amount,
            # It ends with its period, which tells whose it is, however early that was told; what no
            # period ends stands twelve months (rules/plans#allowance).
            expires_at=message.period_end,
            reference=message.reference,
            reaches=message.allowance,
        )
    return _decided(draft, message.key, ALLOWANCE if same else "reset", message.reference)


def _paid_below(
    state: OrganizationState, draft: Draft, message: ResetAllowance
) -> Decision[OrganizationState, Standing]:
    """Let a payment of the period that is told late have its part of what was granted already."""
    if message.reference is None or not payments.handed_over(
        draft, message.key, message.reference, message.allowance
    ):
        return Decision(state, reply=state.credits.standing)
    after, records = draft.close_if_moved(message.key, ALLOWANCE, message.reference)
    return Decision(after, reply=after.credits.standing, records=records)


def unrenewed(
    state: OrganizationState, renewed_by: str, at: datetime
) -> Decision[OrganizationState, Standing]:
    """Let the allowance end with its period: whoever was to renew it is known to have ended."""
    if state.credits.renewed_by != renewed_by:
        return Decision(state, reply=state.credits.standing)
    alone = replace(state.credits, renewed_by=None, due_at=min(state.credits.due_at, at))
    after, records = lapsed(state.with_credits(alone), at)
    return Decision(after, reply=after.credits.standing, records=records)


def _is_older(draft: Draft, message: ResetAllowance) -> bool:
    """Tell whether a period began before the one that stands.

    It may end later all the same: months differ in length. Between two payments of one period no
    other begins, so that it does not matter which of them is heard of first.
    """
    if draft.period_end is None:
        return False
    if draft.period_start is None:  # it was written before beginnings were
        return message.period_end < draft.period_end
    known = draft.period_start, draft.period_end
    return (message.period_start, message.period_end) < known


def adjust(
    state: OrganizationState, message: AdjustCredits
) -> Decision[OrganizationState, Standing]:
    """Give credits for twelve months, or take some that are available: never below zero."""
    draft = opened(state, message.at)
    if message.amount > 0:
        ends = twelve_months_after(message.at)
        _open_lot(
            draft,
            message.key,
            "adjustment",
            amount=message.amount,
            expires_at=ends,
            reference=None,
        )
    else:
        _require_positive(-message.amount)
        draft.require(-message.amount)
        draft.burn(-message.amount, "promo")
    _audit(
        draft,
        "manual.adjustment",
        message.key,
        actor=message.user_id,
        amount=message.amount,
        reason=message.reason,
    )
    return _decided(draft, message.key, "adjustment", None)


def spend(state: OrganizationState, message: SpendCredits) -> Decision[OrganizationState, Standing]:
    """Use up what a thing costs, or refuse all of it; the day's bonus is there to be used."""
    _require_positive(message.amount)
    draft = bonuses.opened(state, message.at)
    draft.require(message.amount)
    draft.burn(message.amount, "usage")
    return _decided(draft, message.key, "spend", message.reason)


def expire(
    state: OrganizationState, message: ExpireCredits
) -> Decision[OrganizationState, Standing]:
    """Let go of what is due; nothing that is pinned."""
    if not state.exists or message.at < state.credits.due_at:
        return Decision(state, reply=state.credits.standing)
    after, records = lapsed(state, message.at)
    return Decision(after, reply=after.credits.standing, records=records)


def read(
    state: OrganizationState, message: ReadCredits
) -> Decision[OrganizationState, CreditsView]:
    """Show the credits as they are now; what is due and still stands in the books is left out."""
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    current = state
    if message.at >= state.credits.due_at:
        current, _ = lapsed(state, message.at)
    return Decision(state, reply=current.credits.view(message))


def _open_lot(
    draft: Draft,
    id: str,
    kind: str,
    *,
    amount: int,
    expires_at: datetime,
    reference: str | None,
    reaches: int = 0,
) -> None:
    lot = CreditLot(
        organization_id=draft.state.organization_id,
        id=id,
        kind=kind,
        reference=reference,
        amount=amount,
        remaining=amount,
        pinned=0,
        granted_at=draft.at,
        expires_at=expires_at,
        seq=draft.seq,
    )
    draft.grant(lot, SOURCES.get(kind, "promo"))
    if reference is not None:
        payments.granted(draft, lot, reference, reaches)


def _audit(draft: Draft, event: str, subject: str, *, actor: str = "system", **said: Any) -> None:
    organization_id = draft.state.organization_id
    draft.records.append(audit_record(event, subject, organization_id, actor, **said))


def _decided(
    draft: Draft, key: str, kind: str, reference: str | None
) -> Decision[OrganizationState, Standing]:
    after, records = draft.close(key, kind, reference)
    return Decision(after, reply=after.credits.standing, records=records)


def _require_positive(amount: int) -> None:
    if amount <= 0:
        raise Unprocessable(
            "The credit amount must be greater than zero. Send a positive amount.",
            code="invalid_amount",
        )
