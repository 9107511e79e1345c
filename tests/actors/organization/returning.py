"""A process that gives a payment back, and may be killed at any turn of its event loop.

Wherever something is awaited the loop turns: killed at each of its turns, in turn, it has died at every
await. `python -m tests.actors.organization.returning DATABASE_URL PROCESSOR_URL PAYMENT DIES_AT`.
"""

import asyncio
import os
import signal
import sys
from datetime import UTC, datetime
from functools import partial

from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.messages import AwaitOperation, GiveBackPayment
from tolsey.actors.organization.billing.processor_calls import ProcessorCalls
from tolsey.actors.organization.messages import organization
from tolsey.http.clients.payments.processor import StripePayments
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


async def give_back(database_url: str, processor_url: str, payment: str, loop: MortalLoop) -> None:
    """Ask for a payment back as a client that repeats its request does, and wait for its end."""
    database, payments = Database(database_url), StripePayments(SECRET_KEY, {}, processor_url)
    await database.open()
    journal = Journal(database)
    async with Runtime(
        [OrganizationActor(database)],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, f"process {os.getpid()}"),
        handlers=ProcessorCalls(payments, partial(datetime.now, UTC)).handlers(),
        poll_seconds=0.05,
    ) as runtime:
        loop.armed = True
        at = datetime.now(UTC)
        asked = GiveBackPayment("operation_1", payment, "a mistake", "usr_9", at)
        begun = await runtime.ask(organization("org_1"), asked)
        ended = await runtime.ask(organization("org_1"), AwaitOperation(begun.id), timeout=120)
        while await database.fetch("SELECT FROM outbox"):
            await asyncio.sleep(0.02)
        loop.armed = False
        sys.stdout.write(f"{ended.state} {loop.turns}\n")
    await journal.close()
    await payments.close()
    await database.close()


def main() -> None:
    """Run on a loop that may die."""
    database_url, processor_url, payment, dies_at = sys.argv[1:]
    loop = MortalLoop()
    loop.dies_at = int(dies_at)
    loop.run_until_complete(give_back(database_url, processor_url, payment, loop))
    loop.close()


if __name__ == "__main__":
    main()
