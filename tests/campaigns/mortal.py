"""Processes that may be killed at any turn of their event loop, each forked from this one.

Wherever something is awaited the loop turns: killed at each of its turns, one process after the other has died
at every await. `python -m tests.campaigns.mortal DATABASE_URL KIND OUTSIDE_URL` reads lines of JSON
(whom to ask, for what, and the turn at which the process dies; 0: at none) and answers each with
how the process ended. KIND is whom they ask: an organization or a store; OUTSIDE_URL is its processor
or the template of its shop's address.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import orjson

from tests.http.people import KEYRING
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.processor_calls import ProcessorCalls
from tolsey.actors.organization.effects import EventCalls
from tolsey.actors.organization.operations.messages import AwaitOperation
from tolsey.actors.ports import OwnStorefront
from tolsey.actors.refusals import Refusal
from tolsey.actors.store.actor import StoreActor
from tolsey.actors.store.editing.effects import EditCalls
from tolsey.actors.store.imports.effects import OrderImportCalls
from tolsey.actors.store.launch.effects import LaunchCalls
from tolsey.http.clients.commerce.admin import ShopifyAdmin
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.runtime.codec import decode
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.payments.processor import SECRET_KEY
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageLocked
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox
from tolsey.storage.sealing.sealed import Vault

NOW = partial(datetime.now, UTC)
HASTENED = [datetime.min.replace(tzinfo=UTC)]
"""The last moment that somebody waited for and that was made to come at once."""


def later() -> datetime:
    """Tell the time as those see it whose waits were hastened."""
    return max(NOW(), *HASTENED)


@dataclass
class World:
    """Who is asked, and how it reaches what is outside."""

    actors: Sequence[Any]
    """The first of them is asked; the others are whom it asks itself."""
    calls: dict[Any, Any]
    end: Callable[[Any], Message[Any]] | None
    """What waits for the end of what was begun; None where its answer is the end."""
    runtime: Runtime = field(init=False)


class MortalLoop(asyncio.SelectorEventLoop):
    """Counts its turns once it is armed, and kills its process at one of them."""

    turns = 0
    dies_at = 0
    armed = False

    def _run_once(self) -> None:
        if self.armed:
            self.turns += 1
            if self.turns == self.dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
        super()._run_once()  # type: ignore[misc]  # what every loop of asyncio has


@asynccontextmanager
async def processor(database: Database, url: str) -> AsyncIterator[World]:
    """Let an organization reach its processor."""
    payments = StripePayments(SECRET_KEY, {}, url)
    calls = ProcessorCalls(payments, NOW).handlers() | EventCalls(payments).handlers()
    yield World([OrganizationActor(database)], calls, lambda begun: AwaitOperation(begun.id))
    await payments.close()


@asynccontextmanager
async def shop(database: Database, url: str) -> AsyncIterator[World]:
    """Let a store reach its shop; an edit is waited for by asking for it again."""
    async with ShopifyAdmin(url) as admin:
        world = World([StoreActor(database), OrganizationActor(database)], {}, None)

        async def ask(to: ActorId, message: Message[Any]) -> Any:
            return await world.runtime.ask(to, message)

        vault = Vault.from_keys(KEYRING)
        reach: dict[str, Any] = {"ask": ask, "database": database, "vault": vault, "clock": NOW}
        edits = EditCalls(editor=admin, **reach)
        imports = OrderImportCalls(platform=admin, orders_at_once=5, **reach)
        launches = LaunchCalls(
            platform=admin,
            theme_url="https://themes.example/ours.zip",
            storefronts=cast("OwnStorefront", None),  # no store is opened here
            unset_model="LLM_MODEL",  # texts are the templates: no model writes twice alike
            **{**reach, "clock": later},
        )
        world.calls = edits.handlers() | imports.handlers() | launches.handlers()
        yield world


REACH = {"organization": processor, "store": shop}


async def hastened(database: Database) -> bool:
    """Have what waits to look again do it now, but for what a person has a day for; False when nothing is left."""
    waits = "name NOT IN ('ProposalExpired', 'ChangeSetExpired') AND name NOT LIKE '%ReconcileSubscriptions'"
    found: Sequence[Any] = ["whatever others hold"]
    with suppress(StorageLocked):  # who works on these rows takes them in another order
        found = await database.fetch(
            f"UPDATE outbox SET due_at = least(outbox.due_at, now()) FROM (SELECT key, due_at FROM outbox WHERE {waits})"  # noqa: S608 - a constant
            " AS was WHERE outbox.key = was.key RETURNING was.due_at"
        )
        HASTENED[0] = max([*HASTENED, *(row["due_at"] for row in found)])
    await asyncio.sleep(0.02)
    return bool(found)


async def hasten(database: Database) -> None:
    """Do so for as long as somebody waits for an answer."""
    while True:
        await hastened(database)


async def ask(database_url: str, kind: str, url: str, asked: Any, loop: MortalLoop) -> None:
    """Ask for an operation as a client that repeats its request does, and wait for all of its end."""
    database, to = Database(database_url), ActorId(kind, asked["key"])
    await database.open()
    journal = Journal(database)
    async with (
        REACH[kind](database, url) as world,
        Runtime(
            world.actors,
            journal,
            Outbox(database),
            partial(slots.versions, database),
            epochs=await slots.claim(database, f"process {os.getpid()}"),
            handlers=world.calls,
            poll_seconds=0.05,
        ) as runtime,
    ):
        world.runtime = runtime
        loop.armed = True
        message = decode(asked["name"], kind, orjson.dumps(asked["message"]).decode())
        # Whoever asks for a plan of many waits for later looks, too. A process that dies is not hastened: its turns are counted.
        hastening = asyncio.create_task(hasten(database)) if not loop.dies_at else None
        try:
            begun = await runtime.ask(to, message, timeout=120)
            if world.end is not None:
                await runtime.ask(to, world.end(begun), timeout=120)
        except Refusal as refusal:
            sys.stderr.write(f"{refusal.detail}\n")
        finally:
            if hastening is not None:
                hastening.cancel()
                await asyncio.wait([hastening])
        # A statement that waited for a row to go does not see the one that came in its place: only a second one says that there is none.
        empty = 0
        while empty < 2:
            empty = 0 if await hastened(database) else empty + 1
        loop.armed = False
    await journal.close()
    await database.close()


def live(database_url: str, kind: str, url: str, asked: Any) -> None:
    """Live in a process of one's own."""
    os.dup2(2, 1)  # what it logs is no answer
    loop = MortalLoop()
    loop.dies_at = asked["dies_at"]
    loop.run_until_complete(ask(database_url, kind, url, asked, loop))


def main(database_url: str, kind: str, url: str) -> None:
    """Fork a process for each line, and say how it ended: by which signal, or with which code."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live(database_url, kind, url, orjson.loads(line))
                code = 0
            except BaseException:  # noqa: BLE001 - whatever it was is told before the fork ends
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
