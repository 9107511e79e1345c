"""What a subscription comes to: a join of what the processor said, in whatever order it said it.

A snapshot of a subscription counts by the time of its event, a payment by the period it paid for;
the plan in effect is a function of both (rules/payments#events). It rises only with a paid
invoice, and falls with the subscription.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.messages import ALIVE
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import (
    SubscribedItem,
    SubscriptionFacts,
)
from tolsey.actors.organization.months import month_of
from tolsey.actors.organization.plans import Cadence, Offer
from tolsey.storage.records.money.subscription import SubscriptionRecord

NEVER: Final = datetime.min.replace(tzinfo=UTC)
KEEPING: Final = frozenset({"incomplete", "trialing", "active", "past_due"})
"""The states that keep what was paid for: an invoice that is owed is dunned first."""
SETTLED: Final = frozenset({"trialing", "active"})
"""The states in which no invoice of a period is owed."""
SNAPSHOT: Final = (
    "customer_id",
    "subscription_id",
    "item_id",
    "price_id",
    "status",
    "subscribed_plan",
    "subscribed_cadence",
    "period_start",
    "period_end",
    "cancel_at_period_end",
    "schedule_id",
    "seen_at",
)


@dataclass(frozen=True, slots=True)
class ProvenPeriod:
    """What an invoice proves paid: an offer, from when until when."""

    offer: Offer
    begins_at: datetime
    ends_at: datetime


def allowance_end(paid: ProvenPeriod) -> datetime:
    """Tell until when the allowance of a payment stands: a year is granted month by month."""
    if paid.offer.cadence is Cadence.YEARLY:
        return min(paid.ends_at, month_of(paid.begins_at, paid.begins_at).ends_at)
    return paid.ends_at


def linked(
    known: SubscriptionRecord, customer_id: str | None, subscription_id: str
) -> SubscriptionRecord:
    """Remember what a checkout made; it says nothing of a subscription that is known already."""
    if known.subscription_id == subscription_id and known.customer_id is None:
        return replace(known, customer_id=customer_id)
    if known.subscription_id is None:
        return replace(
            known, customer_id=customer_id, subscription_id=subscription_id, status="incomplete"
        )
    return known


def observed(
    known: SubscriptionRecord,
    facts: SubscriptionFacts,
    item: SubscribedItem | None,
    offer: Offer | None,
    created_at: datetime,
    *,
    is_asked: bool = False,
) -> SubscriptionRecord:
    """Join a snapshot: the newest counts; of two of one second, one that is the same in any order.

    A subscription that has ended never comes back, whatever the times of its events. A snapshot
    that `is_asked` was told by the processor just now, whatever its event said.
    """
    before = _whose(known, facts.subscription_id, created_at)
    is_other_end = before is not known and facts.status not in ALIVE
    if before is None or (is_other_end and known.status in ALIVE):
        return known  # what ended beside the one that is paid for changes nothing
    seen_at = max(created_at, before.seen_at or NEVER)
    reported = replace(
        before,
        subscription_id=facts.subscription_id,
        customer_id=facts.customer_id or before.customer_id,
        status="canceled" if facts.ended_at is not None else facts.status,
        cancel_at_period_end=facts.cancel_at_period_end or facts.cancel_at is not None,
        schedule_id=facts.schedule_id,
        seen_at=seen_at,
    )
    if item is not None and offer is not None:
        reported = replace(
            reported,
            item_id=item.item_id,
            price_id=item.price_id,
            subscribed_plan=offer.plan.code,
            subscribed_cadence=offer.cadence.value,
            period_start=item.period_start,
            period_end=item.period_end,
        )
    is_newer = is_asked or _is_newer(reported, before, created_at)
    newest = reported if is_newer else _seen(before, seen_at)
    return _settled(newest, facts, seen_at if is_asked else created_at)


def paid(
    known: SubscriptionRecord, facts: InvoiceFacts, bought: ProvenPeriod, created_at: datetime
) -> SubscriptionRecord:
    """Join a payment: the period that began last counts, and of one moment the highest plan."""
    before = _whose(known, facts.subscription_id or "", created_at)
    if before is None:
        return known
    reported = replace(
        before,
        subscription_id=facts.subscription_id,
        customer_id=before.customer_id or facts.customer_id,
        status=before.status or "active",
        paid_at=max(created_at, before.paid_at or NEVER),
    )
    newest = replace(
        reported,
        paid_plan=bought.offer.plan.code,
        paid_cadence=bought.offer.cadence.value,
        paid_from=bought.begins_at,
        paid_until=bought.ends_at,
        paid_invoice_id=facts.invoice_id,
    )
    return _dunned(newest if _period(newest) > _period(reported) else reported)


def owed(
    known: SubscriptionRecord, facts: InvoiceFacts, created_at: datetime
) -> SubscriptionRecord:
    """Join an invoice that could not be collected; one that a later payment made good is forgotten.

    What failed last counts, and is owed since its invoice was written.
    """
    before = _whose(known, facts.subscription_id or "", created_at)
    if before is None or facts.invoice_id == before.paid_invoice_id:
        return known
    reported = replace(
        before,
        subscription_id=facts.subscription_id,
        customer_id=before.customer_id or facts.customer_id,
        status=before.status or "incomplete",
    )
    known_last = before.dunning_at or NEVER, before.dunning_invoice_id or ""
    if (created_at, facts.invoice_id) >= known_last:
        reported = replace(
            reported,
            dunning_since=facts.written_at or created_at,
            dunning_at=created_at,
            dunning_invoice_id=facts.invoice_id,
            dunning_url=facts.hosted_url,
        )
    return _dunned(reported)


def is_owed(known: SubscriptionRecord, at: datetime) -> bool:
    """Tell whether an invoice waits to be paid that failed: it may have been withdrawn since."""
    if known.status not in ALIVE or known.dunning_at is None:
        return False
    return not known.dunning_at < (known.settled_at or NEVER) <= at


def in_effect(known: SubscriptionRecord) -> Offer | None:
    """Tell the plan that the organization has by what is known; None is the free one."""
    if known.status not in KEEPING or known.paid_plan is None:
        return None
    bought = _offer(known.paid_plan, known.paid_cadence)
    if known.subscribed_plan is None or (known.seen_at or NEVER) <= (known.paid_at or NEVER):
        return bought
    subscribed = _offer(known.subscribed_plan, known.subscribed_cadence)
    return subscribed if subscribed.plan.rank < bought.plan.rank else bought


def event_of(before: SubscriptionRecord | None, after: SubscriptionRecord) -> str | None:
    """Name what became of the plan in effect (rules/plans#changing); None is nothing."""
    had = None if before is None else plans.held(before.plan, before.cadence)
    has = plans.held(after.plan, after.cadence)
    if had == has:
        return None
    if has is None:
        return "subscription.downgraded" if after.status in ALIVE else "subscription.cancelled"
    if had is None:
        is_first = before is None or before.paid_plan is None
        is_other = before is not None and before.subscription_id != after.subscription_id
        return "subscription.created" if is_first or is_other else "subscription.upgraded"
    goes_down = plans.change(had, has) is plans.Change.DOWNGRADE
    return "subscription.downgraded" if goes_down else "subscription.upgraded"


def is_doubled(before: SubscriptionRecord, after: SubscriptionRecord) -> bool:
    """Tell whether a subscription took the place of one that has not ended: both are being paid."""
    is_other = before.subscription_id not in {None, after.subscription_id}
    return is_other and before.status in ALIVE


def _whose(
    known: SubscriptionRecord, subscription_id: str, created_at: datetime
) -> SubscriptionRecord | None:
    """Find the record that an event is about: a blank one for a newer subscription, or none."""
    if known.subscription_id in {None, subscription_id}:
        return known
    latest = max(one or NEVER for one in (known.seen_at, known.paid_at, known.dunning_at))
    if created_at > latest or (created_at == latest and known.status not in ALIVE):
        return SubscriptionRecord(
            organization_id=known.organization_id, refused_changes=known.refused_changes
        )
    return None


def _is_newer(
    reported: SubscriptionRecord, before: SubscriptionRecord, created_at: datetime
) -> bool:
    """Tell whether a snapshot takes the place of the one before it."""
    is_over, was_over = reported.status not in ALIVE, _has_ended(before)
    if is_over != was_over:
        return is_over
    seen_at = before.seen_at or NEVER
    if is_over or created_at == seen_at:
        return _order(reported) > _order(_seen(before, reported.seen_at))
    return created_at > seen_at


def _has_ended(one: SubscriptionRecord) -> bool:
    return one.status is not None and one.status not in ALIVE


def _seen(one: SubscriptionRecord, at: datetime | None) -> SubscriptionRecord:
    return one if one.seen_at == at else replace(one, seen_at=at)


def _settled(
    known: SubscriptionRecord, facts: SubscriptionFacts, at: datetime
) -> SubscriptionRecord:
    """Join from when on nothing is owed: the processor tells of no invoice that is withdrawn.

    An active subscription owes nothing but the change that waits for its payment, until that is
    given up. Of all snapshots the latest such moment counts, so that their order does not.
    """
    if facts.status not in SETTLED or _has_ended(known):
        return known
    settled_at = facts.pending_until if facts.has_pending_update else at
    if settled_at is None or settled_at <= (known.settled_at or NEVER):
        return known
    return replace(known, settled_at=settled_at)


def _dunned(reported: SubscriptionRecord) -> SubscriptionRecord:
    """Forget what was owed before the last payment, or of the very invoice that is paid."""
    at, paid_at = reported.dunning_at, reported.paid_at or NEVER
    if at is None or (at > paid_at and reported.dunning_invoice_id != reported.paid_invoice_id):
        return reported
    return replace(
        reported, dunning_since=None, dunning_at=None, dunning_invoice_id=None, dunning_url=None
    )


def _order(one: SubscriptionRecord) -> tuple[Any, ...]:
    """Order snapshots of one second: the end comes last, then the later period, then the dearer."""
    rank = plans.BY_CODE[one.subscribed_plan].rank if one.subscribed_plan else -1
    return (
        one.status not in ALIVE,
        one.status != "incomplete",
        one.period_end or NEVER,
        rank,
        repr([getattr(one, name) for name in SNAPSHOT]),
    )


def _period(one: SubscriptionRecord) -> tuple[Any, ...]:
    """Order paid periods by when they began: one that began later may end earlier, as months do."""
    rank = plans.BY_CODE[one.paid_plan].rank if one.paid_plan else -1
    return (
        one.paid_from or NEVER,
        rank,
        one.paid_until or NEVER,
        one.paid_cadence or "",
        one.paid_invoice_id or "",
    )


def _offer(plan: str, cadence: str | None) -> Offer:
    return Offer(plans.BY_CODE[plan], Cadence(cadence or Cadence.MONTHLY))
