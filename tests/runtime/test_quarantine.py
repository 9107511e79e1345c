"""A message that keeps failing waits aside, and behind it what its sender says of the same thing; all else goes on."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

import pytest

from tests.runtime.counter import CounterRow, CounterState, Entry
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.runtime.test_planted_calls import leaves
from tests.timing import until
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision, Refused, Tell
from tolsey.runtime.errors import Duplicate, RuntimeFault, ShardUnavailable
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.outbox.dispatcher import Dispatcher
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.deliveries import WebhookEvent
from tolsey.storage.runtime import commit_statement, dead_letters, outbox, slots
from tolsey.storage.runtime.dead_letters import Edited, WhichLetters

KIND = "desk"
QUICK: Final = (0.0,)
ALL: Final = WhichLetters()


def desk(key: str) -> ActorId:
    return ActorId(KIND, key)


@dataclass(frozen=True, slots=True)
class Said(Message[int]):
    """The nth word of a sender about a thing."""

    thing: str
    n: int

    @property
    def about(self) -> str:
        return self.thing


@dataclass(frozen=True, slots=True)
class Delivered(Message[int]):
    """The same as a delivery, with an id that lets it take effect once."""

    thing: str
    n: int

    @property
    def about(self) -> str:
        return self.thing

    @property
    def id(self) -> str:
        return f"{self.thing}:{self.n}"


@dataclass(frozen=True, slots=True)
class Say(Message[int]):
    """Tell another desk a word."""

    to: str
    thing: str
    n: int


class Desk(Actor[CounterState]):
    """Writes down what it is told, but for what it chokes on."""

    kind = KIND

    def __init__(self) -> None:
        super().__init__()
        self.chokes_on: set[tuple[str, int]] = set()
        self.refuses: set[tuple[str, int]] = set()

    async def load(self, keys: Sequence[str]) -> Mapping[str, CounterState]:
        return {key: CounterState(key) for key in keys}

    def changes(self, old: CounterState, new: CounterState) -> Iterable[Any]:
        if old.total != new.total:
            yield CounterRow(new.key, new.total)

    @handles(Said)
    def said(self, state: CounterState, message: Said) -> Decision[CounterState, int]:
        return self._keep(state, message.thing, message.n)

    @handles(Delivered)
    def delivered(self, state: CounterState, message: Delivered) -> Decision[CounterState, int]:
        event = WebhookEvent(
            store_id=state.key,
            delivery_id=message.id,
            topic="t",
            event_id=None,
            shop_domain="a.example",
            triggered_at=None,
        )
        return self._keep(state, message.thing, message.n, event)

    @handles(Say)
    def say(self, state: CounterState, message: Say) -> Decision[CounterState, int]:
        told = Tell(desk(message.to), Said(message.thing, message.n))
        return Decision(state, 0, effects=[told])

    def _keep(
        self, state: CounterState, thing: str, n: int, *records: Any
    ) -> Decision[CounterState, int]:
        if (thing, n) in self.refuses:
            raise Refused("no")
        if (thing, n) in self.chokes_on:
            raise ZeroDivisionError
        kept = (*records, Entry(state.key, thing, n))
        return Decision(replace(state, total=state.total + 1), state.total + 1, kept)


async def deliver(tested: RuntimeOnDisk, key: str, message: Delivered) -> bool:
    """Hand a delivery over as the receiver of webhooks does; False for a repeat."""
    try:
        await tested.ask(desk(key), message)
    except Duplicate:
        return False
    except RuntimeFault:
        return await tested.runtime.accept(
            desk(key), message, id=f"webhook:{key}:{message.id}", sender=f"webhook:{key}"
        )
    return True


async def kept(database: Database, key: str) -> dict[str, list[int]]:
    """Read what a desk wrote down of each thing, in the order in which it did."""
    rows = await database.fetch(
        "SELECT entry, amount FROM test_entries WHERE key = $1 ORDER BY ctid", key
    )
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["entry"], []).append(row["amount"])
    return found


async def one_letter(tested: RuntimeOnDisk, held: int = 0) -> str:
    """Wait until nothing happens any more; one message failed for good, with so many held behind it."""
    await at_rest(tested)
    assert await tested.count("outbox WHERE due_at = 'infinity'") == held
    (row,) = await tested.database.fetch("SELECT id FROM dead_letters WHERE status = 'dead'")
    return str(row["id"])


async def at_rest(tested: RuntimeOnDisk) -> None:
    """Wait until all that is still to be delivered is held back: without a bug and with one, it comes to that."""
    tested.runtime.slots.wake_outbox()

    async def is_at_rest() -> bool:
        return await tested.count("outbox WHERE held_by IS NULL") == 0

    await until(is_at_rest)


async def drained(tested: RuntimeOnDisk) -> None:
    await at_rest(tested)
    assert await tested.count("outbox") == 0


async def an_order_is_poisoned(tested: RuntimeOnDisk, kind: Desk) -> str:
    """Have a delivery of an order fail for good, with two behind it and another order beside it."""
    kind.chokes_on.add(("order:1", 1))
    for n in (1, 2, 3):
        assert await deliver(tested, "s", Delivered("order:1", n))
    for n in (1, 2):
        assert await deliver(tested, "s", Delivered("order:2", n))
    assert await deliver(tested, "other", Delivered("order:1", 2))
    return await one_letter(tested, held=2)


async def test_a_poison_message_holds_back_its_thing_and_nothing_else(counters: Database) -> None:
    kind = Desk()
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        letter = await an_order_is_poisoned(tested, kind)

        assert await kept(counters, "s") == {"order:2": [1, 2]}
        assert await kept(counters, "other") == {"order:1": [2]}
        assert await dead_letters.behind(counters, WhichLetters(id=letter)) == 2
        held = await dead_letters.waiting_behind(counters, letter, 10)
        assert [row["key"] for row in held] == ["webhook:s:order:1:2", "webhook:s:order:1:3"]
        # What is told of anything else takes effect at once, and is not put by.
        await tested.ask(desk("s"), Delivered("order:3", 1))
        assert (await kept(counters, "s"))["order:3"] == [1]
        # What is there already is a repeat, whether it lies aside or waits behind that.
        assert not await deliver(tested, "s", Delivered("order:1", 1))
        assert not await deliver(tested, "s", Delivered("order:1", 2))

        kind.chokes_on.clear()
        assert await dead_letters.replay(counters, WhichLetters(id=letter)) == 1
        assert await dead_letters.replay(counters, WhichLetters(id=letter)) == 0
        await drained(tested)
        assert await kept(counters, "s") == {
            "order:2": [1, 2],
            "order:3": [1],
            "order:1": [1, 2, 3],
        }
        assert not await deliver(tested, "s", Delivered("order:1", 1))


async def test_what_is_given_up_lets_those_behind_it_go_on(counters: Database) -> None:
    kind = Desk()
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        letter = await an_order_is_poisoned(tested, kind)
        assert await dead_letters.discard(counters, WhichLetters(id=letter)) == 1
        await drained(tested)
        assert await kept(counters, "s") == {"order:2": [1, 2], "order:1": [2, 3]}


async def test_an_edited_replay_that_is_of_another_thing_waits_for_that_one(
    counters: Database,
) -> None:
    kind = Desk()
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        letter = await an_order_is_poisoned(tested, kind)
        edited = Edited(payload='{"thing": "order:9", "n": 7}', about="order:9")
        assert await dead_letters.replay(counters, WhichLetters(id=letter), edited=edited) == 1
        await drained(tested)
        assert await kept(counters, "s") == {
            "order:2": [1, 2],
            "order:1": [2, 3],
            "order:9": [7],
        }


async def test_a_group_is_sent_again_at_a_rate_and_what_waits_behind_each_follows_it(
    counters: Database,
) -> None:
    kind = Desk()
    things = [f"order:{n}" for n in range(4)]
    kind.chokes_on |= {(thing, 1) for thing in things}
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        for thing in things:
            await deliver(tested, "s", Delivered(thing, 1))
            await deliver(tested, "s", Delivered(thing, 2))
        await at_rest(tested)
        assert await tested.count("outbox WHERE held_by IS NOT NULL") == 4
    assert await dead_letters.behind(counters, ALL) == 4
    assert await dead_letters.replay(counters, ALL, per_second=0.1) == 4
    due = await counters.fetch(
        "SELECT key, extract(epoch FROM due_at - min(due_at) OVER ()) AS after FROM outbox ORDER BY due_at"
    )
    assert [(row["key"][-3:], round(float(row["after"]))) for row in due] == [
        (f"{n}:{word}", 10 * n) for n in range(4) for word in (1, 2)
    ]
    kind.chokes_on.clear()
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        # The last is not due for half a minute: only its own thing waits for it.
        assert await deliver(tested, "s", Delivered("order:9", 1))
        await until(lambda: _wrote(counters, "order:0", [1, 2]))
        assert "order:3" not in await kept(counters, "s")
        assert (await kept(counters, "s"))["order:9"] == [1]


async def test_what_another_actor_tells_of_a_thing_waits_behind_what_it_told_before(
    counters: Database,
) -> None:
    kind = Desk()
    kind.chokes_on.add(("deal:1", 1))
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        for sender, thing, n in (
            ("x", "deal:1", 1),
            ("x", "deal:1", 2),
            ("x", "deal:2", 1),
            ("y", "deal:1", 5),
        ):
            await tested.ask(desk(sender), Say("s", thing, n))
        letter = await one_letter(tested, held=1)
        assert await kept(counters, "s") == {"deal:2": [1], "deal:1": [5]}
        kind.chokes_on.clear()
        await dead_letters.replay(counters, WhichLetters(id=letter))
        await drained(tested)
        assert await kept(counters, "s") == {"deal:2": [1], "deal:1": [5, 1, 2]}


async def test_the_order_holds_across_processes_and_restarts(counters: Database) -> None:
    """The one that tells and the one that is told are of two processes; both are started anew."""
    kind = Desk()
    kind.chokes_on.add(("deal:1", 1))
    epochs = await slots.claim(counters, "test")
    of_x = slot_of("x")
    ours = {slot: epoch for slot, epoch in epochs.items() if slot == of_x}
    theirs = {slot: epoch for slot, epoch in epochs.items() if slot != of_x}
    assert slot_of("s") in theirs
    for round_ in (0, 1):
        async with (
            running(counters, kinds=(kind,), backoff_seconds=QUICK, epochs=ours) as one,
            running(counters, kinds=(kind,), backoff_seconds=QUICK, epochs=theirs) as other,
        ):
            for n in (1, 2):
                await one.ask(desk("x"), Say("s", "deal:1", 2 * round_ + n))
                await one.ask(desk("x"), Say("s", "deal:2", 2 * round_ + n))
            letter = await one_letter(other, held=2 * round_ + 1)
            told = list(range(1, 2 * round_ + 3))
            assert (await kept(counters, "s"))["deal:2"] == told
    assert (await kept(counters, "s")) == {"deal:2": [1, 2, 3, 4]}
    kind.chokes_on.clear()
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK, epochs=epochs) as tested:
        await dead_letters.replay(counters, WhichLetters(id=letter))
        await drained(tested)
    assert (await kept(counters, "s"))["deal:1"] == [1, 2, 3, 4]


async def test_nothing_waits_behind_a_no(counters: Database) -> None:
    kind = Desk()
    kind.refuses.add(("deal:1", 1))
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        await tested.ask(desk("x"), Say("s", "deal:1", 1))
        await one_letter(tested)
        await tested.ask(desk("x"), Say("s", "deal:1", 2))
        await at_rest(tested)
        assert await kept(counters, "s") == {"deal:1": [2]}


MANY: Final = 1200
"""More than a poll reads at a time."""


async def test_much_that_is_told_of_one_thing_is_taken_in_order_and_not_tried_again_and_again(
    counters: Database,
) -> None:
    kind = Desk()
    kind.chokes_on.add(("stock:1", 0))
    first = Delivered("stock:1", 0)
    async with running(counters, kinds=(kind,), backoff_seconds=(3600.0,)) as tested:
        await tested.runtime.accept(
            desk("s"), first, id=f"webhook:s:{first.id}", sender="webhook:s"
        )
        await until(lambda: _failed_once(tested))
    # As a stop leaves it: all of it is due, in no order.
    await counters.execute(
        """
        INSERT INTO outbox (key, slot, kind, actor_key, name, payload, sender, about, created_at, due_at)
        SELECT 'webhook:s:stock:1:' || n, slot, kind, actor_key, name, payload || jsonb_build_object('n', n),
            sender, about, created_at + make_interval(secs => n * 0.001), now() - make_interval(secs => random())
        FROM outbox, generate_series(1, $1 - 1) AS n
        """,
        MANY,
    )
    await counters.execute(
        "UPDATE outbox SET due_at = now() - interval '1 second' WHERE attempts = 1"
    )
    kind.chokes_on.clear()
    async with running(counters, kinds=(kind,)) as tested:
        await drained(tested)
        assert await kept(counters, "s") == {"stock:1": list(range(MANY))}
        tried = sum(len(batch.turns) for batch in tested.journal.batches)
        assert tried < 3 * MANY


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_poison_each_thing_keeps_its_order_and_takes_effect_once(
    counters: Database, seed: int
) -> None:
    await anything_goes(counters, seed)


async def anything_goes(counters: Database, seed: int) -> None:
    """Deliver words of things, some of them poison; settle letters in any way; then look at all of it."""
    chance, kind = random.Random(seed), Desk()  # noqa: S311 - a seed names a course of events
    things = ["a", "b", "c"]
    kind.chokes_on |= {(thing, chance.randrange(1, 7)) for thing in things[:2]}
    given_up: set[tuple[str, int]] = set()
    said = dict.fromkeys(things, 0)
    for _ in range(3):
        async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
            for _ in range(6):
                thing = chance.choice(things)
                said[thing] += 1
                await deliver(tested, "s", Delivered(thing, said[thing]))
                if chance.random() < 0.3:  # the platform says it again
                    await deliver(tested, "s", Delivered(thing, said[thing]))
            if chance.random() < 0.5:
                await at_rest(tested)
            for row in await counters.fetch(
                "SELECT id, payload::text AS payload FROM dead_letters WHERE status = 'dead'"
            ):
                if chance.random() < 0.5:
                    await dead_letters.replay(counters, WhichLetters(id=row["id"]))
    kind.chokes_on.clear()
    async with running(counters, kinds=(kind,), backoff_seconds=QUICK) as tested:
        await at_rest(tested)
        for row in await counters.fetch(
            "SELECT id, payload->>'thing' AS thing, (payload->>'n')::int AS n"
            " FROM dead_letters WHERE status = 'dead' ORDER BY id"
        ):
            if chance.random() < 0.5:
                given_up.add((row["thing"], row["n"]))
                await dead_letters.discard(counters, WhichLetters(id=row["id"]))
            else:
                await dead_letters.replay(counters, WhichLetters(id=row["id"]))
        await drained(tested)
    found = await kept(counters, "s")
    for thing in things:
        words = [n for n in range(1, said[thing] + 1) if (thing, n) not in given_up]
        assert found.get(thing, []) == words


async def _wrote(database: Database, thing: str, words: list[int]) -> bool:
    return (await kept(database, "s")).get(thing) == words


@contextmanager
def overtaken() -> Iterator[None]:
    """What lies in quarantine keeps nothing back."""
    with (
        patch.object(commit_statement, "HELD", ""),
        patch.object(commit_statement, "HELD_ROWS", ""),
        patch.object(outbox, "POSTPONE_BEHIND", outbox.POSTPONE),
    ):
        yield


@contextmanager
def held_without_cause() -> Iterator[None]:
    """Everything of a sender waits, whatever it is about."""
    everything = commit_statement.HELD.replace(f"AND d.about = {commit_statement.SAME_THING}", "")
    assert everything != commit_statement.HELD
    with patch.object(commit_statement, "HELD", everything):
        yield


@contextmanager
def never_let_go() -> Iterator[None]:
    """What waited behind a letter is forgotten when that is settled."""

    async def nothing(*_: object) -> None:
        return

    with patch.object(dead_letters, "_let_go_on", nothing):
        yield


@contextmanager
def behind_a_no() -> Iterator[None]:
    """A refusal holds back like a failure."""
    bury = Dispatcher._bury

    async def always(self: Dispatcher, row: Any, error: str, *, holds: bool = True) -> None:
        del holds
        await bury(self, row, error)

    with patch.object(Dispatcher, "_bury", always):
        yield


@contextmanager
def settled_again() -> Iterator[None]:
    """What was sent again can be sent again once more."""

    def among(self: WhichLetters, *args: object) -> Conditions:
        wanted = Conditions(*args)
        wanted.add("id = {}", self.id)
        return wanted

    with patch.object(WhichLetters, "among", among):
        yield


@contextmanager
def at_once() -> Iterator[None]:
    """A rate is not heeded."""
    replay = dead_letters.replay

    async def hasty(database: Database, which: WhichLetters, **options: Any) -> int:
        return await replay(database, which, **{**options, "per_second": None})

    with patch.object(dead_letters, "replay", hasty):
        yield


PLANTED: Final = {
    "overtaken": (overtaken, test_a_poison_message_holds_back_its_thing_and_nothing_else),
    "overtaken between actors": (
        overtaken,
        test_what_another_actor_tells_of_a_thing_waits_behind_what_it_told_before,
    ),
    "overtaken across processes": (
        overtaken,
        test_the_order_holds_across_processes_and_restarts,
    ),
    "held without cause": (
        held_without_cause,
        test_a_poison_message_holds_back_its_thing_and_nothing_else,
    ),
    "never let go": (never_let_go, test_what_is_given_up_lets_those_behind_it_go_on),
    "behind a no": (behind_a_no, test_nothing_waits_behind_a_no),
    "settled again": (settled_again, test_a_poison_message_holds_back_its_thing_and_nothing_else),
    "at once": (
        at_once,
        test_a_group_is_sent_again_at_a_rate_and_what_waits_behind_each_follows_it,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
async def test_a_planted_bug_is_caught(counters: Database, name: str) -> None:
    bug, test = PLANTED[name]
    with bug(), pytest.raises((AssertionError, ExceptionGroup)) as caught:
        await test(counters)
    # What is held without a cause is refused; nothing is caught by the time it takes.
    assert {type(one) for one in leaves(caught.value)} <= {AssertionError, ShardUnavailable}


async def _failed_once(tested: RuntimeOnDisk) -> bool:
    return await tested.count("outbox WHERE attempts = 1") == 1
