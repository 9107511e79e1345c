"""SQL for incidents, what was said of them, and who is told."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from tolsey.storage.conditions import Conditions
from tolsey.storage.database import Reader, Transaction
from tolsey.storage.lookups import record, records
from tolsey.storage.records.status import Incident, IncidentUpdate
from tolsey.storage.tables import table_of

INCIDENTS: Final = table_of(Incident)
UPDATES: Final = table_of(IncidentUpdate)
SUBSCRIBERS_AT_ONCE: Final = 200


async def find(database: Reader, incident_id: str) -> Incident | None:
    """Find an incident."""
    return await record(database, INCIDENTS, "id = $1", incident_id)


async def unresolved(database: Reader) -> list[Incident]:
    """List what is wrong now, drafts too."""
    return await records(database, INCIDENTS, "resolved_at IS NULL ORDER BY opened_at LIMIT 200")


async def listed(
    database: Reader, limit: int, after: tuple[datetime, str] | None, *, public: bool
) -> list[Incident]:
    """List incidents, newest first, after a cursor of time and id; of drafts none where it is for all to see."""
    wanted = Conditions(limit)
    wanted.add("(opened_at, id) < ({}, {})", *(after or (None,)))
    if public:
        wanted.add("published_at IS NOT NULL")
    where = f"{wanted} ORDER BY opened_at DESC, id DESC LIMIT $1"
    return await records(database, INCIDENTS, where, *wanted.args)


async def updates(database: Reader, incident_ids: Sequence[str]) -> list[IncidentUpdate]:
    """Read what was said of incidents, newest first."""
    where = "incident_id = ANY($1) ORDER BY at DESC, id DESC LIMIT 1000"
    return await records(database, UPDATES, where, list(incident_ids))


async def open_incident(tx: Transaction, incident: Incident) -> bool:
    """Keep a new incident; False where the system's own of that part is open already."""
    sql = f"{INCIDENTS.insert} ON CONFLICT DO NOTHING"
    return str(await tx.execute(sql, *INCIDENTS.values_of(incident))) == "INSERT 0 1"


async def say(tx: Transaction, update: IncidentUpdate) -> None:
    """Keep what is said of an incident, which is then as far as that says."""
    await tx.execute(UPDATES.insert, *UPDATES.values_of(update))
    await tx.execute(
        """
        UPDATE incidents SET state = $2,
            resolved_at = CASE WHEN $2 IN ('resolved', 'postmortem') THEN coalesce(resolved_at, $3) END
        WHERE id = $1
        """,
        update.incident_id,
        update.state,
        update.at,
    )


async def publish(tx: Transaction, incident_id: str, at: datetime) -> bool:
    """Let everybody see an incident; False where they do already."""
    status = await tx.execute(
        "UPDATE incidents SET published_at = $2 WHERE id = $1 AND published_at IS NULL",
        incident_id,
        at,
    )
    return str(status) == "UPDATE 1"


async def subscribe(tx: Transaction, email: str, at: datetime, components: str = "") -> None:
    """Note that an address wants to be told of these parts, in place of what it wanted before; empty: of all."""
    await tx.execute(
        """
        INSERT INTO status_subscribers (email, confirmed_at, components) VALUES ($1, $2, $3)
        ON CONFLICT (email) DO UPDATE SET components = excluded.components
        """,
        email,
        at,
        components,
    )


async def unsubscribe(tx: Transaction, email: str) -> None:
    """Forget an address that wants to be told no more."""
    await tx.execute("DELETE FROM status_subscribers WHERE email = $1", email)


async def count_subscribers(database: Reader) -> int:
    """Count who is told by mail."""
    row = await database.fetchrow("SELECT count(*) AS n FROM status_subscribers")
    return int(row["n"]) if row else 0


async def subscribers(database: Reader, component: str) -> AsyncIterator[Sequence[str]]:
    """Read the addresses that are told of a part, some at a time."""
    after = ""
    while True:
        rows = await database.fetch(
            "SELECT email FROM status_subscribers WHERE email > $1"
            " AND (components = '' OR $3 = ANY (string_to_array(components, ',')))"
            " ORDER BY email LIMIT $2",
            after,
            SUBSCRIBERS_AT_ONCE,
            component,
        )
        if not rows:
            return
        yield [row["email"] for row in rows]
        after = rows[-1]["email"]
