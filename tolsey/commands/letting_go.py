"""What `tolsey retention` shows in a terminal: what is due, and what of it was let go."""

from functools import partial
from typing import Final

import click

from tolsey.runtime.throttle import Throttle
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention

MOST_COUNTED: Final = 100_000_000
SWEPT: Final = {
    "webhookDeliveries": retention.WEBHOOK_DELIVERIES,
    "auditLog": retention.AUDIT_LOG,
    **retention.SWEPT,
}


async def count(database: Database) -> None:
    """Say of every rule how many rows are due."""
    for rule in retention.RULES:
        (due,) = await retention.due(database, [rule], MOST_COUNTED)
        after = f"{rule.age.interval} after {rule.age.column}"
        click.echo(f"{rule.table:26} {after:42} {rule.job:26} {due}")


async def sweep(database: Database) -> None:
    """Let go of what is due by the rules of the nightly jobs, giving way to whoever is served."""
    throttle = Throttle(partial(retention.commit, database))
    for name, statements in SWEPT.items():
        deleted = 0
        async for rows in throttle.batches(partial(retention.sweep, database, statements)):
            deleted += rows
        click.echo(f"{name:26} {deleted}")
