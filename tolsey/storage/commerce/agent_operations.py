"""SQL for what agents asked to have changed, and the sealing of what they asked."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from tolsey.storage.database import Database, Row
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.records.journal import audit_record
from tolsey.storage.sealed import Vault
from tolsey.storage.tables import replaced_whole, table

TABLE: Final = "agent_operations"
EVENT: Final = "agent.write"
"""The audit event of an operation's end; others of its calls are named after it."""
COLUMNS: Final = {
    "store_id": "text",
    "operation_id": "text",
    "user_id": "text",
    "client_id": "text",
    "tool": "text",
    "subject": "text",
    "digest": "text",
    "state": "text",
    "created_at": "timestamptz",
    "intent": "text",
    "before": "jsonb",
    "after": "jsonb",
    "version": "text",
    "code": "text",
    "detail": "text",
    "sends": "integer",
    "looks": "integer",
    "finished_at": "timestamptz",
}
table(
    AgentOperation,
    TABLE,
    COLUMNS,
    conflict=replaced_whole(COLUMNS, "store_id", "operation_id"),
    key=("store_id", "operation_id"),
)
assert tuple(COLUMNS) == tuple(one.name for one in fields(AgentOperation))  # noqa: S101 - a slip here would mix columns up

SELECTED: Final = ", ".join(
    f"{name}::text AS {name}" if kind == "jsonb" else name for name, kind in COLUMNS.items()
)


async def load(
    database: Database, store_ids: Sequence[str]
) -> Mapping[str, tuple[AgentOperation, ...]]:
    """Read what has not ended yet of stores, oldest first; a store without any is absent."""
    rows = await database.fetch(
        f"""
        SELECT {SELECTED} FROM agent_operations
        WHERE store_id = ANY($1::text[]) AND finished_at IS NULL ORDER BY created_at, operation_id
        """,  # noqa: S608 - constants of this module
        list(store_ids),
    )
    found: dict[str, list[AgentOperation]] = defaultdict(list)
    for row in rows:
        found[row["store_id"]].append(_operation(row))
    return {store_id: tuple(some) for store_id, some in found.items()}


async def find(database: Database, store_id: str, operation_id: str) -> AgentOperation | None:
    """Read one operation of a store."""
    row = await database.fetchrow(
        f"SELECT {SELECTED} FROM agent_operations WHERE store_id = $1 AND operation_id = $2",  # noqa: S608 - constants of this module
        store_id,
        operation_id,
    )
    return None if row is None else _operation(row)


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
    row = await database.fetchrow(
        """
        INSERT INTO audit_log (event, subject, organization_id, actor, metadata, retention)
        VALUES ($1, $2, $3, $4, $5::jsonb, $6) RETURNING id
        """,
        record.event,
        record.subject,
        record.organization_id,
        record.actor,
        record.metadata,
        record.retention,
    )
    return "" if row is None else str(row["id"])


def seal_intent(vault: Vault, store_id: str, operation_id: str, intent: str) -> str:
    """Seal what an agent asked for the time until it is done."""
    return vault.seal(intent, table=TABLE, column="intent", row=operation_id, tenant=store_id)


def open_intent(vault: Vault, store_id: str, operation_id: str, sealed: str) -> str:
    """Open what an agent asked; SealBroken when it cannot be."""
    return vault.open(sealed, table=TABLE, column="intent", row=operation_id, tenant=store_id)


def _operation(row: Row) -> AgentOperation:
    return AgentOperation(**{name: row[name] for name in COLUMNS})
