"""Decisions about the daily bonus (rules/plans#daily-bonus)."""

from datetime import UTC, date, datetime

from tolsey.actors.organization import plans
from tolsey.actors.organization.ledger import entries
from tolsey.actors.organization.ledger.credits import twelve_months_after
from tolsey.actors.organization.ledger.entries import Draft, Written
from tolsey.actors.organization.ledger.messages import GrantDailyBonus
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound
from tolsey.runtime.decision import Decision
from tolsey.storage.records.money.credits import CreditLot, DailyBonus

BONUS = "bonus"


def grant(state: OrganizationState, message: GrantDailyBonus) -> Decision[OrganizationState, bool]:
    """Grant a day's bonus, unless the day had it or the plan has none."""
    if not state.exists:
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    amount = _amount(state)
    if not amount or message.day <= state.credits.bonus_day:
        return Decision(state, reply=False)
    after, records = _given(entries.opened(state, message.at), message.day, amount)
    return Decision(after, reply=True, records=records)


def opened(state: OrganizationState, at: datetime, keep: str | None = None) -> Draft:
    """Start an entry that uses credits up, over those that the day's bonus is among.

    `keep` as in `entries.opened`.
    """
    draft = entries.opened(state, at, keep)
    amount = _amount(state)
    if not amount:
        return draft
    day = at.astimezone(UTC).date()
    if day <= draft.bonus_day:
        return draft
    after, records = _given(draft, day, amount)
    return Draft(after, at, records)


def _amount(state: OrganizationState) -> int:
    contract = state.contract
    return plans.daily_bonus(state.plan, contract.daily_bonus if contract else None)


def _given(draft: Draft, day: date, amount: int) -> Written:
    organization_id, key = draft.state.organization_id, f"bonus:{day}"
    lot = CreditLot(
        organization_id=organization_id,
        id=key,
        kind=BONUS,
        reference=None,
        amount=amount,
        remaining=amount,
        pinned=0,
        granted_at=draft.at,
        expires_at=twelve_months_after(draft.at),
        seq=draft.seq,
    )
    draft.grant(lot, "promo")
    draft.bonus_day = day
    draft.records.append(
        DailyBonus(
            organization_id=organization_id,
            day=day,
            plan=draft.state.plan,
            amount=amount,
            at=draft.at,
        )
    )
    return draft.close(key, BONUS)
