"""Whatever a program of messages, whatever it meets: each actor answers as if it were alone."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runtime.counter import (
    Add,
    Break,
    Held,
    Note,
    Read,
    Refuse,
    Resolve,
    Transfer,
    Wait,
    counter,
)
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.timing import until
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import Duplicate, TurnFailed
from tolsey.runtime.messages import Message
from tolsey.storage.database import Database

PROGRAMS = itertools.count()
BAD = "\0"
"""An entry that no text column takes."""

amounts = st.integers(-50, 50)
claims = st.sampled_from(["x", "y"])
messages = st.one_of(
    st.builds(Add, amounts),
    st.builds(Add, amounts, entry=st.just("entry")),
    st.builds(Add, amounts, claim=claims),
    st.builds(Add, amounts, entry=st.just(BAD)),
    st.builds(Note, claims),
    st.builds(Transfer, st.just("sink"), amounts),
    st.builds(Held, st.just("open"), amounts),
    st.builds(Read),
    st.builds(Refuse),
    st.builds(Break),
)
programs = st.lists(st.tuples(st.sampled_from("abc"), messages), min_size=1, max_size=40)
weather = st.lists(st.sampled_from(["", "", "lost before", "lost after"]), max_size=3)
relaxed = settings(
    max_examples=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Alone:
    """The sequential model: one actor, one message after the other."""

    def __init__(self) -> None:
        self.total = 0
        self.version = 0
        self.sent = 0
        self.entries = 0
        self.claims: set[str] = set()

    def take(self, message: Message[Any]) -> Any:
        if isinstance(message, Refuse):
            return Refused
        if isinstance(message, Break) or (isinstance(message, Add) and message.entry == BAD):
            return TurnFailed
        claim = getattr(message, "claim", "")
        if claim in self.claims:
            return Duplicate
        self.claims |= {claim} - {""}
        amount = getattr(message, "amount", 0)
        if isinstance(message, Transfer):
            self.sent += amount
            amount = -amount
        self.total += amount
        self.entries += isinstance(message, Note) or bool(getattr(message, "entry", ""))
        read = isinstance(message, Read) or (isinstance(message, Held) and not amount)
        self.version += not read
        return self.total


@pytest.fixture
async def tested(counters: Database) -> AsyncIterator[RuntimeOnDisk]:
    async with running(counters) as opened:
        opened.kind.gates["open"].set()
        yield opened


def told(answer: Any) -> Any:
    return type(answer) if isinstance(answer, BaseException) else answer


@relaxed
@given(programs, weather)
async def test_each_actor_answers_as_if_it_were_alone(
    tested: RuntimeOnDisk, program: list[tuple[str, Message[Any]]], faults: list[str]
) -> None:
    number = next(PROGRAMS)
    models: defaultdict[str, Alone] = defaultdict(Alone)
    asks, expected = [], []
    for key, message in program:
        name = f"{number} {key}"
        sent = (
            Transfer(f"{number} sink", message.amount) if isinstance(message, Transfer) else message
        )
        asks.append(tested.ask(counter(name), sent))
        expected.append(models[name].take(message))
    tested.journal.faults.extend(faults)
    answers = await asyncio.gather(*asks, return_exceptions=True)
    tested.journal.faults.clear()
    assert list(map(told, answers)) == expected
    for name, model in models.items():
        assert await tested.total(name) == model.total
        assert await tested.versions(name) == list(range(1, model.version + 1))
        entries = await tested.database.fetch("SELECT FROM test_entries WHERE key = $1", name)
        assert len(entries) == model.entries

    async def delivered() -> bool:
        return await tested.count("outbox") == 0

    await until(delivered)
    sent_total = sum(model.sent for model in models.values())
    assert await tested.total(f"{number} sink") == sent_total


@settings(relaxed, max_examples=30)
@given(st.lists(st.sampled_from(["wait x", "wait y", "resolve x", "resolve y"]), max_size=20))
async def test_every_parked_asker_hears_the_first_answer_after_it(
    tested: RuntimeOnDisk, program: list[str]
) -> None:
    key = counter(f"parked {next(PROGRAMS)}")
    asks: list[asyncio.Future[Any]] = []
    expected: list[Any] = []
    for n, step in enumerate([*program, "resolve x", "resolve y"]):
        verb, name = step.split()
        message: Message[Any] = Wait(name) if verb == "wait" else Resolve(name, n)
        asks.append(asyncio.ensure_future(tested.ask(key, message)))
        later = [*program, "resolve x", "resolve y"][n:]
        expected.append(n + later.index(f"resolve {name}") if verb == "wait" else None)
    assert await asyncio.gather(*asks) == expected
