"""Operators see all processes and steer them, whichever process answers."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx
import pytest

from tests.journeys.conftest import sign_up
from tests.journeys.neighbours import browsing
from tests.timing import BEAT_SECONDS, LEASE_SECONDS, until
from tolsey.commands import slot_map
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.service import Running
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.people import administrators


@pytest.fixture
async def operators(
    pair: tuple[Running, Running],
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Open an operator's browser at each of the two processes."""
    account = {"email": "operator@example.com", "password": "correct horse battery"}
    await administrators.create_administrator(pair[0].service.database, *account.values())
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(browsing(process)) for process in pair]
        for client in clients:
            assert (await client.post("/api/auth/login", json=account)).status_code == 200
        yield clients[0], clients[1]


def key_at(process: Running) -> str:
    """Make the key of a store that a process owns."""
    keys = (f"store_{n}" for n in itertools.count())
    return next(key for key in keys if slot_of(key) in process.service.runtime.slots.epochs)


async def audited(database: Database) -> list[tuple[str, str]]:
    rows = await database.fetch(
        "SELECT event, subject FROM audit_log WHERE event LIKE 'admin.%' ORDER BY id"
    )
    return [(row["event"], row["subject"]) for row in rows]


# The map


async def test_the_map_shows_every_process_and_every_slot_whoever_is_asked(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    ids = {process.service.shard.id for process in pair}
    for operator in operators:
        answer = (await operator.get("/api/admin/shards?limit=200")).json()
        processes = {process["id"]: process for process in answer["processes"]}
        assert processes.keys() == ids
        for process in processes.values():
            assert process["alive"]
            assert process["answers"]
            assert not process["draining"]
            assert 0 < process["leaseLeftSeconds"] <= LEASE_SECONDS
            assert process["lag"] == {"busSeconds": process["lag"]["busSeconds"]} | {
                "outbox": 0,
                "mailbox": 0,
                "uncommitted": 0,
                "unread": [],
            }
            assert set(process["inFlight"]) == {"asks", "effects"}
        assert sum(process["slots"] for process in processes.values()) == 1024


async def test_the_map_is_paged_and_filtered_by_owner(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    seen: list[int] = []
    cursor: str | None = None
    owner = pair[0].service.shard.id
    while True:
        query: dict[str, Any] = {"limit": 100, "owner": owner}
        answer = await operators[1].get(
            "/api/admin/shards", params=query | ({"cursor": cursor} if cursor else {})
        )
        rows = answer.json()
        assert {row["owner"] for row in rows["items"]} == {owner}
        seen += [row["slot"] for row in rows["items"]]
        cursor = rows["nextCursor"]
        if cursor is None:
            break
    assert seen == sorted(pair[0].service.runtime.slots.epochs)
    unowned = (await operators[1].get("/api/admin/shards?owner=none")).json()
    assert unowned["items"] == []


async def test_a_moved_slot_is_where_it_was_put_until_it_is_let_go(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    one, other = pair
    slot = min(one.service.runtime.slots.epochs)
    to = other.service.shard.id
    path = f"/api/admin/shards/{slot}/move"

    moved = await operators[1].post(path, json={"to": to, "reason": "hot"})

    assert moved.status_code == 200, moved.text
    assert (moved.json()["owner"], moved.json()["pinnedTo"]) == (to, to)
    await until(lambda: slot in other.service.runtime.slots.epochs)
    listed = (await operators[0].get("/api/admin/shards?pinned=true")).json()["items"]
    assert [row["slot"] for row in listed] == [slot]
    released = await operators[0].post(path, json={"to": None, "reason": "cool again"})
    assert released.status_code == 200
    assert released.json()["pinnedTo"] is None
    await until(lambda: slot in one.service.runtime.slots.epochs)
    subject = f"slot:{slot}"
    assert await audited(one.service.database) == [("admin.shard.move", subject)] * 2


async def test_a_move_that_cannot_be_says_why(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    to = pair[1].service.shard.id

    async def move(slot: int, to: str) -> tuple[int, str]:
        answer = await operators[0].post(
            f"/api/admin/shards/{slot}/move", json={"to": to, "reason": "x"}
        )
        return answer.status_code, answer.json()["code"]

    assert await move(1024, to) == (404, "not_found")
    assert await move(7, "nobody") == (422, "unknown_process")
    pair[1].service.shard.retire()
    await until(lambda: any(one.draining for one in pair[0].service.shard.members()))
    assert await move(7, to) == (409, "process_draining")
    assert await audited(pair[0].service.database) == []


async def test_a_process_that_died_is_not_moved_to(
    pair: tuple[Running, Running],
    operators: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    shard = pair[0].service.shard
    shard.holdings[7] = shard.holdings[7]._replace(owner="ghost")
    shard._ownership._observer.end("ghost")

    answer = await operators[0].post(
        "/api/admin/shards/7/move", json={"to": "ghost", "reason": "x"}
    )

    assert (answer.status_code, answer.json()["code"]) == (409, "process_dead")


# Actors


async def test_actors_of_all_processes_are_listed_in_one_order_and_paged(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    keys = [f"store_{n:02}" for n in range(30)]
    for key in keys:
        assert (await operators[0].get(f"/api/admin/actors/store/{key}")).status_code == 200
    for operator in operators:
        seen: list[str] = []
        owners: set[str] = set()
        cursor: str | None = None
        while True:
            query: dict[str, Any] = {"kind": "store", "sort": "id", "limit": 7}
            query |= {"cursor": cursor} if cursor else {}
            answer = (await operator.get("/api/admin/actors", params=query)).json()
            assert answer["unanswered"] == []
            seen += [row["id"] for row in answer["items"]]
            owners |= {row["process"] for row in answer["items"]}
            cursor = answer["nextCursor"]
            if cursor is None:
                break
        assert seen == keys
        assert owners == {process.service.shard.id for process in pair}


async def test_a_bad_place_in_the_list_is_refused(
    operators: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    for cursor in ("bm8", "WzFd", "e30"):
        answer = await operators[0].get("/api/admin/actors", params={"cursor": cursor})
        assert answer.json()["code"] == "invalid_cursor"


async def test_an_actor_is_paused_resumed_and_put_to_sleep_through_any_process(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    one, other = pair
    async with browsing(one) as browser:
        seller = await sign_up(browser)
    owner = one if slot_of(seller.store_id) in one.service.runtime.slots.epochs else other
    there = owner.service.runtime.scheduler.paused
    elsewhere = operators[1] if owner is one else operators[0]
    path = f"/api/admin/actors/store/{seller.store_id}"

    paused = await elsewhere.post(f"{path}/pause", json={"reason": "looking"})
    assert (paused.status_code, paused.json()["status"]) == (200, "paused")
    assert paused.json()["process"] == owner.service.shard.id
    assert [actor.key for actor in there] == [seller.store_id]
    resumed = await elsewhere.post(f"{path}/resume", json={"reason": "seen"})
    assert resumed.json()["status"] != "paused"
    asleep = await elsewhere.post(f"{path}/passivate", json={"reason": "enough"})
    assert asleep.json()["status"] == "asleep"
    seen = (await elsewhere.get(path)).json()
    assert seen["id"] == seller.store_id
    assert "state" in seen


async def test_an_actor_that_is_busy_elsewhere_is_a_409_here_too(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    one, other = pair
    async with browsing(one) as browser:
        seller = await sign_up(browser)
        owner = one if slot_of(seller.store_id) in one.service.runtime.slots.epochs else other
        elsewhere = operators[1] if owner is one else operators[0]
        path = f"/api/admin/actors/store/{seller.store_id}"
        await elsewhere.post(f"{path}/pause", json={"reason": "trying"})
        async with anyio.create_task_group() as tasks:
            asking = seller.connect
            tasks.start_soon(asking)
            await until(lambda: owner.service.runtime.admin.waiting)
            busy = await elsewhere.post(f"{path}/passivate", json={"reason": "trying"})
            await elsewhere.post(f"{path}/resume", json={"reason": "trying"})

    assert (busy.status_code, busy.json()["code"]) == (409, "actor_busy")


async def test_an_actor_whose_slot_has_just_moved_is_found(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    one, other = pair
    key = key_at(one)
    slot = slot_of(key)
    shard, to = one.service.shard, other.service.shard.id
    stale = shard.holdings[slot]
    await other.service.shard.move(slot, to)
    await until(lambda: slot in other.service.runtime.slots.epochs)
    await until(lambda: shard.holdings[slot].owner == to)
    shard.holdings[slot] = stale

    for operator in operators:
        seen = await operator.get(f"/api/admin/actors/store/{key}")
        assert seen.json().get("process") == to, seen.text


# Metrics


def samples(text: str, name: str) -> dict[str, float]:
    """Read the samples of a metric by their process; without that label by nothing."""
    found = re.findall(rf'^{name}(?:{{.*?process="([^"]+)".*?}})? (\S+)$', text, re.MULTILINE)
    return {process: float(value) for process, value in found}


async def test_one_scrape_shows_every_process(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    first, second = [(await operator.get("/metrics")).text for operator in operators]

    for text in (first, second):
        owned = samples(text, "tolsey_slots_owned")
        assert len(owned) == 2
        assert sum(owned.values()) == 1024
        assert all(left > 0 for left in samples(text, "tolsey_lease_seconds_left").values())
        assert samples(text, "tolsey_processes_alive") == {"": 2}
        assert samples(text, "tolsey_processes_silent") == {"": 0}
        assert samples(text, "tolsey_slots_unowned") == {"": 0}
        assert samples(text, "tolsey_outbox_pending") == {"": 0}
        for name in ("leases_lapsed", "commits_fenced", "redis_data_lost"):
            assert list(samples(text, f"tolsey_{name}_total").values()) == [0, 0]
        assert sum(samples(text, "tolsey_slots_handed_over_total").values()) > 0
        for name in ("bus_lag_seconds", "asks_in_flight", "asks_sent_total", "asks_served_total"):
            assert len(samples(text, f"tolsey_{name}")) == 2
        assert text.count("# TYPE tolsey_turn_seconds histogram") == 1
    owned = samples(first, "tolsey_slots_owned")
    assert owned == samples(second, "tolsey_slots_owned")
    assert all(re.fullmatch(r"[^:]+:\d+(:[0-9a-f]+)?", process) for process in owned)


async def test_a_process_that_gives_no_metrics_is_counted(
    pair: tuple[Running, Running], operators: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    async def silent(_: Any) -> None:
        await asyncio.Event().wait()

    for name in ("metrics", "vitals", "actors"):
        pair[1].service.shard.operations[name] = silent
    text = (await operators[0].get("/metrics")).text
    mapped = (await operators[0].get("/api/admin/shards")).json()
    actors = (await operators[0].get("/api/admin/actors")).json()

    assert samples(text, "tolsey_processes_silent") == {"": 1}
    assert samples(text, "tolsey_processes_alive") == {"": 2}
    assert len(samples(text, "tolsey_slots_owned")) == 1
    answers = {process["id"]: process["answers"] for process in mapped["processes"]}
    assert answers == {pair[0].service.shard.id: True, pair[1].service.shard.id: False}
    assert actors["unanswered"] == [pair[1].service.shard.id]


# The command


async def test_the_command_shows_processes_that_run_and_one_that_leaves(
    brisk: Settings, pair: tuple[Running, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_map, "BEATS", LEASE_SECONDS / BEAT_SECONDS)
    ids = sorted(process.service.shard.id for process in pair)
    pair[1].service.shard.retire()
    await until(lambda: len(pair[0].service.runtime.slots.epochs) == 1024)

    seen = await slot_map.read_map(str(brisk.database_url), str(brisk.redis_url), LEASE_SECONDS)

    assert [one.id for one in seen.processes] == ids
    states = {one.id: (one.state, one.slots, one.slot_ranges) for one in seen.processes}
    assert states[pair[0].service.shard.id] == ("alive", 1024, "0-1023")
    assert states[pair[1].service.shard.id] == ("draining", 0, "")
    assert all((one.lease_age_seconds or 0) < LEASE_SECONDS for one in seen.processes)
    assert (seen.unowned, seen.unowned_slots) == ("", 0)
    assert "0-1023" in seen.as_text()
