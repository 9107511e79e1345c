"""What a version does not know waits for one that does, and somebody is told."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.runtime.counter import Add, Misdirect, Note, Pull, Read, Send, counter
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.timing import until
from tolsey.runtime.messages import REGISTERED, Message, UnusableName
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio
KIND = "counter"


@pytest.fixture
def older() -> Iterator[None]:
    """A version that does not know `Add`."""
    added = REGISTERED.pop("counter.Add")
    yield
    REGISTERED["counter.Add"] = added


async def written(tested: RuntimeOnDisk, name: str, payload: str, kind: str = "counter") -> None:
    await tested.database.execute(
        "INSERT INTO outbox (key, slot, kind, actor_key, name, payload)"
        " VALUES ('newer', $1, $2, 'b', $3, $4::jsonb)",
        slot_of("b"),
        kind,
        name,
        payload,
    )


async def settled(tested: RuntimeOnDisk) -> None:
    """Wait until a message that comes after has taken effect, and one more poll is over."""
    await tested.runtime.accept(counter("after"), Note("after"), id="after")
    await until(lambda: _only_newer(tested))
    polled = tested.runtime.telemetry.counters["outbox_polls"]
    await until(lambda: tested.runtime.telemetry.counters["outbox_polls"] > polled + 1)


async def _only_newer(tested: RuntimeOnDisk) -> bool:
    rows = await tested.database.fetch("SELECT key FROM outbox")
    return [row["key"] for row in rows] == ["newer"]


async def counts(tested: RuntimeOnDisk) -> tuple[int, int, int]:
    (row,) = await tested.database.fetch("SELECT attempts, interruptions FROM outbox")
    return row["attempts"], row["interruptions"], await tested.count("dead_letters")


async def test_a_poll_leaves_a_row_of_an_unknown_class_where_it_is(counters: Database) -> None:
    async with running(counters) as tested:
        await written(tested, "counter.OfTomorrow", "{}")
        polled = tested.runtime.telemetry.counters["outbox_polls"]
        await until(lambda: tested.runtime.telemetry.counters["outbox_polls"] > polled + 1)
        assert await counts(tested) == (0, 0, 0)


@pytest.mark.usefixtures("older")
@pytest.mark.parametrize("name", ["Add", "counter.Add"])
async def test_a_row_of_an_unknown_class_waits_uncounted_for_a_version_that_knows_it(
    counters: Database, name: str
) -> None:
    for _ in range(7):
        async with running(counters) as tested:
            if await tested.count("outbox") == 0:
                await written(tested, name, '{"amount": 5}')
            await settled(tested)
            assert await counts(tested) == (0, 0, 0)
    REGISTERED["counter.Add"] = Add
    async with running(counters) as tested:
        await until(lambda: _total(tested, 5))
        assert await tested.count("outbox") == 0


@pytest.mark.parametrize(
    ("name", "payload", "kind"),
    [
        ("Add", '{"amount": {"cents": 5}}', "counter"),
        ("Add", '{"cents": 5}', "counter"),
        ("Add", '{"amount": 5}', "abacus"),
        ("counter.Add", '{"cents": 5}', "counter"),
        ("counter.Add", '{"amount": 5}', "abacus"),
        ("abacus.Add", '{"amount": 5}', "counter"),
        ("Fetched", "[]", "counter"),
        ("PullNumber", '{"name": "n", "organization_id": "o"}', "counter"),
        ("Look", '{"key": "k"}', "counter"),
    ],
)
async def test_what_is_known_by_name_only_waits_too(
    counters: Database, name: str, payload: str, kind: str
) -> None:
    for _ in range(2):
        async with running(counters) as tested:
            if await tested.count("outbox") == 0:
                await written(tested, name, payload, kind)
            await settled(tested)
            assert await counts(tested) == (0, 0, 0)


@pytest.mark.parametrize("message", [Misdirect("abacus"), Pull("org", "newer")])
async def test_an_effect_that_nobody_here_takes_is_kept(
    counters: Database, message: Message[int]
) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), message)
        assert await tested.ask(counter("a"), Add(1)) == 1
        await until(lambda: _rows(tested, 1))
        assert await tested.count("dead_letters") == 0


@pytest.mark.parametrize("name", ["FromTomorrow", "counter.FromTomorrow"])
async def test_what_has_waited_for_ten_minutes_is_told(counters: Database, name: str) -> None:
    async with running(counters) as tested:
        await written(tested, name, "{}")
    with capture_logs() as logs:
        for minutes in (9, 11):
            await counters.execute(
                "UPDATE outbox SET due_at = now() - $1 * interval '1 minute'", minutes
            )
            async with running(counters) as tested:
                await until(
                    lambda tested=tested: tested.runtime.telemetry.counters["outbox_polls"] > 1
                )
            assert bool(tested.runtime.admin.unread) == (minutes == 11)
    (found,) = tested.runtime.admin.unread
    assert (found.kind, found.name, found.rows) == ("counter", name, 1)
    told: list[Any] = [one for one in logs if one["event"] == "outbox.unread"]
    assert (told[0]["log_level"], told[0]["name"]) == ("error", "counter.FromTomorrow")
    assert told[0]["waited_seconds"] >= 660


async def test_rows_that_nobody_knows_keep_nothing_else_waiting(counters: Database) -> None:
    async with running(counters) as tested:
        await counters.execute(
            "INSERT INTO outbox (key, slot, kind, actor_key, name, payload, due_at)"
            " SELECT 'newer ' || n, 1, 'counter', 'b', 'FromTomorrow', '{}', now() - interval '1 h'"
            " FROM generate_series(1, 2000) AS n"
        )
        await tested.ask(counter("a"), Send("b", 5, "", datetime.now(UTC)))
        await until(lambda: _total(tested, 5))
        assert await tested.ask(counter("b"), Read()) == 5


def test_a_second_class_of_one_name_is_refused() -> None:
    with pytest.raises(UnusableName) as refused:

        @dataclass(frozen=True)
        class Add(Message[int]):
            amount: int

    assert str(refused.value) == (
        "Two messages are named counter.Add: one in tests.runtime.counter and one in"
        " tests.runtime.test_unread. Rename one of them."
    )
    assert REGISTERED["counter.Add"].__module__ == "tests.runtime.counter"


async def _total(tested: RuntimeOnDisk, total: int) -> bool:
    return await tested.total("b") == total


async def _rows(tested: RuntimeOnDisk, count: int) -> bool:
    return await tested.count("outbox") == count
