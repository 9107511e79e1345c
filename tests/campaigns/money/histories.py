"""Histories on paper: one life each, with a clock that jumps and a process that dies."""

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.actors.organization.books import AT, DOLLAR, Ledger, purchase
from tests.campaigns.money.bank import Bank
from tests.campaigns.money.lives import AT_BANK, Person
from tests.campaigns.money.paper import Paper
from tests.campaigns.money.rows import broken, unproven
from tests.campaigns.money.steps import Answer, Ask, Send, Wait, Wrong
from tolsey.actors.organization.billing.subscription import is_owed
from tolsey.actors.organization.ledger.messages import (
    Dispute,
    ExpireCredits,
    PaymentObserved,
    ResetAllowance,
    SpendCredits,
)

BEGAN = (
    datetime(2026, 7, 1, 12, tzinfo=UTC),
    datetime(2027, 1, 28, 12, tzinfo=UTC),
)
"""When histories begin: from the end of January, a month that is bought later may end earlier."""
STEPS = 40
JUMPS = (
    (0.0, 30),
    (0.002, 30),
    (0.2, 20),
    (5.0, 12),
    (14.0, 12),
    (26.0, 8),
    (24 * 9, 6),
    (24 * 31, 4),
    (24 * 200, 1),
)
"""Hours that pass between two steps, and how often."""


@dataclass
class Lived:
    """What a history went through, and what was wrong in the end."""

    seed: int
    found: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)


def jump(luck: random.Random) -> timedelta:
    """Draw how much time passes."""
    return timedelta(hours=luck.choices([n for n, _ in JUMPS], [n for _, n in JUMPS])[0])


def began(seed: int) -> datetime:
    """Tell when the history of a seed begins."""
    return BEGAN[seed % len(BEGAN)]


def live(seed: int, steps: int = STEPS, crashes: float = 0.06) -> Lived:
    """Live the history of a seed."""
    luck = random.Random(f"paper {seed}")  # noqa: S311 - as below
    now = began(seed)
    bank = Bank("org_1", random.Random(f"bank {seed}"), now)  # noqa: S311 - a history of its seed
    paper = Paper(bank, now - timedelta(days=90), luck, crashes)
    person = Person(seed, bank, lambda: now, lambda: (paper.plan, paper.subscription))
    lived = Lived(seed, seen=person.seen)
    life = person.live(steps)
    answer: Answer | None = None
    try:
        while True:
            try:
                step = life.send(answer) if answer is not None else next(life)
            except StopIteration:
                break
            if isinstance(step, Wait):
                now += jump(luck)
                answer = Answer()
            else:
                answer = paper.do(step, now)
    except Wrong as error:
        lived.found.append(str(error))
    except Exception as error:  # noqa: BLE001 - what the service must not do
        lived.found.append(f"{type(error).__name__}: {error}")
    lived.found += broken(paper.rows())
    if not lived.found:
        lived.found += [*unproven(paper.rows(), bank), *person.misplaced(paper.rows().accounts())]
    lived.seen["crashes"] += paper.crashed
    lived.seen["entries"] += len(paper.rows().entries)
    return lived


def told_otherwise(seed: int) -> list[str]:
    """Tell what happened at a bank in its order, then in another, repeated: both come to the same.

    Nobody uses anything meanwhile; whatever was paid is refunded and disputed, that of a period that
    is over too.
    """
    chance = random.Random(f"order {seed}")  # noqa: S311 - as above
    first = now = began(seed)
    bank = Bank("org_1", chance, first)
    for _ in range(chance.randint(4, 25)):
        now += jump(chance)
        bank.advance(now)
        getattr(bank, chance.choice(AT_BANK))()
    events = bank.outbox
    ends = []
    at = chance.choice((first, now))
    for shuffles in (False, True):
        paper = Paper(bank, first - timedelta(days=90), chance, 0.05 * shuffles)
        waiting, done = list(events), set[str]()
        while waiting:
            told = chance.sample(waiting, min(len(waiting), 3)) if shuffles else waiting[:1]
            answer = paper.do(Send(tuple((one, chance.random() < 0.4) for one in told)), at)
            done |= {one.event_id for one in (*answer.before, *answer.after)}
            if failed := [one for one in (*answer.before, *answer.after) if one.state == "failed"]:
                return [f"5 {failed[0].why}"]
            waiting = [one for one in waiting if one.id not in done or chance.random() < 0.2]
        ends.append(_come_to(paper, at))
        if found := [*broken(paper.rows())]:
            return found
    return [f"5 in order {ends[0]}, otherwise {ends[1]}"] if ends[0] != ends[1] else []


def reversed_otherwise(seed: int) -> list[str]:
    """Use some of a month, then reverse what paid for it, before the next month begins and after.

    Whether what nobody used had expired by then or not: the balance is the same, and what others
    brought is left alone.
    """
    chance = random.Random(f"reversal {seed}")  # noqa: S311 - as above
    ends_at, total = AT + timedelta(days=30), chance.choice((7_900, 8_690, 3))
    told: list[Any] = [
        PaymentObserved(
            payment_ref="in_1",
            credits=0,
            total=total,
            refunded=chance.randint(0, total),
            disputes=(),
            at=ends_at,
        )
        for _ in range(2)
    ]
    for number in range(chance.randint(0, 2)):
        opened = Dispute(f"dp_{number}", chance.randint(1, total), "open")
        ended = chance.choice(
            (opened, replace(opened, status="won"), replace(opened, status="lost"))
        )
        told += [
            PaymentObserved(
                payment_ref="in_1", credits=0, total=total, refunded=0, disputes=(one,), at=ends_at
            )
            for one in (opened, ended)
        ]
    renewal = ResetAllowance(
        key="allowance:2",
        plan="pro",
        period_start=ends_at,
        period_end=ends_at + timedelta(days=31),
        allowance=49 * DOLLAR,
        at=ends_at,
        reference="in_2",
        renewed_by="sub_1",
    )
    used, bought = chance.randint(1, 49 * DOLLAR), chance.choice((0, 20, 60))
    balances = set[int]()
    for _ in range(4):
        ledger = Ledger()
        ledger.take(
            ResetAllowance(
                key="allowance:1",
                plan="pro",
                period_start=AT,
                period_end=ends_at,
                allowance=49 * DOLLAR,
                at=AT,
                reference="in_1",
                renewed_by="sub_1",
            )
        )
        ledger.take(SpendCredits(key="spend", amount=used, reason="chat", at=AT))
        if bought:
            ledger.take(purchase("pi_1", bought))
        for message in chance.sample([renewal, *told], len(told) + 1):
            if chance.random() < 0.3:
                ledger.crash()
            ledger.take(message)
            ledger.check()
        balances.add(ledger.state.credits.available)
    return [f"5 reversed in another order {sorted(balances)}"] if len(balances) > 1 else []


def _come_to(paper: Paper, at: datetime) -> Any:
    """Sum up what counts of the end of a story."""
    paper.do(Ask(ExpireCredits(at)), at)
    left: Counter[str] = Counter()
    for lot in paper.rows().lots:
        left[lot.kind] += lot.remaining
    kept, account = paper.subscription, paper.rows().account
    if kept is not None and kept.status == "canceled":
        kept = None  # of two that ended, whichever was known first stands
    return (
        paper.plan,
        dict(+left),
        account and account.debt,
        kept and (kept.subscription_id, kept.status, kept.price_id, kept.paid_invoice_id),
        kept and (kept.paid_until, kept.dunning_since, kept.dunning_url, kept.seen_at),
        kept and is_owed(kept, at),
    )
