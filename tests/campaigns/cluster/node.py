"""One process of the campaign: `python -m tests.campaigns.cluster.node`, told what to be on stdin.

It is put together as the service is, with accounts for actors, and answers lines of JSON on a
socket. It ends when it is told to (SIGTERM), and at once when the campaign is gone.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg
import structlog

from tests.campaigns.cluster import planted
from tests.campaigns.cluster.accounts import Accounts, LookUp, PayIn, PayOnce, PayOver, account
from tolsey.runtime.decision import Refused
from tolsey.runtime.errors import Duplicate, RuntimeFault
from tolsey.runtime.messages import Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.leases import process_id
from tolsey.runtime.shards.shard import Shard
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.runtime.presence import Presence
from tolsey.storage.runtime.streams import Streams
from tolsey.storage.sealing.sealed import Vault

START_SECONDS = 90.0
POLL_SECONDS = 0.2
LAST_ANSWERS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Options:
    """What the campaign says on the first line of stdin."""

    socket: str
    database: str
    redis: str
    lease_seconds: float
    skew_seconds: float
    keyring: str
    planted: str


class Part:
    """The actors of this process, and its share of the map."""

    def __init__(self, runtime: Runtime, id: str, shard: Shard) -> None:
        self.runtime = runtime
        self.id = id
        self.shard = shard

    async def do(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a line asks for."""
        match request["do"]:
            case "ask":
                return await self._ask(request)
            case "accept":
                message = PayIn(request["op"], request["amount"])
                new = await self.runtime.accept(account(request["key"]), message, id=request["op"])
                return {"told": "accepted" if new else "waits already"}
            case "move":
                await self.shard.move(request["slot"], request["to"])
                return {"told": "moved"}
            case _:
                counters = dict(self.runtime.telemetry.counters)
                owned = len(self.runtime.slots.epochs)
                return {"told": "status", "id": self.id, "counters": counters, "owned": owned}

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        op, key, amount = request["op"], request["key"], request["amount"]
        messages: dict[str, Callable[[], Message[Any]]] = {
            "read": LookUp,
            "deposit": lambda: PayIn(op, amount),
            "once": lambda: PayOnce(op, amount),
            "transfer": lambda: PayOver(op, amount, request["to"]),
        }
        version, total = await self.runtime.ask(
            account(key), messages[request["what"]](), id=op, timeout=request["seconds"]
        )
        return {"told": "reply", "version": version, "total": total}


async def answer(part: Part, request: dict[str, Any]) -> dict[str, Any]:
    """Answer one line, with the outcome of what failed."""
    try:
        return await part.do(request)
    except Duplicate:
        return {"told": "duplicate"}
    except RuntimeFault as fault:
        return {"told": fault.outcome, "error": f"{type(fault).__name__}: {fault}"}
    except (StorageError, LookupError, Refused) as error:
        return {"told": "unknown", "error": f"{type(error).__name__}: {error}"}


class Door:
    """The socket on which the campaign asks."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while line := await reader.readline():
                task = asyncio.create_task(self._answer(json.loads(line), writer))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        said = await answer(self._part, request)
        with contextlib.suppress(OSError):
            writer.write(json.dumps({**said, "n": request["n"]}).encode() + b"\n")
            await writer.drain()

    async def close(self) -> None:
        """Let what was asked end."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=LAST_ANSWERS_SECONDS)


async def opened(database: Database) -> None:
    """Connect; PostgreSQL may be away just now."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                return await database.open()
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.1)


def skew(seconds: float) -> None:
    """Set the wall clock of this process: what Python reads as the time of day."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 1e9)


async def build(stack: AsyncExitStack, options: Options) -> Part:
    """Put a process together."""
    database = Database(options.database, min_size=1, max_size=6)
    await opened(database)
    stack.push_async_callback(database.close)
    journal = Journal(database)
    stack.push_async_callback(journal.close)
    skew(options.skew_seconds)
    id = process_id()
    claims = options.planted != "deliveries_are_not_claimed"
    runtime = Runtime(
        [Accounts(database, id, claims=claims)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        poll_seconds=POLL_SECONDS,
        backoff_seconds=(POLL_SECONDS,) * 200,
    )
    await stack.enter_async_context(runtime)
    map_of_slots = slots.Slots(database)
    deployment = await map_of_slots.deployment()
    presence = Presence(options.redis, deployment)
    stack.push_async_callback(presence.close)
    streams = Streams(options.redis, deployment, Vault.from_keys(options.keyring))
    stack.push_async_callback(streams.close)
    shard = Shard(
        runtime,
        presence,
        map_of_slots,
        streams,
        partial(slots.reply_of, database),
        id=id,
        lease_seconds=options.lease_seconds,
    )
    await stack.enter_async_context(shard)
    return Part(runtime, id, shard)


async def run(options: Options) -> None:
    """Serve until told to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_reader(sys.stdin.fileno(), lambda: os._exit(1))  # the campaign is gone
    async with AsyncExitStack() as stack:
        stack.enter_context(planted.planted(options.planted))
        part = await build(stack, options)
        door = Door(part)
        server = await asyncio.start_unix_server(door.serve, options.socket, limit=1 << 20)
        await ended.wait()
        await part.shard.leave()
        await door.close()
        server.close()


def main() -> None:
    """Be what the first line of stdin says."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: reaches a stopped one too
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["timestamp", "level", "event"]),
        ]
    )
    asyncio.run(run(Options(**json.loads(os.read(0, 1 << 16)))))


if __name__ == "__main__":
    main()
