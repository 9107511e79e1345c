"""No tenant and no slow shop keeps another's calls waiting."""

import asyncio
from collections import Counter

import pytest

from tests.runtime.counter import Add, Pull, PullNumber, RenewNumber, counter
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.timing import until
from tolsey.runtime.outbox.lanes import PLACES, Lane
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio


class SlowShops:
    """Shops that answer some organizations, and the others only when they are let."""

    def __init__(self, *slow: str) -> None:
        self.slow = slow
        self.opened = asyncio.Event()
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.now: Counter[str] = Counter()
        self.most = 0

    async def answer(self, call: PullNumber | RenewNumber) -> None:
        self.asked.append(call.name)
        self.now[call.organization_id] += 1
        self.most = max(self.most, self.now.total())
        if call.organization_id in self.slow:
            await self.opened.wait()
        await asyncio.sleep(0)
        self.now[call.organization_id] -= 1
        self.answered.append(call.name)


async def pull(
    tested: RuntimeOnDisk, organization_id: str, *names: str, lane: str = "platform"
) -> None:
    for name in names:
        await tested.ask(counter(organization_id), Pull(organization_id, name, lane))


async def test_a_tenants_calls_are_made_while_two_others_have_fifty_that_hang(
    counters: Database,
) -> None:
    shops = SlowShops("ann", "bob")
    handlers = {PullNumber: shops.answer, RenewNumber: shops.answer}
    async with running(counters, handlers=handlers) as tested:
        for n in range(50):
            await pull(tested, ("ann", "bob")[n % 2], f"slow {n}")
        await until(lambda: len(shops.asked) == PLACES["platform"] // 2)
        await pull(tested, "cleo", "edit 1", "edit 2")
        await pull(tested, "cleo", "renewal", lane="short")
        await until(lambda: len(shops.answered) == 3)
        assert set(shops.answered) == {"edit 1", "edit 2", "renewal"}
        assert shops.now == {"ann": 16, "bob": 16, "cleo": 0}
        shops.opened.set()
        await until(lambda: len(shops.answered) == 53)
        assert shops.most <= PLACES["platform"]


async def test_a_renewal_has_a_place_of_its_own_while_every_tenant_hangs(
    counters: Database,
) -> None:
    everybody = [f"org {n}" for n in range(100)]
    shops = SlowShops(*everybody)
    handlers = {PullNumber: shops.answer, RenewNumber: shops.answer}
    async with running(counters, handlers=handlers) as tested:
        for name in everybody:
            await pull(tested, name, f"slow {name}")
        await until(lambda: len(shops.asked) == PLACES["platform"])
        await pull(tested, "cleo", "renewal", lane="short")
        await until(lambda: shops.answered == ["renewal"])
        shops.opened.set()
        await until(lambda: len(shops.answered) == 101)


async def test_a_thousand_slow_calls_of_one_tenant_take_no_turn_of_another(
    counters: Database,
) -> None:
    share, shops = PLACES["platform"] // 4, SlowShops("ann")
    handlers = {PullNumber: shops.answer, RenewNumber: shops.answer}
    async with running(counters, handlers=handlers, grace_seconds=0.1) as tested:
        for first in range(0, 1_000, 100):
            names = (f"slow {n}" for n in range(first, first + 100))
            await asyncio.gather(*(pull(tested, "ann", name) for name in names))
        await until(lambda: len(shops.asked) == share)
    shops.asked.clear()
    shops.now.clear()
    async with running(counters, handlers=handlers, grace_seconds=0.1) as tested:
        await until(lambda: len(shops.asked) == share)  # as a process finds them that follows
        await pull(tested, "cleo", "edit", "pull")
        await pull(tested, "cleo", "renewal", lane="short")
        await until(lambda: len(shops.answered) == 3)
        assert set(shops.asked[share:]) == {"edit", "pull", "renewal"}

        async def only_the_slow_ones_wait() -> bool:
            return await tested.count("outbox") == 1_000

        await until(only_the_slow_ones_wait)  # an answer is told before its row is done with


async def test_a_lane_lets_tenants_in_by_turns() -> None:
    lane = Lane(1)
    entered: list[str] = []

    async def work(tenant: str) -> None:
        async with lane.place(tenant):
            entered.append(tenant)
            await asyncio.sleep(0)

    await asyncio.gather(*map(work, "aaabbc"))
    assert "".join(entered) == "aabcab"


async def test_who_gives_up_waiting_leaves_no_place_taken() -> None:
    lane, holds = Lane(1), asyncio.Event()

    async def hold(tenant: str) -> str:
        async with lane.place(tenant):
            await holds.wait()
        return tenant

    first, second, third = (asyncio.ensure_future(hold(name)) for name in "abc")
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait({second})
    holds.set()
    assert list(await asyncio.gather(first, third)) == ["a", "c"]
    again = asyncio.ensure_future(hold("b"))
    assert await asyncio.wait_for(again, 10) == "b"


async def test_who_is_let_in_and_gives_up_at_once_leaves_no_place_taken() -> None:
    lane, holds = Lane(1), asyncio.Event()

    async def hold() -> None:
        async with lane.place("a"):
            await holds.wait()

    first, second = asyncio.ensure_future(hold()), asyncio.ensure_future(hold())
    await asyncio.sleep(0)
    holds.set()
    await first  # which lets the second in
    second.cancel()
    await asyncio.wait({second})
    await asyncio.wait_for(hold(), 10)


async def test_messages_are_in_no_lane(counters: Database) -> None:
    shops = SlowShops("ann")
    async with running(counters, handlers={PullNumber: shops.answer}) as tested:
        await pull(tested, "ann", *(f"slow {n}" for n in range(80)))
        await tested.runtime.accept(counter("bob"), Add(1), id="one")
        await until(lambda: _added(tested))
        shops.opened.set()


async def _added(tested: RuntimeOnDisk) -> bool:
    return await tested.total("bob") == 1
