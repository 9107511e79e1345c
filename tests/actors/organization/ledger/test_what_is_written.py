"""Each act on credits is one entry under its own name, told to auditors with what it came to."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.actors.organization.books import AT, DOLLAR, Ledger, Unrenewed, days, purchase, seen
from tests.actors.organization.ledger.test_ledger import END, LATER
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    Dispute,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    GrantDailyBonus,
    HoldCredits,
    ReadCredits,
    ReleaseHold,
    ResetAllowance,
    Settled,
    SettleHold,
    SpendCredits,
    Standing,
)
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound, Refusal
from tolsey.storage.records.money.credits import CreditLot, DailyBonus, MonthlyReset

MONTH = ResetAllowance(
    key="month",
    plan="pro",
    period_start=END - days(31),
    period_end=END,
    allowance=49 * DOLLAR,
    at=AT,
    reference="in_1",
    renewed_by="sub_1",
)
HELD = HoldCredits(hold_id="h", amount=5 * DOLLAR, at=AT, lease_until=LATER)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger("pro")


def entries(ledger: Ledger) -> list[tuple[str, str, str | None]]:
    return [(one.key, one.kind, one.reference) for one in ledger.entries]


def moves(ledger: Ledger) -> list[tuple[str, str, int]]:
    return [(one.debit, one.credit, one.amount // DOLLAR) for one in ledger.postings]


def audited(ledger: Ledger) -> list[tuple[str, str, str, dict[str, Any]]]:
    assert {one.organization_id for one in ledger.audit} <= {"org_1"}
    return [(one.event, one.subject, one.actor, json.loads(one.metadata)) for one in ledger.audit]


def lot(id: str, kind: str, dollars: int, **fields: Any) -> CreditLot:
    amount = dollars * DOLLAR
    made = CreditLot(
        organization_id="org_1",
        id=id,
        kind=kind,
        reference=None,
        amount=amount,
        remaining=amount,
        pinned=0,
        granted_at=AT,
        expires_at=AT.replace(year=AT.year + 1),
        seq=1,
    )
    return replace(made, **fields)


def test_the_first_use_of_a_day_brings_its_bonus_and_is_written_beside_it(ledger: Ledger) -> None:
    standing = ledger.take(SpendCredits(key="s", amount=DOLLAR // 2, reason="chat", at=AT))
    assert standing == Standing(seq=2, balance=DOLLAR // 2, available=DOLLAR // 2, held=0)
    assert entries(ledger) == [("bonus:2026-07-01", "bonus", None), ("s", "spend", "chat")]
    assert ledger.bonuses == [
        DailyBonus(organization_id="org_1", day=AT.date(), plan="pro", amount=DOLLAR, at=AT)
    ]
    given = lot("bonus:2026-07-01", "bonus", 1, remaining=DOLLAR // 2, seq=2)
    assert list(ledger.state.credits.lots.values()) == [given]
    assert ledger.take(GrantDailyBonus(AT.date(), AT)) is False
    tomorrow = AT + days(1)
    assert ledger.take(GrantDailyBonus(tomorrow.date(), tomorrow)) is True
    nextday = AT + days(2)
    ledger.take(HoldCredits(hold_id="h", amount=1, at=nextday - days(0.6), lease_until=nextday))
    ledger.take(ExtendHold(hold_id="h", amount=1, at=nextday, lease_until=nextday + days(1)))
    assert [one.day for one in ledger.bonuses] == [(AT + days(n)).date() for n in range(3)]
    ledger.check()


def test_holds_are_written_as_what_becomes_of_them() -> None:
    ledger = Ledger()
    ledger.take(purchase("pi_1", 20))
    ledger.take(HELD)
    assert ledger.take(replace(HELD, amount=DOLLAR)) == Standing(
        seq=2, balance=20 * DOLLAR, available=15 * DOLLAR, held=5 * DOLLAR
    )
    longer = ExtendHold(hold_id="h", amount=0, at=AT, lease_until=LATER + days(1), used=DOLLAR)
    assert ledger.take(longer) == Standing(
        seq=2, balance=20 * DOLLAR, available=15 * DOLLAR, held=5 * DOLLAR
    )
    more = ExtendHold(hold_id="h", amount=2 * DOLLAR, at=AT, lease_until=LATER)
    assert ledger.take(more) == Standing(
        seq=3, balance=20 * DOLLAR, available=13 * DOLLAR, held=7 * DOLLAR
    )
    (held,) = ledger.state.credits.holds.values()
    assert (held.used, held.lease_until) == (DOLLAR, LATER + days(1))
    # Whoever says that it is still at work keeps a hold whose lease was over.
    late = LATER + days(2)
    assert ledger.take(replace(more, at=late, lease_until=late)).held == 9 * DOLLAR
    assert ledger.take(SettleHold("h", 10 * DOLLAR, late)) == Settled(
        9 * DOLLAR, DOLLAR, Standing(seq=5, balance=11 * DOLLAR, available=11 * DOLLAR, held=0)
    )
    ledger.take(replace(HELD, hold_id="g", at=late, lease_until=late + days(1)))
    assert ledger.take(ReleaseHold("g", late)) == Settled(
        0, 0, Standing(seq=7, balance=11 * DOLLAR, available=11 * DOLLAR, held=0)
    )
    assert entries(ledger)[1:] == [
        ("hold:h", "hold", "h"),
        ("extend:h:3", "extend", "h"),
        ("extend:h:4", "extend", "h"),
        ("settle:h", "settle", "h"),
        ("hold:g", "hold", "g"),
        ("settle:g", "release", "g"),
    ]
    assert moves(ledger)[1:] == [
        ("held:h", "lot:purchase:pi_1", 5),
        ("held:h", "lot:purchase:pi_1", 2),
        ("held:h", "lot:purchase:pi_1", 2),
        ("usage", "held:h", 9),
        ("usage", "writeoff", 1),
        ("held:g", "lot:purchase:pi_1", 5),
        ("lot:purchase:pi_1", "held:g", 5),
    ]
    ledger.check()


def test_adjustments_are_written_with_who_made_them_and_why() -> None:
    ledger = Ledger()
    given = AdjustCredits(key="adj_1", amount=1, reason="a gift", user_id="usr_9", at=AT)
    assert ledger.take(given) == Standing(seq=1, balance=1, available=1, held=0)
    taken = AdjustCredits(key="adj_2", amount=-1, reason="taken back", user_id="usr_8", at=AT)
    granted = lot("adj_1", "adjustment", 0, amount=1, remaining=1)
    assert list(ledger.state.credits.lots.values()) == [granted]
    assert ledger.take(taken) == Standing(seq=2, balance=0, available=0, held=0)
    assert entries(ledger) == [("adj_1", "adjustment", None), ("adj_2", "adjustment", None)]
    assert [(one.debit, one.credit) for one in ledger.postings] == [
        ("lot:adj_1", "promo"),
        ("promo", "lot:adj_1"),
    ]
    assert audited(ledger) == [
        ("manual.adjustment", "adj_1", "usr_9", {"amount": 1, "reason": "a gift"}),
        ("manual.adjustment", "adj_2", "usr_8", {"amount": -1, "reason": "taken back"}),
    ]


def test_a_month_is_written_with_its_payment_and_a_top_up_beside_it() -> None:
    ledger = Ledger()
    assert ledger.take(MONTH) == Standing(seq=1, balance=49 * DOLLAR, available=49 * DOLLAR, held=0)
    own = lot("month", "allowance", 49, reference="in_1", expires_at=END)
    assert list(ledger.state.credits.lots.values()) == [own]
    raised = replace(MONTH, key="more", allowance=149 * DOLLAR, plan="max_5x", reference="in_2")
    assert ledger.take(raised) == Standing(
        seq=2, balance=149 * DOLLAR, available=149 * DOLLAR, held=0
    )
    assert ledger.take(replace(raised, key="again")) == Standing(
        seq=2, balance=149 * DOLLAR, available=149 * DOLLAR, held=0
    )
    following = replace(
        MONTH, key="next", period_start=END, period_end=END + days(31), at=END, reference="in_3"
    )
    assert ledger.take(following) == Standing(
        seq=3, balance=49 * DOLLAR, available=49 * DOLLAR, held=0
    )
    assert entries(ledger) == [
        ("month", "reset", "in_1"),
        ("more", "allowance", "in_2"),
        ("next", "reset", "in_3"),
    ]
    assert moves(ledger) == [
        ("lot:month", "promo", 49),
        ("lot:more", "promo", 100),
        ("expired", "lot:month", 49),
        ("expired", "lot:more", 100),
        ("lot:next", "promo", 49),
    ]
    assert ledger.resets == [
        MonthlyReset(
            organization_id="org_1", period_start=END - days(31), period_end=END, plan="pro", at=AT
        ),
        MonthlyReset(
            organization_id="org_1", period_start=END, period_end=END + days(31), plan="pro", at=END
        ),
    ]
    ends = [{"amount": 49 * DOLLAR, "periodEnd": at.isoformat()} for at in (END, END + days(31))]
    assert audited(ledger) == [("monthly.reset", "pro", "system", said) for said in ends]


def test_a_purchase_is_told_by_its_payment_or_else_by_its_key() -> None:
    ledger = Ledger()
    ledger.take(purchase("pi_1", 5))
    ledger.take(replace(purchase("pi_2", 6), reference=None))
    ledger.take(GrantCredits(key="gift", kind="bonus", amount=DOLLAR, at=AT, expires_at=END))
    assert entries(ledger) == [
        ("purchase:pi_1", "purchase", "pi_1"),
        ("purchase:pi_2", "purchase", None),
        ("gift", "bonus", None),
    ]
    assert [one.credit for one in ledger.postings] == ["cash", "cash", "promo"]
    assert audited(ledger) == [
        (
            *("purchase.completed", "pi_1", "system"),
            {"amount": 5 * DOLLAR, "key": "purchase:pi_1"},
        ),
        (
            *("purchase.completed", "purchase:pi_2", "system"),
            {"amount": 6 * DOLLAR, "key": "purchase:pi_2"},
        ),
    ]


def test_reversals_are_written_with_their_cause_and_what_was_owed() -> None:
    ledger = Ledger()
    ledger.take(purchase("pi_1", 10))
    ledger.take(SpendCredits(key="s", amount=8 * DOLLAR, reason="chat", at=AT))
    opened = Dispute("dp_1", 500, "open")
    assert ledger.take(seen("pi_1", 1_000, 0, opened)) == Standing(
        seq=3, balance=-3 * DOLLAR, available=-3 * DOLLAR, held=0
    )
    assert ledger.take(seen("pi_1", 1_000, 250, opened)).available == -5_500_000
    # A dispute whose credits a refund takes instead moves from one account to the other.
    assert ledger.take(seen("pi_1", 1_000, 1_000, opened)).available == -8 * DOLLAR
    won = replace(opened, status="won")
    assert ledger.take(seen("pi_1", 1_000, 1_000, won)).available == -8 * DOLLAR
    assert entries(ledger)[2:] == [(f"payment:pi_1:{n}", "payment", "pi_1") for n in (3, 4, 5)]
    assert [(one.debit, one.credit, one.amount) for one in ledger.postings[2:]] == [
        ("clawback", "lot:purchase:pi_1", 2 * DOLLAR),
        ("clawback", "debt", 3 * DOLLAR),
        ("refunded", "debt", 2_500_000),
        ("refunded", "debt", 2_500_000),
        ("refunded", "clawback", 5 * DOLLAR),
    ]
    assert audited(ledger)[1:] == [
        ("chargeback.received", "pi_1", "platform", {"dispute": "dp_1", "cents": 500}),
        (
            *("clawback.applied", "pi_1", "platform"),
            {"amount": 5 * DOLLAR, "cause": "clawback", "debt": 3 * DOLLAR},
        ),
        (
            *("clawback.applied", "pi_1", "platform"),
            {"amount": 2_500_000, "cause": "refunded", "debt": 2_500_000},
        ),
        (
            *("clawback.applied", "pi_1", "platform"),
            {"amount": 2_500_000, "cause": "refunded", "debt": 2_500_000},
        ),
    ]
    ledger.check()


def test_what_a_won_dispute_gives_back_beside_its_debt_is_an_adjustment() -> None:
    ledger = Ledger()
    ledger.take(purchase("pi_1", 10))
    ledger.take(SpendCredits(key="s", amount=10 * DOLLAR, reason="chat", at=AT))
    opened = Dispute("dp_1", 1_000, "open")
    ledger.take(seen("pi_1", 1_000, 0, opened))
    ledger.take(purchase("pi_2", 4))
    ledger.take(seen("pi_1", 1_000, 0, replace(opened, status="won")))
    restored = lot("restored:5:purchase:pi_1", "adjustment", 4, seq=5)
    assert list(ledger.state.credits.lots.values()) == [restored]
    assert audited(ledger)[-1] == (
        *("clawback.restored", "pi_1", "platform"),
        {"amount": 10 * DOLLAR, "cause": "clawback"},
    )
    assert [(one.debit, one.credit, one.amount // DOLLAR) for one in ledger.postings[-2:]] == [
        ("debt", "clawback", 6),
        ("lot:restored:5:purchase:pi_1", "clawback", 4),
    ]
    ledger.check()


def test_what_lapses_and_holds_left_alone_are_entries_of_their_own() -> None:
    ledger = Ledger()
    ledger.take(GrantCredits(key="gift", kind="bonus", amount=9 * DOLLAR, at=AT, expires_at=END))
    ledger.take(HELD)
    ledger.take(replace(HELD, hold_id="g", amount=DOLLAR))
    ledger.take(ExtendHold(hold_id="h", amount=0, at=AT, lease_until=LATER, used=2 * DOLLAR))
    assert ledger.take(ExpireCredits(AT)) == Standing(
        seq=3, balance=9 * DOLLAR, available=3 * DOLLAR, held=6 * DOLLAR
    )
    assert ledger.take(ExpireCredits(END)) == Standing(seq=6, balance=0, available=0, held=0)
    assert entries(ledger)[3:] == [
        ("settle:h", "settle", "h"),
        ("settle:g", "release", "g"),
        ("lapse:6", "lapse", None),
    ]
    ledger.check()


def test_a_hold_that_lives_on_writes_down_the_end_of_one_that_was_left_alone() -> None:
    ledger = Ledger()
    ledger.take(purchase("pi_1", 20))
    for name in "gh":
        ledger.take(replace(HELD, hold_id=name))
    ledger.take(ExtendHold(hold_id="h", amount=0, at=LATER, lease_until=LATER + days(1)))
    assert entries(ledger)[3:] == [("settle:g", "release", "g")]
    ledger.check()


def test_a_hold_of_several_lots_is_paid_out_of_them_in_order() -> None:
    ledger = Ledger()
    ledger.take(purchase("pi_1", 10))
    ledger.take(purchase("pi_2", 10, LATER))
    ledger.take(replace(HELD, amount=15 * DOLLAR, at=LATER, lease_until=END))
    ledger.take(SettleHold("h", 12 * DOLLAR, LATER))
    assert {one.id: one.remaining // DOLLAR for one in ledger.lots.values()} == {
        "purchase:pi_1": 0,
        "purchase:pi_2": 8,
    }
    ended = ledger.holds["h"]
    assert (ended.organization_id, ended.used, ended.closed_at) == ("org_1", 12 * DOLLAR, LATER)
    ledger.check()


def test_what_is_pinned_of_a_month_ends_as_soon_as_it_is_free_after_another_began() -> None:
    ledger = Ledger()
    ledger.take(MONTH)
    ledger.take(replace(HELD, lease_until=END))
    ledger.take(replace(MONTH, key="next", period_start=LATER, period_end=END + days(9), at=LATER))
    assert ledger.lots["month"].expires_at == LATER
    assert ledger.take(ReleaseHold("h", LATER)).standing.available == 49 * DOLLAR
    ledger.check()


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (
            replace(HELD, amount=0),
            (
                422,
                "invalid_amount",
                "The hold amount must be greater than zero. Send a positive amount.",
            ),
        ),
        (
            ExtendHold(hold_id="h", amount=-1, at=AT, lease_until=AT),
            (
                422,
                "invalid_amount",
                "A hold can't be reduced. Send an amount at least as high as the current hold.",
            ),
        ),
        (
            SettleHold("h", -1, AT),
            (
                422,
                "invalid_amount",
                "The cost must not be negative. Send zero or a positive amount.",
            ),
        ),
        (
            SettleHold("x", 0, AT),
            (409, "hold_closed", "This hold doesn't exist or has ended. Create a new hold."),
        ),
        (
            SpendCredits(key="s", amount=0, reason="chat", at=AT),
            (
                422,
                "invalid_amount",
                "The credit amount must be greater than zero. Send a positive amount.",
            ),
        ),
        (
            AdjustCredits(key="a", amount=0, reason="none", user_id="usr_1", at=AT),
            (
                422,
                "invalid_amount",
                "The credit amount must be greater than zero. Send a positive amount.",
            ),
        ),
        (
            SpendCredits(key="s", amount=1, reason="chat", at=AT),
            (
                402,
                "insufficient_credits",
                "Your credit balance is too low for this. Buy credits or upgrade your plan.",
            ),
        ),
    ],
)
def test_a_refusal_says_what_to_do(message: Any, refusal: tuple[int, str, str]) -> None:
    with pytest.raises(Refusal) as caught:
        Ledger().take(message)
    assert (caught.value.status, caught.value.code, caught.value.detail) == refusal


@pytest.mark.parametrize(
    "message",
    [
        GrantDailyBonus(AT.date(), AT),
        SpendCredits(key="s", amount=1, reason="chat", at=AT),
        ReadCredits(AT),
        HELD,
    ],
)
def test_an_organization_that_is_not_has_no_credits(message: Any) -> None:
    ledger = Ledger()
    ledger.state = OrganizationState("org_1", exists=False)
    with pytest.raises(NotFound) as caught:
        ledger.take(message)
    assert (
        caught.value.detail
        == "This organization doesn't exist, or you don't belong to it. Check the id."
    )
    assert ledger.take(ExpireCredits(END)) == Standing(seq=0, balance=0, available=0, held=0)


def test_the_end_of_another_subscription_changes_nothing(ledger: Ledger) -> None:
    ledger.take(MONTH)
    assert ledger.take(Unrenewed("sub_2", AT)) == Standing(
        seq=1, balance=49 * DOLLAR, available=49 * DOLLAR, held=0
    )
    assert ledger.state.credits.renewed_by == "sub_1"
