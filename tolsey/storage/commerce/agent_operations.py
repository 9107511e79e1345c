"""SQL for what agents asked to have changed, and the sealing of what they asked."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tolsey.storage.audit import AUDIT
from tolsey.storage.database import Database, Row
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.journal import audit_record
from tolsey.storage.sealing.sealed import Vault
from tolsey.storage.tables import table_of

TABLE: Final = "agent_operations"
MOST_LISTED: Final = 2_000
"""So many changes that were planned together are read for a list: 20 plans of the largest sort."""
UNDO: Final = "undo:"
"""What the client of an operation is called that takes another back: this, and the other's id."""
LATEST: Final = datetime.max.replace(tzinfo=UTC)
EVENT: Final = "agent.write"
"""The audit event of an operation's end; others of its calls are named after it."""
OPERATIONS: Final = table_of(AgentOperation)


async def load(
    database: Database, store_ids: Sequence[str]
) -> Mapping[str, tuple[AgentOperation, ...]]:
    """Read what has not ended yet of stores, oldest first; a store without any is absent."""
    rows = await database.fetch(
        f"""
        SELECT {OPERATIONS.selected} FROM agent_operations
        WHERE store_id = ANY($1::text[]) AND finished_at IS NULL ORDER BY created_at, operation_id
        """,  # noqa: S608 - constants of this module
        list(store_ids),
    )
    found: dict[str, list[AgentOperation]] = defaultdict(list)
    for row in rows:
        found[row["store_id"]].append(OPERATIONS.read(row))
    return {store_id: tuple(some) for store_id, some in found.items()}


async def find(database: Database, store_id: str, operation_id: str) -> AgentOperation | None:
    """Read one operation of a store."""
    row = await database.fetchrow(
        f"SELECT {OPERATIONS.selected} FROM agent_operations WHERE store_id = $1 AND operation_id = $2",  # noqa: S608 - constants of this module
        store_id,
        operation_id,
    )
    return None if row is None else OPERATIONS.read(row)


async def known(database: Database, store_id: str, id: str) -> AgentOperation | None:
    """Read what a store keeps of an id: an operation, or the first of the changes that were planned under it."""
    found = await find(database, store_id, id)
    planned_together = () if found else await of_change_set(database, id)
    return next((one for one in planned_together if one.store_id == store_id), found)


async def of_change_set(database: Database, change_set: str) -> tuple[AgentOperation, ...]:
    """Read what is kept of changes that were planned together, in their order, of whichever store."""
    rows = await database.fetch(
        f"SELECT {OPERATIONS.selected} FROM agent_operations WHERE change_set = $1"  # noqa: S608 - constants of this module
        " ORDER BY operation_id",
        change_set,
    )
    return tuple(OPERATIONS.read(row) for row in rows)


async def change_sets_of(
    database: Database, store_id: str, since: datetime
) -> Mapping[str, tuple[AgentOperation, ...]]:
    """Read what was planned together in a store since a time, by the id of each plan, newest first."""
    rows = await database.fetch(
        f"SELECT {OPERATIONS.selected} FROM agent_operations"  # noqa: S608 - constants of this module
        " WHERE store_id = $1 AND created_at >= $2 AND change_set IS NOT NULL"
        " ORDER BY created_at DESC, operation_id LIMIT $3",
        store_id,
        since,
        MOST_LISTED,
    )
    found: dict[str, list[AgentOperation]] = defaultdict(list)
    for row in rows:
        found[row["change_set"]].append(OPERATIONS.read(row))
    return {change_set: tuple(some) for change_set, some in found.items()}


async def acts_of(
    database: Database, store_id: str, before: tuple[datetime, str] | None, limit: int
) -> tuple[AgentOperation, ...]:
    """List what agents asked to have changed in a store, the newest first, from after one that was listed."""
    at, operation_id = before or (LATEST, "")
    rows = await database.fetch(
        f"SELECT {OPERATIONS.selected} FROM agent_operations"  # noqa: S608 - constants of this module
        " WHERE store_id = $1 AND (created_at, operation_id) < ($2, $3)"
        " ORDER BY created_at DESC, operation_id DESC LIMIT $4",
        store_id,
        at,
        operation_id,
        limit,
    )
    return tuple(OPERATIONS.read(row) for row in rows)


async def taken_back(
    database: Database, store_id: str, operation_ids: Sequence[str]
) -> Mapping[str, AgentOperation]:
    """Read by which operation a person took another back, by the id of what was taken back."""
    rows = await database.fetch(
        f"SELECT {OPERATIONS.selected} FROM agent_operations"  # noqa: S608 - constants of this module
        " WHERE client_id = ANY($2::text[]) AND client_id LIKE 'undo:%'"
        " AND store_id = $1 AND state = 'applied' ORDER BY created_at",
        store_id,
        [UNDO + one for one in operation_ids],
    )
    found = [OPERATIONS.read(row) for row in rows]
    return {one.client_id.removeprefix(UNDO): one for one in found}


async def asked_for(database: Database, operation_id: str, at: datetime) -> AgentOperation | None:
    """Read an operation of whichever store, for as long as who asked may look: seven days after its end."""
    row = await database.fetchrow(
        f"SELECT {OPERATIONS.selected} FROM agent_operations WHERE operation_id = $1"  # noqa: S608 - constants of this module
        " AND (finished_at IS NULL OR finished_at > $2::timestamptz - interval '7 days')",
        operation_id,
        at,
    )
    return None if row is None else OPERATIONS.read(row)


async def audit_id(database: Database, store_id: str, operation_id: str) -> str | None:
    """Find the audit row of an operation's end; None while it has not ended."""
    row = await database.fetchrow(
        """
        SELECT id FROM audit_log
        WHERE event = 'agent.write' AND metadata->>'operationId' = $2 AND subject = $1
        ORDER BY id DESC LIMIT 1
        """,
        store_id,
        operation_id,
    )
    return None if row is None else str(row["id"])


async def audit_ids(database: Database, operation_ids: Sequence[str]) -> Mapping[str, str]:
    """Find the audit rows of operations' ends, by their ids."""
    rows = await database.fetch(
        """
        SELECT metadata->>'operationId' AS operation_id, max(id) AS id FROM audit_log
        WHERE event = 'agent.write' AND metadata->>'operationId' = ANY($1::text[]) GROUP BY 1
        """,
        list(operation_ids),
    )
    return {row["operation_id"]: str(row["id"]) for row in rows}


async def planned(database: Database, store_id: str, operation_id: str) -> Row | None:
    """Find the newest dry run of an operation: its audit row's id, user, tool and time."""
    return await database.fetchrow(
        """
        SELECT id, actor, metadata->>'tool' AS tool, created_at FROM audit_log
        WHERE event = 'agent.write.planned' AND metadata->>'operationId' = $2 AND subject = $1
        ORDER BY id DESC LIMIT 1
        """,
        store_id,
        operation_id,
    )


async def put_on_record(
    database: Database,
    event: str,
    store_id: str,
    organization_id: str,
    user_id: str,
    **metadata: Any,
) -> str:
    """Append an audit row of a call that changed nothing; answer its id."""
    record = audit_record(event, store_id, organization_id, user_id, **metadata)
    row = await database.fetchrow(f"{AUDIT.insert} RETURNING id", *AUDIT.values_of(record))
    return "" if row is None else str(row["id"])


def seal_intent(vault: Vault, store_id: str, operation_id: str, intent: str) -> str:
    """Seal what an agent asked for the time until it is done."""
    return vault.seal(intent, table=TABLE, column="intent", row=operation_id, tenant=store_id)


def open_intent(vault: Vault, store_id: str, operation_id: str, sealed: str) -> str:
    """Open what an agent asked; SealBroken when it cannot be."""
    return vault.open(sealed, table=TABLE, column="intent", row=operation_id, tenant=store_id)
