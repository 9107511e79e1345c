"""Processes that may be killed at any turn of their event loop, each forked from this one.

Wherever something is awaited the loop turns: killed at each of its turns, one process after the other has died
at every await. `python -m tests.campaigns.money.mortal DATABASE_URL PROCESSOR_URL` reads lines of JSON
(whom to ask, for what, and the turn at which the process dies; 0: at none) and answers each with
how the process ended.
"""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

import orjson

from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.processor_calls import ProcessorCalls
from tolsey.actors.organization.effects import EventCalls
from tolsey.actors.organization.messages import organization
from tolsey.actors.organization.operations.messages import AwaitOperation
from tolsey.actors.refusals import Refusal
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.runtime.codec import decode
from tolsey.runtime.registry import Runtime
from tolsey.sandbox.payments.processor import SECRET_KEY
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox


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


async def ask(database_url: str, processor_url: str, asked: Any, loop: MortalLoop) -> None:
    """Ask for an operation as a client that repeats its request does, and wait for all of its end."""
    database, payments = Database(database_url), StripePayments(SECRET_KEY, {}, processor_url)
    await database.open()
    journal, to = Journal(database), organization(asked["organization"])
    async with Runtime(
        [OrganizationActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, f"process {os.getpid()}"),
        handlers={
            **ProcessorCalls(payments, partial(datetime.now, UTC)).handlers(),
            **EventCalls(payments).handlers(),
        },
        poll_seconds=0.05,
    ) as runtime:
        loop.armed = True
        message = decode(asked["name"], "organization", orjson.dumps(asked["message"]).decode())
        try:
            begun = await runtime.ask(to, message)
            await runtime.ask(to, AwaitOperation(begun.id), timeout=120)
        except Refusal as refusal:
            sys.stderr.write(f"{refusal.detail}\n")
        while await database.fetch("SELECT FROM outbox"):
            await asyncio.sleep(0.02)
        loop.armed = False
    await journal.close()
    await payments.close()
    await database.close()


def live(database_url: str, processor_url: str, asked: Any) -> None:
    """Live in a process of one's own."""
    os.dup2(2, 1)  # what it logs is no answer
    loop = MortalLoop()
    loop.dies_at = asked["dies_at"]
    loop.run_until_complete(ask(database_url, processor_url, asked, loop))


def main(database_url: str, processor_url: str) -> None:
    """Fork a process for each line, and say how it ended: by which signal, or with which code."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live(database_url, processor_url, orjson.loads(line))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
