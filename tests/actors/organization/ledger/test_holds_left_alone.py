"""Holds that nobody ended: how their entries tell what was used, and what expires."""

from collections.abc import Sequence

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, days, purchase, seen
from tolsey.actors import chain
from tolsey.actors.organization.ledger.messages import (
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    HoldCredits,
)
from tolsey.storage.records.money.credits import CreditPosting

LATER = AT + days(0.01)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def moves_of(postings: Sequence[CreditPosting]) -> list[chain.Move]:
    return [(one.debit, one.credit, one.amount) for one in postings]


def test_what_was_used_under_holds_left_alone_is_told_apart_from_what_expires(
    ledger: Ledger,
) -> None:
    ledger.take(
        GrantCredits(key="b", kind="bonus", amount=10 * DOLLAR, at=AT, expires_at=AT + days(1))
    )
    for name, amount, used in (("one", 5, 2), ("two", 3, 1), ("three", 1, 0)):
        ledger.take(HoldCredits(hold_id=name, amount=amount * DOLLAR, at=AT, lease_until=LATER))
        ledger.take(
            ExtendHold(hold_id=name, amount=0, at=AT, lease_until=LATER, used=used * DOLLAR)
        )
    ledger.crash()
    assert ledger.take(ExpireCredits(AT + days(2))).balance == 0
    answered = [
        (entry.key, entry.kind, entry.reference, chain.balance_moved(moves_of(postings)))
        for entry, postings in ledger.pairs[4:]
    ]
    assert sorted(answered) == [
        ("lapse:8", "lapse", None, -7 * DOLLAR),
        ("settle:one", "settle", "one", -2 * DOLLAR),
        ("settle:three", "release", "three", 0),
        ("settle:two", "settle", "two", -1 * DOLLAR),
    ]
    assert ledger.entries[-1].kind == "lapse"
    assert ledger.accounts == {"promo": -10 * DOLLAR, "usage": 3 * DOLLAR, "expired": 7 * DOLLAR}
    ledger.check()


def test_a_debt_is_paid_from_what_holds_left_alone_set_free(ledger: Ledger) -> None:
    ledger.take(purchase("pi_1", 10))
    ledger.take(HoldCredits(hold_id="one", amount=4 * DOLLAR, at=AT, lease_until=LATER))
    ledger.take(HoldCredits(hold_id="two", amount=6 * DOLLAR, at=AT, lease_until=LATER))
    ledger.take(seen("pi_1", 1_000, 800))
    assert ledger.state.credits.debt == 8 * DOLLAR
    assert ledger.take(ExpireCredits(LATER)).available == 2 * DOLLAR
    assert [entry.key for entry in ledger.entries[-3:]] == ["settle:one", "settle:two", "lapse:7"]
    ledger.check()
