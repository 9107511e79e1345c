"""Two releases beside each other: what one writes, the other reads, in the form of either."""

import math
import re
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, new_class
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

import tolsey
from tests.runtime.counter import Add, Read, Refuse, Send, Transfer, counter
from tests.runtime.runtime_on_disk import running
from tests.runtime.shard_cluster import Home, ShardCluster, joined, settled
from tests.timing import beat_often, until
from tolsey.runtime.codec import WireForm
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import Overloaded, ShardUnavailable
from tolsey.runtime.messages import REGISTERED, Message, UnusableName, class_named
from tolsey.runtime.shards import bus, frames
from tolsey.runtime.shards.frames import Entry
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio
KIND = "counter"
OPERATE = Path(tolsey.__file__).parents[1] / "docs" / "operate" / "processes.md"

ENTRIES: list[tuple[Entry, list[Any]]] = [
    (
        {
            "is": "ask",
            "number": 7,
            "kind": "store",
            "key": "store_1",
            "message": "store.UseToken",
            "payload": "{}",
            "id": "m1",
            "seconds": 4.5,
            "chain": [["job", "sync"]],
            "request_id": "req_1",
            "again": False,
            "epoch": 3,
        },
        [
            *("a", 7, "store", "store_1", "UseToken", "{}", "m1"),
            *(4.5, [["job", "sync"]], "req_1", False, 3),
        ],
    ),
    (
        {
            "is": "row",
            "key": "k1",
            "slot": 9,
            "kind": "store",
            "actor_key": "store_1",
            "name": "CheckGrant",
            "payload": "{}",
            "request_id": None,
        },
        ["r", "k1", 9, "store", "store_1", "CheckGrant", "{}", None],
    ),
    (
        {"is": "operation", "number": 0, "name": "look", "payload": {"paused": []}},
        ["o", 0, "look", {"paused": []}],
    ),
    ({"is": "reply", "number": 7, "payload": "1"}, ["k", 7, "1"]),
    (
        {"is": "error", "number": 7, "error": {"name": "a:B", "args": ["no"], "fields": {"x": 1}}},
        ["e", 7, '["a:B",["no"],{"x":1}]'],
    ),
    ({"is": "moved", "number": 7}, ["m", 7]),
]
"""Each sort of entry, and the positions in which releases up to the first of 2027 wrote and read it."""


@pytest.mark.parametrize(("entry", "positions"), ENTRIES, ids=[one["is"] for one, _ in ENTRIES])
def test_an_entry_is_written_by_name_or_by_position_and_read_from_both(
    entry: Entry, positions: list[Any]
) -> None:
    assert orjson.loads(frames.write("1", "a", [entry])) == ["a", [positions]]
    assert orjson.loads(frames.write("2", "a", [entry])) == {"from": "a", "entries": [entry]}
    assert frames.read(frames.write("2", "a", [entry])) == ("a", [entry])
    alone = {**entry, "message": "UseToken"} if "message" in entry else entry
    assert frames.read(frames.write("1", "a", [entry])) == ("a", [alone])
    assert set(entry) - {"is"} == set(frames.FIELDS[entry["is"]])


@pytest.fixture
async def here(
    database: Database, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ShardCluster]:
    beat_often(monkeypatch)
    async with joined(database, redis_url) as made:
        yield made


async def exchanged(one: Home, other: Home) -> None:
    """Let every sort of entry and row go from one process to the other, which answers."""
    key = other.key()
    began = await other.ask(counter(key), Read())
    assert await one.ask(counter(key), Add(1)) == began + 1
    with pytest.raises(Refused, match="at "):
        await one.ask(counter(key), Refuse())
    with pytest.raises(Overloaded):
        await one.shard.call(other.shard.id, "overloaded")
    assert await one.shard.call(other.shard.id, "look", {}) is None
    mine = one.key()
    await one.ask(counter(mine), Transfer(key, 5))
    await one.ask(counter(mine), Send(key, 7, "later", datetime.now(UTC)))

    async def arrived() -> bool:
        return await other.ask(counter(key), Read()) >= began + 13

    await until(arrived)


@pytest.mark.parametrize("forms", [("1", "2"), ("2", "1"), ("2", "2")])
async def test_processes_of_either_form_ask_tell_and_answer_each_other(
    here: ShardCluster, forms: tuple[WireForm, WireForm]
) -> None:
    async def overloaded(_: Any) -> None:
        raise Overloaded("the mailbox", 2.5)

    async with here.join("a", form=forms[0]) as a, here.join("b", form=forms[1]) as b:
        await settled(a, b)
        for home in (a, b):
            home.shard.operations["overloaded"] = overloaded
        await exchanged(a, b)
        await exchanged(b, a)
    assert await here.database.fetch("SELECT 1 FROM dead_letters") == []


@pytest.mark.parametrize(("form", "name"), [("1", "Add"), ("2", "counter.Add")])
async def test_one_setting_says_how_rows_name_their_class(
    counters: Database, form: WireForm, name: str
) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    async with running(counters, form=form) as tested:
        await tested.ask(counter("a"), Send("b", 5, "later", later))
        rows = await counters.fetch("SELECT name FROM outbox")
    assert [row["name"] for row in rows] == [name]
    async with running(counters) as tested:  # each form reads what the other left
        await counters.execute("UPDATE outbox SET due_at = now()")
        await until(lambda: _total(tested, 5))


async def test_what_operators_run_to_go_back_names_rows_as_the_release_before_does(
    counters: Database,
) -> None:
    (statement,) = re.findall(r"`(UPDATE outbox SET name = [^`]+)`", OPERATE.read_text())
    later = datetime.now(UTC) + timedelta(hours=1)
    for form in ("2", "1"):
        async with running(counters, form=form) as tested:
            await tested.ask(counter("a"), Send("b", 5, f"later {form}", later))
    await counters.execute(statement)
    rows = await counters.fetch("SELECT name FROM outbox")
    assert [row["name"] for row in rows] == ["Add", "Add"]


async def _total(tested: Any, total: int) -> bool:
    return bool(await tested.total("b") == total)


def test_a_class_of_one_name_in_two_kinds_is_read_by_whose_row_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    abacus = ModuleType("abacus")
    abacus.__dict__["KIND"] = "abacus"
    monkeypatch.setitem(sys.modules, "abacus", abacus)
    other = new_class("Add", (Message[int],), {}, lambda body: body.update(__module__="abacus"))
    assert class_named("abacus.Add", "counter") is class_named("Add", "abacus") is other
    assert class_named("counter.Add", "abacus") is class_named("Add", "counter") is Add
    for name, kind in (("Add", "slide rule"), ("slide rule.Add", "counter")):
        with pytest.raises(LookupError):
            class_named(name, kind)
    del REGISTERED["abacus.Add"]
    assert class_named("Add", "slide rule") is Add  # whose call an older release wrote elsewhere


def test_a_class_that_belongs_to_no_kind_is_refused() -> None:
    with pytest.raises(UnusableName, match=r"nowhere\.Lost .* give its package a KIND"):
        new_class("Lost", (Message[int],), {}, lambda body: body.update(__module__="nowhere"))


async def test_an_ask_of_a_class_that_its_owner_does_not_know_has_no_effect(
    here: ShardCluster,
) -> None:
    async with here.join("a", form="2") as a, here.join("b", form="2") as b:
        await settled(a, b)
        key = b.key()
        turn = b.kind.turns.pop(Add)
        with (
            capture_logs() as logs,
            pytest.raises(ShardUnavailable, match=r"counter\.Add") as refused,
        ):
            await a.ask(counter(key), Add(1))
        assert refused.value.outcome == "none"
        assert [one["name"] for one in logs if one["event"] == "bus.not_known"] == ["counter.Add"]
        b.kind.turns[Add] = turn
        assert await a.ask(counter(key), Add(1)) == 1


async def test_an_entry_that_nobody_can_read_keeps_back_no_other(
    here: ShardCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "SILENCE_SECONDS", math.inf)  # what is lost is not sent again
    async with here.join("a", form="2") as a, here.join("b", form="2") as b:
        await settled(a, b)
        key = b.key()
        a.shard.bus.post((b.shard.id, "in"), {"is": "from tomorrow", "number": 1})
        # In one frame with it.
        assert await a.ask(counter(key), Add(1)) == 1
