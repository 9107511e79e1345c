"""SQL for providers' events: each is kept once, and stands `waiting` until what it says was done."""

from datetime import datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.provider_events import ProviderEvent, ProviderEventState
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import table_of

EVENTS: Final = table_of(ProviderEvent)


def sealed(vault: Vault, provider: str, event_id: str, body: str) -> str:
    """Seal the body of an event for its row."""
    return vault.seal(body, **_place(provider, event_id))


def body_of(vault: Vault, event: ProviderEvent) -> str:
    """Read the body of an event. Raises SealBroken when its key is gone."""
    return vault.open(event.sealed_body, **_place(event.provider, event.event_id))


async def add(tx: Transaction, event: ProviderEvent, *, again: bool = False) -> bool:
    """Keep an event; False when it is there already, unless it failed and is to be looked at `again`."""
    then = "NOTHING"
    if again:
        then = """UPDATE SET state = EXCLUDED.state, why = NULL, settled_at = NULL,
            received_at = EXCLUDED.received_at, sealed_body = EXCLUDED.sealed_body
            WHERE provider_events.state = 'failed'"""
    sql = f"{EVENTS.insert} ON CONFLICT (provider, event_id) DO {then}"
    return str(await tx.execute(sql, *EVENTS.values_of(event))) == "INSERT 0 1"


async def find(database: Reader, provider: str, event_id: str) -> ProviderEvent | None:
    """Find an event."""
    return await record(database, EVENTS, "provider = $1 AND event_id = $2", provider, event_id)


async def settle(
    tx: Transaction,
    event: ProviderEvent,
    state: ProviderEventState,
    *,
    why: str | None,
    at: datetime,
) -> None:
    """Note what became of an event."""
    await tx.execute(
        """
        UPDATE provider_events SET state = $3, why = $4, settled_at = $5
        WHERE provider = $1 AND event_id = $2
        """,
        event.provider,
        event.event_id,
        state,
        why,
        at,
    )


async def listed(
    database: Reader,
    limit: int,
    before: tuple[datetime, str] | None,
    *,
    provider: str | None,
    state: ProviderEventState | None,
) -> list[ProviderEvent]:
    """List events, newest first, after a cursor of time and id."""
    wanted = Conditions(limit)
    wanted.add("provider = {}", provider)
    wanted.add("state = {}", state)
    if before is not None:
        wanted.add("(received_at, event_id) < ({}, {})", *before)
    where = f"{wanted} ORDER BY received_at DESC, event_id DESC LIMIT $1"
    return await records(database, EVENTS, where, *wanted.args)


def _place(provider: str, event_id: str) -> dict[str, str]:
    return {
        "table": "provider_events",
        "column": "sealed_body",
        "row": event_id,
        "tenant": provider,
    }
