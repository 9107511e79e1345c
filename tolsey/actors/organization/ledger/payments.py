"""What refunds and disputes do to the credits a payment bought (rules/credits#reversals).

Facts of a payment only ever grow (a join: the greatest refund, the furthest state of each dispute),
and what is to be taken back is a function of them; an entry moves the difference. So any order and
any repetition of what the processor says comes to the same.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tolsey.actors.organization.ledger import parts
from tolsey.actors.organization.ledger.credits import (
    ALLOWANCE,
    ALLOWANCE_GRACE,
    Hold,
    twelve_months_after,
)
from tolsey.actors.organization.ledger.entries import Draft, opened
from tolsey.actors.organization.ledger.messages import Dispute, PaymentObserved, Standing
from tolsey.actors.organization.ledger.parts import GrantPart
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.credits import CreditedPayment, CreditLot

RANKS: Final = {"open": 0, "lost": 1, "won": 2}
"""A lost dispute may be reopened and won (rules/payments#shapes), never the other way."""

REFUNDED: Final = "refunded"
CLAWBACK: Final = "clawback"
EXPIRED: Final = "expired"


def observe(
    state: OrganizationState, message: PaymentObserved
) -> Decision[OrganizationState, Standing]:
    """Join what was observed into what is known, and take back or restore the difference.

    What was spent of a payment's own lots becomes a debt: the one way below zero.
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


def granted(
    draft: Draft, lot: CreditLot, payment_ref: str, reaches: int = 0, expired: int = 0
) -> None:
    """Remember what a payment was granted; what it lost before is taken back at once.

    `reaches` is how far an allowance reaches with it; `expired` of it did so before it was told.
    """
    known = draft.payments.get(payment_ref) or _unknown(lot.organization_id, payment_ref)
    part = GrantPart(
        lot_id=lot.id,
        amount=lot.amount,
        granted_at=lot.granted_at,
        expires_at=lot.expires_at,
        reaches=reaches,
        expired=expired,
    )
    bought = replace(
        known,
        kind=lot.kind,
        granted=known.granted + lot.amount,
        granted_at=lot.granted_at,
        expires_at=lot.expires_at,
    )
    draft.keep_payment(_reconciled(draft, parts.kept(bought, [*parts.of_payment(known), part])))


def handed_over(draft: Draft, lot_id: str, payment_ref: str, allowance: int) -> bool:
    """Let a payment have what it paid for and a higher one of its period was granted before it.

    Each payment of a period is for what lies between the next lower allowance and its own, in
    whatever order they are told, so that a reversal takes back the same (rules/credits#reversals).
    """
    for payment in draft.payments.values():
        for part in parts.of_payment(payment):
            lot = _lot(draft, payment, part)
            below = allowance - (part.reaches - part.amount)
            amount = min(below, part.amount - lot.pinned)
            is_of_period = lot.expires_at == draft.period_end and payment.kind == ALLOWANCE
            if is_of_period and below < part.amount and amount > 0:
                own, expired = _divided(draft, payment, part, into=(lot_id, amount, payment_ref))
                granted(draft, own, payment_ref, allowance, expired)
                return True
    return False


def _divided(
    draft: Draft, payment: CreditedPayment, part: GrantPart, *, into: tuple[str, int, str]
) -> tuple[CreditLot, int]:
    """Make a lot of its own of a part of a grant; what was spent of the grant was spent of it first.

    Answers how much of the part had expired, too.
    """
    lot_id, amount, payment_ref = into
    less = _reconciled(draft, parts.without(payment, part.lot_id, amount))
    lot = replace(_lot(draft, less, part), amount=part.amount)
    (now,) = (one for one in parts.of_payment(less) if one.lot_id == part.lot_id)
    spent = part.amount - lot.remaining - now.expired - (now.removed - now.owed)
    unspent = max(0, amount - spent)
    own = replace(lot, id=lot_id, reference=payment_ref, amount=amount, granted_at=draft.at)
    own = replace(own, remaining=min(unspent, lot.free), pinned=0, seq=draft.seq)
    draft.split(lot, own)
    expired = min(unspent - own.remaining, now.expired)
    draft.keep_payment(parts.with_expired(less, part.lot_id, -expired))
    return own, expired


def refund_hold(draft: Draft, payment_ref: str) -> Hold | None:
    """Find what pins a payment's own credits while its refund is on its way."""
    begins = refund_hold_id(payment_ref, "")
    return next((hold for id, hold in draft.holds.items() if id.startswith(begins)), None)


def refund_hold_id(payment_ref: str, attempt: object) -> str:
    """Name such a hold: each attempt has its own, since one that has ended stays written down."""
    return f"refund:{payment_ref}:{attempt}"


def removals(payment: CreditedPayment) -> tuple[int, int]:
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


def disputes_of(payment: CreditedPayment) -> list[Dispute]:
    """List what is known of a payment's disputes."""
    return [Dispute(*one) for one in json.loads(payment.disputes)]


def _reconciled(draft: Draft, payment: CreditedPayment) -> CreditedPayment:
    """Take back what is to be, or give it back: of each grant of the payment its share."""
    refund, dispute = removals(payment)
    due = {REFUNDED: refund - payment.refund_removed, CLAWBACK: dispute - payment.dispute_removed}
    if not any(due.values()):
        return payment
    cause = max(due, key=lambda account: abs(due[account]))
    amount, owed_before = sum(due.values()), sum(one.owed for one in parts.of_payment(payment))
    if amount > 0 and (pinned := refund_hold(draft, payment.payment_ref)):
        draft.end(pinned, 0)  # what it was kept for has come
    of_payment = parts.of_payment(payment)
    reversed_parts = [
        _reversed(draft, payment, one, share, cause)
        for one, share in zip(of_payment, parts.shares(of_payment, refund + dispute), strict=True)
    ]
    _reclassify(draft, due, cause)
    if amount > 0:
        owed = sum(one.owed for one in reversed_parts) - owed_before
        _audit(draft, "clawback.applied", payment, amount=amount, cause=cause, debt=owed)
    elif amount < 0:
        _audit(draft, "clawback.restored", payment, amount=-amount, cause=cause)
    after = replace(payment, refund_removed=refund, dispute_removed=dispute)
    return parts.kept(after, reversed_parts)


def _reclassify(draft: Draft, due: dict[str, int], cause: str) -> None:
    """Book under its own reason what was moved under the other one, or was taken back for it."""
    (other,) = (account for account in due if account != cause)
    if due[other] > 0:
        draft.reclassify(due[other], other, cause)
    else:
        draft.reclassify(-due[other], cause, other)


def _reversed(
    draft: Draft, payment: CreditedPayment, part: GrantPart, share: int, account: str
) -> GrantPart:
    """Move the difference between what was taken of a grant and what is to be.

    What its lot still has goes first; where its time is over, what of it expired unspent: a reversal
    before would have taken those very credits. Only what was spent is owed (rules/credits#reversals).
    """
    lot = _lot(draft, payment, part)
    is_over = draft.lapses_at(lot) <= draft.at or _is_reset(draft, lot)
    more, expired = share - part.removed, part.expired
    if more > 0:
        absorbed = min(more, expired)
        draft.reclassify(absorbed, account, EXPIRED)
        rest = more - absorbed
        rest = draft.burn(rest, account, lambda one: one.reference == payment.payment_ref)
        draft.owe(rest, account)
        return replace(part, removed=share, owed=part.owed + rest, expired=expired - absorbed)
    returned = min(-more, part.owed)
    _give_back(draft, part.lot_id, returned, account)
    if is_over:  # it would have expired; nobody missed it meanwhile
        draft.reclassify(-more - returned, EXPIRED, account)
        expired += -more - returned
    else:
        draft.refill(lot, -more - returned, account)
    return replace(part, removed=share, owed=part.owed - returned, expired=expired)


def _give_back(draft: Draft, lot_id: str, amount: int, account: str) -> None:
    """Give back a debt: what is still owed is not any more, the rest was paid with other credits.

    That lives twelve months, since nobody can tell how long those would have.
    """
    left = amount - draft.forgive(amount, account)
    if left:
        lot = CreditLot(
            organization_id=draft.state.organization_id,
            id=f"restored:{draft.seq}:{lot_id}",
            kind="adjustment",
            reference=None,
            amount=left,
            remaining=left,
            pinned=0,
            granted_at=draft.at,
            expires_at=twelve_months_after(draft.at),
            seq=draft.seq,
        )
        draft.grant(lot, account)


def _lot(draft: Draft, payment: CreditedPayment, part: GrantPart) -> CreditLot:
    """Find the lot of a grant, which may have been used up and closed."""
    known = draft.lots.get(part.lot_id)
    if known is not None:
        return known
    return CreditLot(
        organization_id=payment.organization_id,
        id=part.lot_id,
        kind=payment.kind or "",
        reference=payment.payment_ref,
        amount=part.amount,
        remaining=0,
        pinned=0,
        granted_at=part.granted_at,
        expires_at=part.expires_at,
        seq=draft.seq,
    )


def _is_reset(draft: Draft, lot: CreditLot) -> bool:
    """Tell whether a lot is of an allowance in whose place there is another."""
    if lot.kind != ALLOWANCE or draft.period_end is None:
        return False
    # Before the end of an allowance was its period's, it was some days later.
    return lot.expires_at not in {draft.period_end, draft.period_end + ALLOWANCE_GRACE}


def _join(known: CreditedPayment, seen: PaymentObserved) -> CreditedPayment:
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


def _unknown(organization_id: str, payment_ref: str) -> CreditedPayment:
    return CreditedPayment(
        organization_id=organization_id,
        payment_ref=payment_ref,
        kind=None,
        granted=0,
        granted_at=None,
        expires_at=None,
        credits=0,
        total=0,
        refunded=0,
        disputes="[]",
        refund_removed=0,
        dispute_removed=0,
    )


def _text(disputes: Iterable[Dispute]) -> str:
    return json.dumps([(one.id, one.amount, one.status) for one in disputes])


def _audit(draft: Draft, event: str, payment: CreditedPayment, **said: object) -> None:
    draft.records.append(
        audit_record(event, payment.payment_ref, payment.organization_id, "platform", **said)
    )
