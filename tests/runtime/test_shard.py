"""Many processes, one owner for each actor, whatever is cut, lost, late or dead."""

import asyncio
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis.asyncio

from tests.campaigns.cluster.link import Link
from tests.databases import Servers
from tests.runtime.counter import Add, Break, Counter, Held, Read, Refuse, Transfer, counter
from tests.runtime.shard_cluster import Home, ShardCluster, joined, settled
from tests.timing import LEASE_SECONDS, STEPS, beat_often, lapse, until
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import DeadlineExceeded, RuntimeFault, ShardUnavailable, TurnFailed
from tolsey.runtime.shards import ownership
from tolsey.runtime.shards.leases import BEATS, Observer, is_gone, machine
from tolsey.runtime.shards.membership import Heartbeat, choose_key, read_line
from tolsey.runtime.shards.placement import place
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.runtime.turns.scheduler import REQUEST_ID
from tolsey.storage.database import Database
from tolsey.storage.embedded.binaries import valkey
from tolsey.storage.runtime.slots import Slots


@pytest.fixture
async def here(
    database: Database, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ShardCluster]:
    beat_often(monkeypatch)
    async with joined(database, redis_url) as made:
        yield made


@pytest.fixture
async def pair(here: ShardCluster) -> AsyncIterator[tuple[Home, Home]]:
    async with here.join("a") as a, here.join("b") as b:
        await settled(a, b)
        yield a, b


async def total(here: ShardCluster, key: str) -> int:
    row = await here.database.fetchrow("SELECT total FROM test_counters WHERE key = $1", key)
    return int(row["total"]) if row else 0


# Ownership


async def test_two_processes_share_the_slots_and_answer_for_all_of_them(
    pair: tuple[Home, Home],
) -> None:
    a, b = pair
    assert 300 < len(a.runtime.slots.epochs) < 724
    for n in range(40):
        assert await a.ask(counter(f"k{n}"), Add(n)) == n
        assert await b.ask(counter(f"k{n}"), Add(1)) == n + 1
        assert await a.ask(counter(f"k{n}"), Read()) == n + 1
    assert a.runtime.telemetry.counters["bus_sent"] > 10


@pytest.mark.parametrize("does", ["read", "send"])
async def test_a_fault_that_nobody_expected_leaves_a_process_its_bus(
    pair: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    a, b = pair
    key, wire, faults = b.key(), a.shard.bus._wire, [ZeroDivisionError("planted")]
    carry = getattr(wire, does)

    async def fails_once(*given: Any) -> Any:
        if faults:
            raise faults.pop()
        return await carry(*given)

    monkeypatch.setattr(wire, does, fails_once)
    assert await a.ask(counter(key), Add(1)) == 1  # the read that is under way brings this answer
    assert await a.ask(counter(key), Add(2)) == 3
    assert faults == []


async def test_who_joins_takes_a_share_from_each_and_nothing_else_moves(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    before = [set(home.runtime.slots.epochs) for home in pair]
    async with here.join("c") as c:
        await settled(a, b, c)
        assert set(a.runtime.slots.epochs) <= before[0]
        assert set(b.runtime.slots.epochs) <= before[1]
        assert 200 < len(c.runtime.slots.epochs) < 500
    await settled(a, b)
    assert [set(home.runtime.slots.epochs) for home in pair] == before


async def test_a_process_alone_sends_nothing_to_redis_for_its_own_actors(
    here: ShardCluster,
) -> None:
    async with here.join("a") as a:
        await settled(a)
        for n in range(20):
            await a.ask(counter(f"k{n}"), Transfer(f"k{n + 1}", 1))
        counters = a.runtime.telemetry.counters
        assert counters["bus_sent"] == counters["bus_frames"] == 0


async def test_of_two_processes_that_take_a_slot_one_gets_it(here: ShardCluster) -> None:
    stored = Slots(here.database)
    seen = {slot: holding.epoch for slot, holding in (await stored.read()).items()}
    one, two = await asyncio.gather(stored.take("one", seen), stored.take("two", seen))
    assert not one.keys() & two.keys()
    assert one.keys() | two.keys() == seen.keys()
    held = await stored.read()
    assert all(
        held[slot].owner == "one" and held[slot].epoch == epoch for slot, epoch in one.items()
    )


async def test_a_moved_slot_stays_where_it_was_put_until_that_process_goes(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    key = a.key()
    assert await a.ask(counter(key), Add(5)) == 5
    await b.shard.move(slot_of(key), b.shard.id)
    await until(lambda: slot_of(key) in b.runtime.slots.epochs)
    assert await a.ask(counter(key), Add(1)) == 6
    async with here.join("c") as c:
        await settled(a, b, c)
        assert slot_of(key) in b.runtime.slots.epochs
    with pytest.raises(LookupError):
        await a.shard.move(slot_of(key), "nobody")


# Hand-over


async def test_no_ask_fails_while_processes_come_and_go(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    done = asyncio.Event()
    asked = {f"k{n}": 0 for n in range(24)}

    async def asker(home: Home, key: str) -> None:
        while not done.is_set():
            await home.ask(counter(key), Add(1))
            asked[key] += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as tasks:
        for n, key in enumerate(asked):
            tasks.create_task(asker(pair[n % 2], key))
        for _ in range(2):
            async with here.join("c") as c:
                await settled(a, b, c)
            await settled(a, b)
        done.set()
    assert {key: await total(here, key) for key in asked} == asked
    assert sum(asked.values()) > 200
    assert a.runtime.telemetry.counters["slots_handed_over"] > 100


async def test_a_hand_over_waits_for_a_turn_that_gathers(pair: tuple[Home, Home]) -> None:
    a, b = pair
    key = a.key()
    asked = asyncio.create_task(a.ask(counter(key), Held("gate", 7)))
    await a.kind.entered["gate"].wait()
    moving = asyncio.create_task(a.shard.move(slot_of(key), b.shard.id))
    await until(lambda: a.runtime.slots.is_leaving(slot_of(key)))
    behind = asyncio.create_task(b.ask(counter(key), Add(1)))
    a.kind.gates["gate"].set()
    assert await asked == 7
    assert await behind == 8
    await moving
    assert slot_of(key) in b.runtime.slots.epochs


async def test_a_turn_that_does_not_end_is_taken_again_at_the_new_owner(
    here: ShardCluster, pair: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = pair
    key = a.key()
    monkeypatch.setattr(Counter, "turn_seconds", LEASE_SECONDS)
    asked = asyncio.create_task(a.ask(counter(key), Held("gate", 7)))
    await a.kind.entered["gate"].wait()
    moving = asyncio.create_task(a.shard.move(slot_of(key), b.shard.id))
    await until(lambda: a.runtime.slots.is_leaving(slot_of(key)))
    here.time.advance(ownership.DRAIN_SHARE * LEASE_SECONDS)
    await moving
    b.kind.gates["gate"].set()
    a.kind.gates["gate"].set()
    assert await asked == 7
    assert await total(here, key) == 7


async def test_a_paused_actor_stays_paused_where_it_goes(pair: tuple[Home, Home]) -> None:
    a, b = pair
    key = a.key()
    a.runtime.scheduler.pause(counter(key))
    await a.shard.move(slot_of(key), b.shard.id)
    await until(lambda: counter(key) in b.runtime.scheduler.paused)
    waiting = asyncio.create_task(a.ask(counter(key), Add(1)))
    b.runtime.scheduler.resume(counter(key))
    assert await waiting == 1


# Death


async def test_the_slots_of_a_killed_process_are_taken_once_its_lease_has_ended_and_not_before(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    key = b.key()
    assert await a.ask(counter(key), Add(3)) == 3
    await b.kill()
    await a.shard.round()  # it has seen the last beat
    await here.lapse(steps=2)
    assert slot_of(key) not in a.runtime.slots.epochs
    await here.lapse(steps=2)
    assert await a.ask(counter(key), Add(1)) == 4
    await settled(a)


async def test_an_ask_whose_reply_died_with_its_owner_is_answered_from_the_journal(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    key = b.key()
    b.streams.cut = "re"
    asked = asyncio.create_task(a.ask(counter(key), Add(3, entry="once")))
    await until(lambda: _is(here, key, 3))
    await b.kill()
    await here.lapse()
    assert await asked == 3
    assert await total(here, key) == 3
    assert a.runtime.telemetry.counters["replies_looked_up"] == 1
    entries = await here.database.fetch("SELECT * FROM test_entries WHERE key = $1", key)
    assert len(entries) == 1


async def test_a_transfer_arrives_once_although_the_receiver_dies(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    mine, theirs = a.key(), b.key()
    b.presence.is_cut = True
    for task in b.shard._running:
        task.cancel()
    for _ in range(10):
        assert await a.ask(counter(mine), Transfer(theirs, 5)) <= -5
    await b.kill()
    await here.lapse()
    await until(lambda: _is(here, theirs, 50))
    assert await total(here, mine) == -50


# Leases


async def test_a_process_cut_from_redis_answers_until_its_lease_ends_and_then_refuses(
    here: ShardCluster,
) -> None:
    async with here.join("a") as a:
        await settled(a)
        key = a.key()
        await a.ask(counter(key), Add(1))
        a.presence.is_cut = True
        assert await a.ask(counter(key), Add(1)) == 2
        here.time.advance(LEASE_SECONDS)
        assert not a.shard.leased
        for message in (Read(), Add(1), Refuse()):
            with pytest.raises(ShardUnavailable, match="lease"):
                await a.ask(counter(key), message)
        a.presence.is_cut = False
        await until(lambda: a.shard.leased)
        assert a.runtime.telemetry.counters["leases_lapsed"] == 1
        assert await a.ask(counter(key), Add(1)) == 3


async def test_a_process_that_slept_through_its_lease_tells_nothing_old(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    key = b.key()
    assert await b.ask(counter(key), Add(1)) == 1
    b.presence.is_cut = True  # asleep, as far as the others see
    await here.lapse()
    assert slot_of(key) in a.runtime.slots.epochs
    assert await a.ask(counter(key), Add(1)) == 2
    with pytest.raises(ShardUnavailable):
        await b.ask(counter(key), Read())
    b.presence.is_cut = False
    await settled(a, b)
    assert await b.ask(counter(key), Read()) == 2


async def test_with_two_redis_masters_nobody_answers_what_is_old(
    here: ShardCluster, servers: Servers, tmp_path: Path
) -> None:
    if not servers.embedded:
        pytest.skip("the link leads to the socket of an embedded server")
    async with (
        another_redis(tmp_path) as promoted,
        Link(Path(urlsplit(here.redis_url).path)).standing() as link,
        here.join("a") as a,
        beyond(here, f"redis://127.0.0.1:{link.port}/0").join("b") as b,
    ):
        await settled(a, b)
        written = {a.key(): 0, b.key(): 0}
        answered = dict.fromkeys(written, 0)
        stale: list[tuple[str, int, int]] = []
        ended = asyncio.Event()

        async def write(home: Home, key: str) -> None:
            while not ended.is_set():
                await asyncio.sleep(0.005)
                with suppress(RuntimeFault):
                    written[key] = await home.ask(counter(key), Add(1), timeout=1)

        async def read(home: Home, key: str) -> None:
            while not ended.is_set():
                await asyncio.sleep(0.005)
                with suppress(RuntimeFault):
                    least = written[key]
                    found = await home.ask(counter(key), Read(), timeout=1)
                    answered[key] += 1
                    if found < least:
                        stale.append((home.name, least, found))

        async with asyncio.TaskGroup() as tasks:
            for owner, other, key in zip((a, b), (b, a), written, strict=True):
                tasks.create_task(read(owner, key))  # it writes nothing, so no fence tells it
                tasks.create_task(write(other, key))
            await until(lambda: min(written.values()) > 3)
            await copy_keys(here.redis_url, promoted)
            await link.redirect(
                Path(urlsplit(promoted).path)
            )  # for b alone the other is the master
            for _ in range(2 * STEPS):
                await lapse(here.time, LEASE_SECONDS, a.shard, b.shard, steps=1)
                before = dict(answered)
                await until(partial(_more_than, before, answered))
            ended.set()
        assert stale == []
        await link.redirect(Path(urlsplit(here.redis_url).path))
        await settled(a, b)
        for key, least in written.items():
            assert await b.ask(counter(key), Add(1), timeout=10) > least


@asynccontextmanager
async def another_redis(folder: Path) -> AsyncIterator[str]:
    """Run one more server, with nothing in it."""
    path = folder / "redis.sock"
    server = await asyncio.create_subprocess_exec(
        *(str(valkey()), "--port", "0", "--unixsocket", str(path), "--save", ""),
        stdout=asyncio.subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        await until(path.exists)
        yield f"unix://{path}?db=0"
    finally:
        server.kill()
        await server.wait()


def beyond(here: ShardCluster, redis_url: str) -> ShardCluster:
    """Return a way for processes to join the same deployment by another address of Redis."""
    there = ShardCluster(here.database, redis_url)
    there.time = here.time
    return there


def _more_than(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    return all(now[key] > before[key] for key in before)


async def copy_keys(source_url: str, target_url: str) -> None:
    """Let one server know what the other does, as a replica does when it is promoted."""
    source, target = map(redis.asyncio.from_url, (source_url, target_url))
    for key in await source.keys("*"):
        body = await source.dump(key)
        if body is not None:
            await target.restore(key, 0, body)
    await source.aclose()
    await target.aclose()


async def test_a_former_owner_cannot_commit(here: ShardCluster, pair: tuple[Home, Home]) -> None:
    a, b = pair
    key = b.key()
    assert await b.ask(counter(key), Add(1)) == 1
    epoch = b.runtime.slots.epochs[slot_of(key)]
    await Slots(here.database).take(a.shard.id, {slot_of(key): epoch})  # b does not know
    assert await b.ask(counter(key), Add(1)) == 2  # refused by the fence, sent on, answered by a
    assert await total(here, key) == 2
    assert b.runtime.telemetry.counters["commits_fenced"] == 1
    assert b.runtime.slots.epochs.get(slot_of(key)) != epoch


def test_an_observer_waits_a_whole_lease_from_the_last_beat_it_saw() -> None:
    now = [0.0]
    observer = Observer(10.0, lambda _: False, lambda: now[0])
    observer.observe({"x": "1"}, {"x"})
    now[0] = 9.0
    observer.observe({"x": "2"}, {"x"})
    now[0] = 18.9
    assert not observer.is_dead("x")
    observer.start_over()  # beats may have been lost with the data
    now[0] = 28.8
    assert not observer.is_dead("x")
    observer.observe({}, {"x"})  # its line is gone: lost, for nobody takes it away
    now[0] = 38.7
    assert not observer.is_dead("x")
    now[0] = 38.9
    assert observer.is_dead("x")


async def test_a_process_without_a_descriptor_left_holds_nobody_dead(
    database: Database, redis_url: str
) -> None:
    async with (
        joined(database, redis_url) as here,
        here.join() as a,
        neighbour(here) as (process, id),
    ):
        stored = Slots(here.database)
        await until(lambda: _shared(stored, a.shard.id, id))
        before = await _owners(stored)
        limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        since = read_line((await a.presence.lines())[id]).beat
        await until(lambda: _beaten(a, id, since + BEATS))
        assert await _owners(stored) == before
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits)


@asynccontextmanager
async def neighbour(here: ShardCluster) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Run a process of its own that joins, and tell its id."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.runtime.neighbour"),
        *(here.database.dsn, here.redis_url, str(here.lease_seconds)),
        stdin=pipe,
        stdout=pipe,
    )
    assert process.stdin
    assert process.stdout
    try:
        yield process, (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def _shared(stored: Slots, *owners: str) -> bool:
    wanted = place(owners, {})
    return all(one.owner == wanted[slot] for slot, one in (await stored.read()).items())


async def _owners(stored: Slots) -> dict[int, tuple[int, str | None]]:
    return {slot: (one.epoch, one.owner) for slot, one in (await stored.read()).items()}


async def _beaten(home: Home, process: str, beat: int) -> bool:
    return read_line((await home.presence.lines())[process]).beat >= beat


def test_only_no_such_process_means_that_one_is_gone() -> None:
    with subprocess.Popen(["sleep", "60"]) as living:  # noqa: S607 - any process will do
        home = machine()
        began = Path(f"/proc/{living.pid}/stat").read_text().rpartition(")")[2].split()[19]
        assert not is_gone(f"{home}-{living.pid}-{began}-n")
        assert not is_gone(f"{home}-{living.pid}-0-n")  # it could not tell when it began
        assert is_gone(f"{home}-{living.pid}-{int(began) + 1}-n")  # its number is another's
        assert not is_gone(f"elsewhere-{living.pid}-{int(began) + 1}-n")
        living.kill()
        living.wait()
        assert is_gone(f"{home}-{living.pid}-{began}-n")


def test_nobody_judges_itself() -> None:
    now = [0.0]
    observer = Observer(10.0, lambda _: True, lambda: now[0], me="x")
    observer.observe({"x": "1", "y": "1"}, {"x", "y"})
    assert observer.is_dead("y")
    now[0] = 11.0
    assert not observer.is_dead("x")


def test_a_new_beat_takes_a_death_back() -> None:
    observer = Observer(10.0, lambda _: False)
    observer.observe({"x": "1"}, {"x"})
    observer.end("x")
    assert observer.is_dead("x")
    observer.observe({"x": "1"}, {"x"})
    assert observer.is_dead("x")
    observer.observe({"x": "2"}, {"x"})
    assert not observer.is_dead("x")
    assert observer.is_fresh("x")


def test_an_old_line_is_not_taken_for_a_process() -> None:
    now = [0.0]
    observer = Observer(10.0, lambda _: False, lambda: now[0])
    observer.observe({"x": "1"}, ())
    assert not observer.is_fresh("x")
    observer.observe({"x": "2"}, ())
    assert observer.is_fresh("x")
    now[0] = 6.0
    assert not observer.is_fresh("x")


def test_a_joining_process_moves_only_its_share() -> None:
    before = place(["a", "b", "c"], {})
    after = place(["a", "b", "c", "d"], {})
    moved = [slot for slot, owner in after.items() if before[slot] != owner]
    assert {after[slot] for slot in moved} == {"d"}
    assert 180 < len(moved) < 330
    assert place([], {}) == {}


# The bus


async def test_refusals_faults_and_deadlines_cross_as_what_they_are(
    pair: tuple[Home, Home],
) -> None:
    a, b = pair
    key = b.key()
    with pytest.raises(Refused, match="at 0"):
        await a.ask(counter(key), Refuse())
    with pytest.raises(TurnFailed, match="ZeroDivisionError"):
        await a.ask(counter(key), Break())
    with pytest.raises(DeadlineExceeded):
        await a.ask(counter(key), Held("late"), timeout=0.2)
    b.kind.gates["late"].set()


async def test_a_request_id_crosses_with_its_message(pair: tuple[Home, Home]) -> None:
    a, b = pair
    key = b.key()
    REQUEST_ID.set("req_over_there")
    await a.ask(counter(key), Add(1))
    assert next(b.runtime.telemetry.last_of(counter(key))).request_id == "req_over_there"


async def test_a_wrong_guess_is_corrected_by_the_receiver(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    slot = slot_of(key := b.key())
    await b.ask(counter(key), Add(4))
    async with here.join("c") as c:
        await settled(a, b, c)
        owner = b if slot in b.runtime.slots.epochs else c
        wrong = c if owner is b else b
        a.shard.holdings[slot] = a.shard.holdings[slot]._replace(owner=wrong.shard.id)
        assert await a.ask(counter(key), Add(1)) == 5
        assert a.shard.holdings[slot].owner == owner.shard.id


async def test_everything_goes_on_when_redis_is_emptied(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    client = redis.asyncio.from_url(here.redis_url)
    asked = 0
    key = b.key()
    for n in range(60):
        if n % 20 == 10:
            await client.flushall()
        await a.ask(counter(key), Add(1))
        asked += 1
    await client.aclose()
    assert await total(here, key) == asked
    await settled(a, b)
    assert a.runtime.telemetry.counters["redis_data_lost"] >= 1


async def test_a_frame_that_is_not_ours_or_comes_twice_changes_nothing(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    key = b.key()
    await a.ask(counter(key), Add(1, entry="sealed"))
    client: Any = redis.asyncio.from_url(here.redis_url)
    stream = next(k for k in await client.keys(f"*in:{b.shard.id}"))
    frames = [fields[b"f"] for _, fields in await client.xrange(stream) if b"f" in fields]
    assert frames
    for body in frames:
        assert b"sealed" not in body
        assert key.encode() not in body
        await client.xadd(stream, {"f": body})  # a replay
        await client.xadd(stream, {"f": body[:-1] + bytes((body[-1] ^ 1,))})
        await client.xadd(
            stream.replace(b":in:", b":re:"), {"f": body}
        )  # where it was not sealed for
    await client.xadd(
        stream, {"f": b'["x",[["a",1,"counter","k","Add","{}","i",9,[],null,false]]]'}
    )
    await client.aclose()
    assert await a.ask(counter(key), Add(1)) == 2
    assert await total(here, key) == 2
    await until(lambda: b.streams.refused == 2 * len(frames) + 1)


@pytest.mark.parametrize(
    ("own", "announced", "chosen"),
    [
        (["k2", "k1"], [], "k2"),
        (["k2", "k1"], [["k1", "k2"], ["k2", "k1"]], "k2"),
        (["k2", "k1"], [["k2", "k1"], ["k1"]], "k1"),
        (["k1", "k2"], [["k2"]], "k2"),
        (["k3", "k2", "k1"], [["k1", "k2"], ["k2", "k3"]], "k2"),
        (["k2", "k1"], [[]], "k2"),  # the release before, which announces nothing
        (["k2", "k1"], [[], ["k1"]], "k1"),
        (["k2", "k1"], [["k3"]], "k2"),
    ],
)
def test_frames_are_sealed_with_the_first_key_that_every_live_member_announced(
    own: list[str], announced: list[list[str]], chosen: str
) -> None:
    assert choose_key(own, announced) == chosen


def test_a_heartbeat_announces_keys_and_one_of_the_release_before_announces_none() -> None:
    assert read_line(Heartbeat(1, keys=("k2", "k1")).encode()).keys == ("k2", "k1")
    assert read_line('{"beat":1,"host":"a","pid":7,"since":"","draining":false}').keys == ()


async def test_processes_with_old_and_new_keys_answer_each_other_in_both_directions(
    here: ShardCluster,
) -> None:
    async with here.join("b", keys=("k2", "k1")) as b:
        async with here.join("a") as a:
            await settled(a, b)
            assert await a.ask(counter(b.key()), Add(1)) == 1
            assert await b.ask(counter(a.key()), Add(2)) == 2
            assert (a.streams.refused, b.streams.refused) == (0, 0)
            assert b.streams.sealed_with == {"k1"}
        async with here.join("c", keys=("k1", "k2")) as c, here.join("d", keys=("k2",)) as d:
            await settled(b, c, d)
            b.streams.sealed_with.clear()
            for asker, owner in ((b, c), (c, b), (b, d), (d, c), (c, d)):
                assert await asker.ask(counter(owner.key()), Add(0)) >= 0
            assert (b.streams.refused, c.streams.refused, d.streams.refused) == (0, 0, 0)
            assert b.streams.sealed_with == {"k2"}


async def test_an_operation_of_another_process_answers_or_says_why_not(
    pair: tuple[Home, Home],
) -> None:
    a, b = pair

    async def double(number: int) -> int:
        if number < 0:
            raise Refused("negative")
        return 2 * number

    b.shard.operations["double"] = double
    assert await a.shard.call(b.shard.id, "double", 21) == 42
    with pytest.raises(Refused, match="negative"):
        await a.shard.call(b.shard.id, "double", -1)
    with pytest.raises(ShardUnavailable):
        await a.shard.call(b.shard.id, "unheard of")
    with pytest.raises(LookupError):
        await a.shard.call("nobody", "double", 1)
    answers = await a.shard.call_all("look", {})
    assert answers == {a.shard.id: None, b.shard.id: None}


async def _is(here: ShardCluster, key: str, amount: int) -> bool:
    return await total(here, key) == amount


async def test_a_slot_that_went_and_came_back_unseen_is_read_anew(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    key = b.key()
    assert await b.ask(counter(key), Add(1)) == 1
    slot, stored = slot_of(key), Slots(here.database)
    for home in (a, b):
        home.presence.is_cut = True
        await home.shard.round()  # none that began before will see what comes now
    taken = await stored.take(a.shard.id, {slot: b.runtime.slots.epochs[slot]})
    await here.database.execute("UPDATE test_counters SET total = 7 WHERE key = $1", key)
    back = await stored.take(b.shard.id, taken)
    for home in (a, b):
        home.presence.is_cut = False
        await home.shard.round()
    assert b.runtime.slots.epochs[slot] == back[slot]
    assert await b.ask(counter(key), Read()) == 7


async def test_a_process_whose_streams_were_taken_away_makes_them_again(
    pair: tuple[Home, Home],
) -> None:
    a, b = pair
    await a.streams.drop(b.shard.id)
    await b.shard.round()
    assert await a.ask(counter(b.key()), Add(1)) == 1


async def test_a_frame_that_is_read_late_changes_nothing_that_took_effect_elsewhere(
    here: ShardCluster, pair: tuple[Home, Home]
) -> None:
    a, b = pair
    slot = slot_of(key := b.key())
    b.streams.cut = "re"
    asked = asyncio.create_task(a.ask(counter(key), Add(3)))
    await until(lambda: _is(here, key, 3))
    client: Any = redis.asyncio.from_url(here.redis_url)
    stream = next(k for k in await client.keys(f"*in:{b.shard.id}"))
    frames = [fields[b"f"] for _, fields in await client.xrange(stream) if b"f" in fields]
    b.streams.cut = None
    assert await asked == 3
    await b.shard.move(slot, a.shard.id)
    await b.shard.move(slot, b.shard.id)
    b.shard._routing._served.clear()  # long ago
    for body in frames:
        await client.xadd(stream, {"f": body})
    await client.aclose()
    await until(lambda: b.runtime.telemetry.counters["replies_looked_up"] >= 1)
    assert await a.ask(counter(key), Add(1)) == 4
    assert await total(here, key) == 4
