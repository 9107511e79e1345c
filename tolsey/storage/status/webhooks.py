"""SQL for the addresses of programs that are told how the service does."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from tolsey.storage.database import Database, Reader, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.status import StatusWebhook
from tolsey.storage.tables import table_of

WEBHOOKS: Final = table_of(StatusWebhook)
MOST: Final = 1_000
AT_ONCE: Final = 200


async def find(database: Reader, id: str) -> StatusWebhook | None:
    """Find one."""
    return await record(database, WEBHOOKS, "id = $1", id)


async def subscribe(tx: Transaction, webhook: StatusWebhook) -> bool:
    """Keep an address, in place of what it confirmed before; False while there are as many as there can be."""
    row = await tx.fetchrow(
        "SELECT count(*) AS n FROM (SELECT 1 FROM status_webhooks WHERE url <> $1 LIMIT $2) AS one",
        webhook.url,
        MOST,
    )
    if row is None or row["n"] >= MOST:
        return False
    await tx.execute(
        "DELETE FROM status_webhooks WHERE url = $1 AND id <> $2", webhook.url, webhook.id
    )
    await tx.execute(f"{WEBHOOKS.insert} ON CONFLICT (id) DO NOTHING", *WEBHOOKS.values_of(webhook))
    return True


async def unsubscribe(database: Database, id: str) -> bool:
    """Forget an address; False for one that is not there."""
    return await database.execute("DELETE FROM status_webhooks WHERE id = $1", id) > 0


async def note_success(database: Database, id: str) -> None:
    """Note that an address took what it was told."""
    await database.execute(
        "UPDATE status_webhooks SET failures = 0 WHERE id = $1 AND failures > 0", id
    )


async def note_failure(database: Database, id: str, most: int) -> bool:
    """Note that an address did not; True when that was once too often, and it is forgotten."""
    row = await database.fetchrow(
        "UPDATE status_webhooks SET failures = failures + 1 WHERE id = $1 RETURNING failures", id
    )
    return row is not None and row["failures"] >= most and await unsubscribe(database, id)


async def of_component(database: Reader, component: str) -> AsyncIterator[Sequence[StatusWebhook]]:
    """Read the addresses that want to hear of a part, some at a time."""
    after = ""
    while True:
        found = await records(
            database,
            WEBHOOKS,
            "id > $1 AND (components = '' OR $2 = ANY (string_to_array(components, ',')))"
            " ORDER BY id LIMIT $3",
            after,
            component,
            AT_ONCE,
        )
        if not found:
            return
        yield found
        after = found[-1].id
