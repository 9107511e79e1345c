"""What a payment remembers of each of its grants (rules/credits#reversals)."""

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from itertools import accumulate, pairwise
from typing import Final

from tolsey.storage.records.money.credits import CreditedPayment


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPart:
    """One grant of a payment, in micro-USD: what was taken back of it, owed, and what expired.

    An allowance `reaches` so far within its period: the grant is what it added below that. Of what was `removed`, `owed` had been spent and became a debt; `expired` is what nobody spent
    before the grant's time was over and no reversal has taken since.
    """

    lot_id: str
    amount: int
    granted_at: datetime
    expires_at: datetime
    reaches: int = 0
    removed: int = 0
    owed: int = 0
    expired: int = 0


COUNTED: Final = ("reaches", "removed", "owed", "expired")
"""What may be missing at the end of a grant that an older release wrote down."""


def of_payment(payment: CreditedPayment) -> list[GrantPart]:
    """List what a payment granted, in the order in which it did."""
    return [
        GrantPart(
            lot_id=lot,
            amount=amount,
            granted_at=datetime.fromisoformat(at),
            expires_at=datetime.fromisoformat(ends),
            **dict(zip(COUNTED, counted, strict=False)),
        )
        for lot, amount, at, ends, *counted in json.loads(payment.parts)
    ]


def kept(payment: CreditedPayment, parts: Iterable[GrantPart]) -> CreditedPayment:
    """Write down what is known of a payment's grants."""
    return replace(payment, parts=json.dumps([astuple(one) for one in parts], default=str))


def without(payment: CreditedPayment, lot_id: str, amount: int) -> CreditedPayment:
    """Forget a part of a grant: another payment paid for it."""
    return kept(
        replace(payment, granted=payment.granted - amount),
        [
            replace(one, amount=one.amount - amount) if one.lot_id == lot_id else one
            for one in of_payment(payment)
        ],
    )


def with_expired(payment: CreditedPayment, lot_id: str, amount: int) -> CreditedPayment:
    """Remember what of a payment's lot expired unspent."""
    return kept(
        payment,
        [
            replace(one, expired=one.expired + amount) if one.lot_id == lot_id else one
            for one in of_payment(payment)
        ],
    )


def shares(parts: Iterable[GrantPart], removed: int) -> list[int]:
    """Share out what is to be taken back of a payment among its grants, by their size.

    Each month of a year that was paid at once loses its own share, so that what is taken of the
    month that runs does not depend on whether the months before it were over.
    """
    until = [0, *accumulate(one.amount for one in parts)]
    granted = until[-1]
    if not granted:
        return []
    return [
        -(-removed * after // granted) - -(-removed * before // granted)
        for before, after in pairwise(until)
    ]
