"""What agents asked for, as it is kept: found again, sealed, and let go of in the end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.http.people import KEYRING
from tolsey.storage.commerce import agent_operations
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.lifecycle import retention
from tolsey.storage.records.commerce.agent_operation import AgentOperation
from tolsey.storage.sealing.sealed import SealBroken, Vault

pytestmark = pytest.mark.anyio

NOW = datetime.now(UTC)
OPEN = AgentOperation(
    store_id="store_1",
    operation_id="op_1",
    user_id="usr_1",
    client_id="client_1",
    tool="tag_order",
    subject="order/1",
    digest="d",
    state="sent",
    created_at=NOW,
    intent="sealed",
)


async def kept(database: Database, *some: AgentOperation) -> None:
    for one in some:
        await database.execute(
            """
            INSERT INTO agent_operations (store_id, operation_id, user_id, client_id, tool,
                subject, digest, state, created_at, intent, before, finished_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12)
            """,
            *(one.store_id, one.operation_id, one.user_id, one.client_id, one.tool),
            *(one.subject, one.digest, one.state, one.created_at, one.intent, one.before),
            one.finished_at,
        )


def ended(operation_id: str, days: int) -> AgentOperation:
    at = NOW - timedelta(days=days)
    return replace(OPEN, operation_id=operation_id, state="applied", intent=None, finished_at=at)


async def test_a_store_finds_what_has_not_ended_oldest_first(database: Database) -> None:
    later = replace(OPEN, operation_id="op_0", created_at=NOW + timedelta(seconds=1))
    await kept(database, later, OPEN, ended("op_2", 1), replace(OPEN, store_id="store_2"))
    found = await agent_operations.load(database, ["store_1", "store_3"])
    assert found == {"store_1": (OPEN, later)}


async def test_an_operation_is_found_in_its_own_store_only(database: Database) -> None:
    await kept(database, replace(OPEN, before='{"tags": []}'))
    found = await agent_operations.find(database, "store_1", "op_1")
    assert found == replace(OPEN, before='{"tags": []}')
    assert await agent_operations.find(database, "store_2", "op_1") is None


async def test_what_was_asked_never_outlives_its_operation(database: Database) -> None:
    with pytest.raises(StorageError):
        await kept(database, replace(ended("op_1", 1), intent="sealed"))


async def test_what_was_asked_opens_for_its_own_row_only() -> None:
    vault = Vault.from_keys(KEYRING)
    sealed = agent_operations.seal_intent(vault, "store_1", "op_1", "wrap it")
    assert agent_operations.open_intent(vault, "store_1", "op_1", sealed) == "wrap it"
    for store_id, operation_id in (("store_2", "op_1"), ("store_1", "op_2")):
        with pytest.raises(SealBroken):
            agent_operations.open_intent(vault, store_id, operation_id, sealed)


async def test_ended_operations_are_let_go_of_after_90_days(database: Database) -> None:
    long_ago = replace(OPEN, operation_id="op_5", created_at=NOW - timedelta(days=200))
    await kept(database, ended("op_3", 91), ended("op_4", 89), long_ago)
    assert await retention.sweep(database, retention.SWEPT["agentOperations"], 100) == 1
    assert await agent_operations.find(database, "store_1", "op_3") is None
    assert await agent_operations.find(database, "store_1", "op_5") == long_ago


async def test_an_audit_row_is_found_by_its_operation_and_store(database: Database) -> None:
    answered = await agent_operations.put_on_record(
        database, agent_operations.EVENT, "store_1", "org_1", "usr_1", operationId="op_1"
    )
    assert await agent_operations.audit_id(database, "store_1", "op_1") == answered
    assert await agent_operations.audit_id(database, "store_2", "op_1") is None
