"""A process of a service of counters, joined with others by a Shard; `bench/shards.py` drives it.

Its argument says where the servers are, how long a lease is, and whether it may be told of the death
of a neighbour by the kernel, or has to find out as if that had run on another machine.
"""

import asyncio
import base64
import json
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

from bench import asking
from bench.counter import Counter, CounterRow, Raise, Read, counter
from bench.owner import opened
from tolsey import logs
from tolsey.runtime.actor import handles
from tolsey.runtime.decision import Decision
from tolsey.runtime.errors import RuntimeFault
from tolsey.runtime.messages import Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.leases import process_id
from tolsey.runtime.shards.shard import Shard
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.runtime.presence import Presence
from tolsey.storage.runtime.slots import Slots
from tolsey.storage.runtime.streams import Streams
from tolsey.storage.sealing.sealed import Vault

KIND = Counter.kind


@dataclass(frozen=True, slots=True)
class Count(Message[int]):
    """Add one in memory and tell the number."""


@dataclass(frozen=True, slots=True)
class Sign(Message[str]):
    """Add one on disk and tell which process did it."""


class NodeCounter(Counter):
    """Counts, and knows where."""

    def __init__(self, database: Database, process: str) -> None:
        super().__init__(database)
        self._process = process
        self._told = 0

    @handles(Count)
    def counted(self, state: CounterRow, message: Count) -> Decision[CounterRow, int]:  # noqa: ARG002 - a turn's shape
        """Add one where nothing keeps it."""
        self._told += 1
        return Decision(state, self._told)

    @handles(Sign)
    def signed(self, state: CounterRow, message: Sign) -> Decision[CounterRow, str]:  # noqa: ARG002 - as above
        """Add one and tell where."""
        return Decision(CounterRow(state.key, state.total + 1), self._process)


MESSAGES: dict[str, Message[Any]] = {"count": Count(), "raise": Raise(), "read": Read()}


class Node:
    """What the bench lets a process do."""

    def __init__(self, runtime: Runtime, shard: Shard, slots: Slots) -> None:
        self._runtime = runtime
        self._shard = shard
        self._slots = slots

    async def do(self, what: str, given: dict[str, Any]) -> Any:
        """Do what a line says."""
        return await getattr(self, f"do_{what}")(**given)

    async def do_ask(
        self, message: str, keys: Sequence[str], askers: int, seconds: float, *, turns: bool = False
    ) -> asking.Result:
        """Let askers ask counters: each one of its own, or with `turns` each all of them in turn."""
        asks = MESSAGES[message]
        ids = [counter(keys[n % len(keys)]) for n in range(max(askers, len(keys)))]
        if not turns:
            return await asking.asked(lambda n: self._runtime.ask(ids[n], asks), askers, seconds)
        orders = [cycle(ids[n:] + ids[:n]) for n in range(askers)]
        return await asking.asked(
            lambda n: self._runtime.ask(next(orders[n]), asks), askers, seconds
        )

    async def do_await(self, keys: Sequence[str], former: str, seconds: float) -> Any:
        """Ask counters without pause, until each was answered by another than the former owner.

        Answers when that was, on the clock that all processes of a machine share.
        """
        until = time.monotonic() + seconds
        found: dict[str, float] = {}
        failures: list[str] = []

        async def one(key: str) -> None:
            while time.monotonic() < until:
                try:
                    owner = await self._runtime.ask(counter(key), Sign(), timeout=seconds)
                except RuntimeFault as error:
                    failures.append(type(error).__name__)
                    owner = former
                if owner != former:
                    found[key] = time.monotonic()
                    return
                await asyncio.sleep(0.002)

        await asyncio.gather(*(one(key) for key in keys))
        return {"found": found, "failures": failures}

    async def do_holdings(self) -> dict[str, str | None]:
        """Tell who holds each slot."""
        return {str(slot): holding.owner for slot, holding in self._shard.holdings.items()}

    async def do_move(self, which: Sequence[int], to: str) -> float:
        """Give slots to a process and keep them there; answer how many seconds it took."""
        for slot in which:
            await self._slots.pin(slot, to)
        started = time.monotonic()
        await self._shard.move(which[0], to)
        while any(self._runtime.slots.owns(slot) for slot in which):
            await self._shard.round()
        return time.monotonic() - started


async def main() -> None:
    given = json.loads(sys.argv[1])
    logs.configure("warning")
    async with AsyncExitStack() as stack:
        database, journal = await opened(stack, given["database_url"])
        on_disk = Slots(database)
        deployment = await on_disk.deployment()
        vault = Vault.from_keys(given["keys"])
        presence = Presence(given["redis_url"], deployment)
        stack.push_async_callback(presence.close)
        streams = Streams(given["redis_url"], deployment, vault)
        stack.push_async_callback(streams.close)
        id = process_id()
        runtime = Runtime(
            [NodeCounter(database, id)],
            journal,
            Outbox(database),
            partial(slots.versions, database),
        )
        unheard: dict[str, Any] = {"witnesses": False, "gone": lambda _: False}
        shard = Shard(
            runtime,
            presence,
            on_disk,
            streams,
            partial(slots.reply_of, database),
            id=id,
            lease_seconds=given["lease_seconds"],
            **(unheard if given["remote"] else {}),
        )
        await stack.enter_async_context(runtime)
        await stack.enter_async_context(shard)
        await asking.obey(Node(runtime, shard, on_disk).do, id)


def keys() -> str:
    """Make keys for the frames of one run."""
    return "bench:" + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")


if __name__ == "__main__":
    asking.serve(main)
