"""What refunds and disputes do to the credits a payment bought (product/billing.md, 4.1).

Facts of a payment only ever grow (a join: the greatest refund, the furthest state of each dispute),
and what is to be taken back is a function of them; an entry moves the difference. So any order and
any repetition of what the processor says comes to the same.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tolsey.actors.organization.credits import (
    ALLOWANCE,
    ALLOWANCE_GRACE,
    Hold,
    twelve_months_after,
)
from tolsey.actors.organization.ledger.entries import Draft, opened
from tolsey.actors.organization.messages import Dispute, PaymentObserved, Standing
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.credits import CreditLot, PaymentFacts

RANKS: Final = {"open": 0, "lost": 1, "won": 2}
"""A lost dispute may be reopened and won (product/billing.md, 1.4), never the other way."""

REFUNDED: Final = "refunded"
CLAWBACK: Final = "clawback"


def observe(
    state: OrganizationState, message: PaymentObserved
) -> Decision[OrganizationState, Standing]:
    """Join what was observed into what is known, and take back or restore the difference.

    What a payment's own lots no longer have becomes a debt: the one way below zero.
    """
    draft = opened(state, message.at)
    known = draft.payments.get(message.payment_ref)
    joined = _join(known or _unknown(state.organization_id, message.payment_ref), message)
    if joined == known:
        return Decision(state, reply=state.credits.standing)
    before = {one.id for one in disputes_of(known)} if known else set()
    for dispute in disputes_of(joined):
        if dispute.id not in before:
            _audit(draft, "chargeback.received", joined, dispute=dispute.id, cents=dispute.amount)
    draft.keep_payment(_reconciled(draft, joined))
    key = f"payment:{message.payment_ref}:{draft.seq}"
    after, records = draft.close_if_moved(key, "payment", message.payment_ref)
    return Decision(after, reply=after.credits.standing, records=records)


def granted(draft: Draft, lot: CreditLot, payment_ref: str) -> None:
    """Remember what a payment was granted; what it lost before is taken back at once."""
    known = draft.payments.get(payment_ref) or _unknown(lot.organization_id, payment_ref)
    bought = replace(
        known,
        kind=lot.kind,
        granted=known.granted + lot.amount,
        granted_at=lot.granted_at,
        expires_at=lot.expires_at,
    )
    draft.keep_payment(_reconciled(draft, bought))


def refund_hold(draft: Draft, payment_ref: str) -> Hold | None:
    """Find what pins a payment's own credits while its refund is on its way."""
    begins = refund_hold_id(payment_ref, "")
    return next((hold for id, hold in draft.holds.items() if id.startswith(begins)), None)


def refund_hold_id(payment_ref: str, attempt: object) -> str:
    """Name such a hold: each attempt has its own, since one that has ended stays written down."""
    return f"refund:{payment_ref}:{attempt}"


def removals(payment: PaymentFacts) -> tuple[int, int]:
    """Tell what is to be taken back for refunds, and what for disputes: rounded up, once.

    The share of the payment that went back is the share of the credits that does; a payment whose
    total nobody has told counts as gone whole.
    """
    disputed = sum(one.amount for one in disputes_of(payment) if one.status != "won")
    gone = payment.refunded + disputed
    total = payment.total or gone
    if not gone:
        return 0, 0
    refund = -(-payment.granted * min(payment.refunded, total) // total)
    both = -(-payment.granted * min(gone, total) // total)
    return refund, both - refund


def disputes_of(payment: PaymentFacts) -> list[Dispute]:
    """List what is known of a payment's disputes."""
    return [Dispute(*one) for one in json.loads(payment.disputes)]


def _reconciled(draft: Draft, payment: PaymentFacts) -> PaymentFacts:
    refund, dispute = removals(payment)
    owed = {REFUNDED: refund - payment.refund_removed, CLAWBACK: dispute - payment.dispute_removed}
    if not any(owed.values()):
        return payment
    for into, of in ((REFUNDED, CLAWBACK), (CLAWBACK, REFUNDED)):
        shared = min(owed[into], -owed[of])
        if shared > 0:  # taken back already, and now for the other reason
            draft.reclassify(shared, into, of)
            owed[into] -= shared
            owed[of] += shared
    for account, amount in owed.items():
        if amount > 0:
            if kept := refund_hold(draft, payment.payment_ref):
                draft.end(kept, 0)  # what it was kept for has come
            rest = draft.burn(amount, account, lambda lot: lot.reference == payment.payment_ref)
            draft.owe(rest, account)
            _audit(draft, "clawback.applied", payment, amount=amount, cause=account, debt=rest)
        elif amount < 0:
            _restore(draft, payment, account, -amount)
    return replace(payment, refund_removed=refund, dispute_removed=dispute)


def _restore(draft: Draft, payment: PaymentFacts, account: str, amount: int) -> None:
    """Give back what was taken, until it would have expired.

    Where that moment, or the allowance's period, is over it lives twelve months more: other credits
    may have paid for it in the meantime.
    """
    if payment.granted_at is None or payment.expires_at is None or payment.kind is None:
        raise AssertionError("nothing is taken back of what was never granted")
    lot = CreditLot(
        payment.organization_id,
        f"restored:{draft.seq}:{account}",
        payment.kind,
        payment.payment_ref,
        amount=amount,
        remaining=amount,
        pinned=0,
        granted_at=payment.granted_at,
        expires_at=payment.expires_at,
        seq=draft.seq,
    )
    if draft.lapses_at(lot) <= draft.at or _is_reset(draft, lot):
        lot = replace(lot, kind="adjustment", expires_at=twelve_months_after(draft.at))
    draft.grant(lot, account)
    _audit(draft, "clawback.restored", payment, amount=amount, cause=account)


def _is_reset(draft: Draft, lot: CreditLot) -> bool:
    """Tell whether a lot is of an allowance in whose place there is another."""
    if lot.kind != ALLOWANCE or draft.period_end is None:
        return False
    # Before the end of an allowance was its period's, it was some days later.
    return lot.expires_at not in {draft.period_end, draft.period_end + ALLOWANCE_GRACE}


def _join(known: PaymentFacts, seen: PaymentObserved) -> PaymentFacts:
    disputes = {one.id: one for one in disputes_of(known)}
    for one in seen.disputes:
        other = disputes.get(one.id, one)
        further = max(one, other, key=lambda dispute: RANKS[dispute.status])
        disputes[one.id] = Dispute(one.id, max(one.amount, other.amount), further.status)
    return replace(
        known,
        credits=max(known.credits, seen.credits),
        total=max(known.total, seen.total),
        refunded=max(known.refunded, seen.refunded),
        disputes=_text(disputes[id] for id in sorted(disputes)),
    )


def _unknown(organization_id: str, payment_ref: str) -> PaymentFacts:
    return PaymentFacts(organization_id, payment_ref, None, 0, None, None, 0, 0, 0, "[]", 0, 0)


def _text(disputes: Iterable[Dispute]) -> str:
    return json.dumps([(one.id, one.amount, one.status) for one in disputes])


def _audit(draft: Draft, event: str, payment: PaymentFacts, **said: object) -> None:
    draft.records.append(
        audit_record(event, payment.payment_ref, payment.organization_id, "platform", **said)
    )
