import asyncio
from typing import Any

import pytest

from tests.runtime.counter import (
    Add,
    Break,
    Counter,
    CounterState,
    Held,
    Read,
    Refuse,
    Resolve,
    SlowRead,
    Wait,
    counter,
)
from tests.runtime.runtime_on_disk import RuntimeOnDisk, running
from tests.timing import until
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision, Refused
from tolsey.runtime.errors import (
    Cycle,
    DeadlineExceeded,
    NotOwner,
    Overloaded,
    ShardUnavailable,
    TurnFailed,
)
from tolsey.runtime.messages import ActorId
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database


async def test_an_actor_takes_one_turn_at_a_time(counters: Database) -> None:
    async with running(counters) as tested:
        first = asyncio.ensure_future(tested.ask(counter("a"), Held("first", 1)))
        await tested.kind.entered["first"].wait()
        second = asyncio.ensure_future(tested.ask(counter("a"), Held("second", 10)))
        third = asyncio.ensure_future(tested.ask(counter("a"), Add(100)))
        await until(lambda: tested.runtime.admin.waiting == 2)
        assert not tested.kind.entered["second"].is_set()
        tested.kind.gates["second"].set()
        tested.kind.gates["first"].set()
        assert list(await asyncio.gather(first, second, third)) == [1, 11, 111]


async def test_other_actors_go_on_while_one_gathers(counters: Database) -> None:
    async with running(counters) as tested:
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("gate", 1)))
        await tested.kind.entered["gate"].wait()
        assert await tested.ask(counter("b"), Add(5)) == 5
        in_flight = (await tested.runtime.admin.inspect(counter("a")))["inFlight"]
        assert (in_flight["stage"], in_flight["message"]) == ("turn", "Held")
        tested.kind.gates["gate"].set()
        assert await held == 1
        assert (await tested.runtime.admin.inspect(counter("a")))["inFlight"] is None


async def test_messages_of_a_sender_are_taken_in_the_order_in_which_they_were_sent(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        asks: list[Any] = []
        for n in range(1, 101):
            message = Held("open", n) if n % 10 == 0 else Add(n, entry=str(n))
            asks.append(asyncio.ensure_future(tested.ask(counter("a"), message)))
        tested.kind.gates["open"].set()
        assert await asyncio.gather(*asks) == [n * (n + 1) // 2 for n in range(1, 101)]


async def test_a_refusal_reaches_the_asker_and_changes_nothing(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Add(2))
        with pytest.raises(Refused, match="at 2"):
            await tested.ask(counter("a"), Refuse())
        assert await tested.versions("a") == [1]


async def test_a_turn_that_breaks_fails_alone_and_changes_nothing(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [Add(1), Break(), Add(1), Break(), Add(1)]
        told = await asyncio.gather(
            *(tested.ask(counter("a"), message) for message in asks), return_exceptions=True
        )
        assert [told[0], told[2], told[4]] == [1, 2, 3]
        assert all(isinstance(told[n], TurnFailed) for n in (1, 3))
        assert await tested.total("a") == 3


async def test_a_caller_who_goes_away_never_tears_a_turn(counters: Database) -> None:
    async with running(counters) as tested:
        asked = asyncio.ensure_future(tested.ask(counter("a"), Held("gate", 3)))
        await tested.kind.entered["gate"].wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        tested.kind.gates["gate"].set()
        assert await tested.ask(counter("a"), Read()) == 3
        assert await tested.total("a") == 3


async def test_a_message_whose_caller_went_away_before_its_turn_is_not_taken(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("gate")))
        await tested.kind.entered["gate"].wait()
        gone = asyncio.ensure_future(tested.ask(counter("a"), Add(1)))
        await until(lambda: tested.runtime.admin.waiting == 1)
        gone.cancel()
        tested.kind.gates["gate"].set()
        assert await held == 0
        assert await tested.ask(counter("a"), Read()) == 0
        assert tested.runtime.telemetry.counters["abandoned"] == 1


async def test_a_message_whose_deadline_passes_before_its_turn_is_not_taken(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        held = asyncio.ensure_future(tested.ask(counter("a"), Held("gate")))
        await tested.kind.entered["gate"].wait()
        with pytest.raises(DeadlineExceeded):
            await tested.ask(counter("a"), Add(1), timeout=0.02)
        tested.kind.gates["gate"].set()
        await held
        assert await tested.ask(counter("a"), Read()) == 0


async def test_a_turn_that_gathers_for_too_long_says_so_and_the_actor_goes_on(
    counters: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counter, "turn_seconds", 0.02)
    async with running(counters) as tested:
        with pytest.raises(DeadlineExceeded, match="did not end in time"):
            await tested.ask(counter("a"), SlowRead(60))
        assert await tested.ask(counter("a"), Add(1)) == 1


async def test_a_turn_that_is_about_to_gather_when_its_state_is_lost_reads_it_back_first(
    counters: Database,
) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Add(1))
        tested.kind.gates["open"].set()
        asked = asyncio.ensure_future(tested.ask(counter("a"), Held("open", 1)))
        cell = tested.runtime.scheduler.cells[counter("a")]
        await asyncio.sleep(0)
        tested.runtime.scheduler._pump()
        cell.forget()
        assert await asked == 2


async def test_a_parked_asker_hears_what_a_later_turn_resolves(counters: Database) -> None:
    async with running(counters) as tested:
        waiting = [asyncio.ensure_future(tested.ask(counter("a"), Wait("n"))) for _ in range(3)]
        await until(lambda: parked(tested.runtime) == 3)
        await tested.ask(counter("a"), Resolve("n", 7))
        assert await asyncio.gather(*waiting) == [7, 7, 7]
        assert parked(tested.runtime) == 0


async def test_a_parked_asker_who_gives_up_is_forgotten(counters: Database) -> None:
    async with running(counters) as tested:
        asks = [tested.ask(counter("a"), Wait("n"), timeout=0.02) for _ in range(20)]
        told = await asyncio.gather(*asks, return_exceptions=True)
        assert all(isinstance(error, DeadlineExceeded) for error in told)
        assert parked(tested.runtime) == 0


async def test_a_paused_actor_takes_no_turn_until_it_is_resumed(counters: Database) -> None:
    async with running(counters) as tested:
        await tested.ask(counter("a"), Add(1))
        tested.runtime.scheduler.pause(counter("a"))
        asks = [asyncio.ensure_future(tested.ask(counter("a"), Add(n))) for n in (1, 2)]
        await until(lambda: tested.runtime.admin.waiting == 2)
        assert await tested.total("a") == 1
        tested.runtime.scheduler.resume(counter("a"))
        assert await asyncio.gather(*asks) == [2, 4]


class Chief(Actor[CounterState]):
    """An actor of a higher rank, who asks back down."""

    kind = "chief"
    rank = 2
    runtime: Runtime

    async def load(self, keys: Any) -> dict[str, CounterState]:
        return {key: CounterState(key) for key in keys}

    def changes(self, old: CounterState, new: CounterState) -> tuple[()]:
        del old, new
        return ()

    @handles(Held)
    async def held(self, state: CounterState, message: Held) -> Decision[CounterState, int]:
        return Decision(state, await self.runtime.ask(counter(message.name), Read()))

    @handles(Read)
    def read(self, state: CounterState, message: Read) -> Decision[CounterState, int]:
        del message
        return Decision(state, 42)


class Clerk(Chief):
    """An actor of the counters' rank who asks whoever it is told to."""

    kind = "clerk"
    rank = 1

    @handles(Held)
    async def held(self, state: CounterState, message: Held) -> Decision[CounterState, int]:
        to = ActorId(message.name, "one")
        return Decision(
            state, await self.runtime.ask(to, Held("counter") if message.amount else Read())
        )


async def asking(tested: RuntimeOnDisk, *kinds: Chief) -> None:
    for kind in kinds:
        kind.runtime = tested.runtime


@pytest.mark.parametrize(
    ("met", "told"),
    [
        (DeadlineExceeded("no turn in time"), DeadlineExceeded),
        (TimeoutError(), DeadlineExceeded),
        (Overloaded("the mailbox"), Overloaded),
        (ShardUnavailable("cut off"), ShardUnavailable),
        (NotOwner(), ShardUnavailable),
    ],
)
async def test_a_turn_that_gets_no_answer_from_another_actor_says_why(
    counters: Database, met: Exception, told: type[Exception]
) -> None:
    class Unlucky(Chief):
        kind = "unlucky"

        @handles(Held)
        async def held(self, state: CounterState, message: Held) -> Decision[CounterState, int]:
            del state, message
            raise met

    async with running(counters, kinds=(Unlucky(),)) as tested:
        with pytest.raises(told) as heard:
            await tested.ask(ActorId("unlucky", "one"), Held(""))
        assert type(heard.value) is told
        assert await tested.ask(ActorId("unlucky", "one"), Read()) == 42


async def test_a_turn_may_ask_upward(counters: Database) -> None:
    clerk, chief = Clerk(), Chief()
    async with running(counters, kinds=(clerk, chief)) as tested:
        await asking(tested, clerk, chief)
        assert await tested.ask(ActorId("clerk", "one"), Held("chief")) == 42


@pytest.mark.parametrize("to", ["clerk", "counter"])
async def test_a_turn_that_asks_its_own_rank_hears_of_the_cycle_at_once(
    counters: Database, to: str
) -> None:
    clerk, chief = Clerk(), Chief()
    async with running(counters, kinds=(clerk, chief)) as tested:
        await asking(tested, clerk, chief)
        with pytest.raises(TurnFailed, match="Cycle"):
            await tested.ask(ActorId("clerk", "one"), Held(to))


async def test_a_cycle_is_refused_with_its_path(counters: Database) -> None:
    paths: list[Cycle] = []

    class Curious(Chief):
        kind = "curious"

        @handles(Held)
        async def held(self, state: CounterState, message: Held) -> Decision[CounterState, int]:
            try:
                await super().held(state, message)
            except Cycle as cycle:
                paths.append(cycle)
            return Decision(state, 0)

    clerk, chief = Clerk(), Curious()
    async with running(counters, kinds=(clerk, chief)) as tested:
        await asking(tested, clerk, chief)
        await tested.ask(ActorId("clerk", "one"), Held("curious", 1))
    assert [str(cycle) for cycle in paths] == ["clerk:one -> curious:one -> counter:counter"]


def parked(runtime: Runtime) -> int:
    return len(runtime._parking)
