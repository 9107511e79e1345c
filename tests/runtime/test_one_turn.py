"""One turn that goes to disk alone has a statement of its own: it decides as the statement of many does."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.runtime.counter import Claim, CounterRow
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.deliveries import WebhookEvent
from tolsey.storage.records.runtime.turns import ActorPart, Batch, BatchOutcome, OutboxRow, TurnPart
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox

KIND = "counter"
KEPT = {
    "actors": "SELECT version FROM actors WHERE key = $1",
    "actor_journal": "SELECT version, message, reply FROM actor_journal WHERE key = $1 ORDER BY 1",
    "test_counters": "SELECT total FROM test_counters WHERE key = $1",
    "test_claims": "SELECT claim FROM test_claims WHERE key = $1",
    "commerce_webhook_events": "SELECT topic FROM commerce_webhook_events WHERE store_id = $1",
    "outbox": "SELECT name FROM outbox WHERE actor_key = $1 ORDER BY 1",
    "finished_calls": "SELECT name FROM finished_calls WHERE actor_key = $1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a turn writes, what it stands on, and what is on disk before."""

    base: int = 1
    epoch: int = 0
    """Added to the slot's."""
    voids: bool = True
    consumes: str = ""
    finishes_calls: bool = False
    records: Sequence[str] = ()
    before: Sequence[str] = ()
    """What was taken before, or waits in the outbox."""
    expected: BatchOutcome = BatchOutcome()  # noqa: RUF009 - it is frozen
    older: Sequence[str] = ()
    """What it tells and was told before."""


ONE = frozenset({0})
CASES = {
    "the next": Case(),
    "the first": Case(base=0, before=("nothing",)),
    "of a former owner": Case(epoch=-1, expected=BatchOutcome(fenced=ONE)),
    "on an old version": Case(base=7, expected=BatchOutcome(stale=ONE)),
    "the first where others were": Case(base=0, expected=BatchOutcome(stale=ONE)),
    "of a new claim": Case(records=("claim",)),
    "of a former claim": Case(
        records=("claim",),
        before=("claim",),
        expected=BatchOutcome(voided=ONE, duplicates=ONE),
    ),
    "of a former claim that changes nothing": Case(
        records=("claim",), before=("claim",), voids=False, expected=BatchOutcome(duplicates=ONE)
    ),
    "of a row": Case(consumes="row", before=("row",)),
    "of a row that is gone": Case(
        consumes="row", expected=BatchOutcome(voided=ONE, duplicates=ONE)
    ),
    "of a call": Case(consumes="call", before=("call",), finishes_calls=True),
    "of a delivery": Case(records=("delivery",)),
    "of a delivery that waits": Case(
        records=("delivery",), before=("2",), expected=BatchOutcome(voided=ONE, duplicates=ONE)
    ),
    "of a delivery behind one that waits": Case(
        records=("delivery",),
        before=("1",),
        expected=BatchOutcome(voided=ONE, duplicates=ONE, early=ONE),
    ),
    "of the row of a delivery behind another": Case(
        records=("delivery",),
        before=("1", "2"),
        consumes="2",
        expected=BatchOutcome(voided=ONE, duplicates=ONE, early=ONE),
    ),
    "that tells others": Case(records=("row",)),
    "that tells what waits": Case(records=("row",), before=("row",), older=("row",)),
    "that tells twice": Case(records=("row", "row"), older=("row",)),
    "of a former claim that tells": Case(
        records=("claim", "row"),
        before=("claim", "row"),
        expected=BatchOutcome(voided=ONE, duplicates=ONE),
    ),
}


def waiting(key: str, what: str) -> OutboxRow:
    """Make a row of the outbox: a call, a delivery that was kept, or another message."""
    row = OutboxRow(
        key=f"webhook:{key}:{what}",
        slot=slot_of(key),
        kind=KIND,
        actor_key=key,
        name=what,
        payload="1",
    )
    if what == "call":
        return replace(row, lane="short", state="sent")
    return replace(row, sender=f"webhook:{key}") if what.isdigit() else row


def record(key: str, what: str) -> Any:
    """Make what a turn writes beside the row of its actor."""
    match what:
        case "claim":
            return Claim(key, "paid")
        case "delivery":
            return WebhookEvent(
                store_id=key,
                delivery_id="2",
                topic="orders/create",
                event_id=None,
                shop_domain="a.example",
                triggered_at=None,
            )
        case _:
            return waiting(key, what)


async def written(database: Database, case: Case, key: str, others: Sequence[str]) -> Any:
    """Take a turn of one actor, and turns of others with it; answers what came of it and what is there."""
    epochs = await slots.claim(database, "test")
    journal = Journal(database)

    def turn(key: str, total: int, case: Case) -> Batch:
        slot = slot_of(key)
        actor = ActorPart(KIND, key, slot, epochs[slot] + case.epoch, case.base)
        actor.records = (CounterRow(key, total),) if case.voids else ()
        records = tuple(record(key, what) for what in case.records)
        consumes = f"webhook:{key}:{case.consumes}" if case.consumes else None
        taken = TurnPart(0, f"{key}:{total}", "Add", case.voids, consumes, records, f"{total}")
        return Batch(actors=[actor], turns=[taken], finishes_calls=case.finishes_calls)

    try:
        if case.before != ("nothing",):
            claims = tuple(what for what in case.before if what == "claim")
            await journal.write(turn(key, 1, Case(base=0, records=claims)))
        rows = [waiting(key, what) for what in case.before if what not in {"claim", "nothing"}]
        for row in rows:
            await Outbox(database).add((row,))
        batch = turn(key, 2, case)
        for n, other in enumerate(others, 1):
            beside = turn(other, 2, Case(base=0))
            batch.actors += beside.actors
            batch.turns += (replace(one, actor=n) for one in beside.turns)
        outcome = await journal.write(batch)
    finally:
        await journal.close()
    return outcome, {
        name: [tuple(row) for row in await database.fetch(sql, key)] for name, sql in KEPT.items()
    }


async def test_one_turn_alone_is_decided_as_among_others(counters: Database) -> None:
    for name, case in CASES.items():
        alone, left_alone = await written(counters, case, f"{name}, alone", ())
        among, left_among = await written(
            counters, case, f"{name}, among", (f"{name}, b", f"{name}, c")
        )
        for outcome, key in ((alone, f"{name}, alone"), (among, f"{name}, among")):
            older = frozenset(f"webhook:{key}:{what}" for what in case.older)
            assert (name, outcome) == (name, replace(case.expected, older=older))
        assert (name, left_alone) == (name, left_among)
        took_effect = case.expected == BatchOutcome()
        assert (name, left_alone["test_counters"] == [(2,)]) == (name, took_effect)
