"""What became of a change that an agent asked for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.editing.change_sets import MANY, state_of
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import Values
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.shop_words import ShopText
from tolsey.storage.commerce import agent_operations
from tolsey.storage.database import Database
from tolsey.storage.records.commerce.agent_operation import AgentOperation

SCOPES: Final = frozenset({"store:read"})
NONE: Final = "This operation doesn't exist, has expired, or belongs to another user. Check its id."


class OperationId(ToolArguments):
    """Which change."""

    operation_id: Annotated[str, Field(description="Of the change's answer.")]


class ItemOutcome(ToolAnswer):
    """One of many changes."""

    operation_id: str
    tool: str
    subject: str
    state: str
    before: Values = None
    after: Values = None
    code: str | None = None
    detail: ShopText | None = None
    audit_id: str | None = None


async def items_of(database: Database, changes: Sequence[AgentOperation]) -> list[ItemOutcome]:
    """Tell of each of many changes what became of it."""
    audited = await agent_operations.audit_ids(
        database, [one.operation_id for one in changes if one.is_over]
    )
    return [ItemOutcome.read(one, audit_id=audited.get(one.operation_id)) for one in changes]


class WriteOutcome(ToolAnswer):
    """A change: `state` says how far it is, and `finished_at` that nothing more will become of it.

    One that was only planned has been shown by a dry run, and nothing was changed under its id.
    """

    operation_id: str
    tool: str
    state: str
    created_at: datetime
    finished_at: datetime | None = None
    before: Values = None
    after: Values = None
    version: str | None = None
    code: str | None = None
    detail: ShopText | None = None
    audit_id: str | None = None
    items: list[ItemOutcome] | None = None


class OutcomeTools(ReadTools):
    """Reads a user's changes, whichever of their agents asked for them."""

    @reads(
        "get_operation",
        "Get an operation",
        "Tells what became of a change you asked for, by its operation_id: use it when an"
        " answer was lost.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: OperationId) -> WriteOutcome:
        """Read one change of the user's own."""
        database, store_id = self._service.database, principal.store_id
        found = await agent_operations.known(database, store_id, asked.operation_id)
        if found is None:
            return await self._planned(principal, asked.operation_id)
        if found.user_id != principal.user_id:
            raise NotFound(NONE)
        if found.change_set == asked.operation_id:
            return await self._of_many(found)
        audit_id = await agent_operations.audit_id(database, store_id, asked.operation_id)
        return WriteOutcome.read(found, audit_id=audit_id, items=None)

    async def _of_many(self, first: AgentOperation) -> WriteOutcome:
        """Read changes that were planned together."""
        database, id = self._service.database, first.change_set or ""
        changes = await agent_operations.of_change_set(database, id)
        ends = [one.finished_at for one in changes]
        return WriteOutcome(
            operation_id=id,
            tool=MANY,
            state=state_of(changes),
            created_at=first.created_at,
            finished_at=None if None in ends else max(one for one in ends if one),
            items=await items_of(database, changes),
        )

    async def _planned(self, principal: Principal, operation_id: str) -> WriteOutcome:
        """Read a change that was only ever planned."""
        row = await agent_operations.planned(
            self._service.database, principal.store_id, operation_id
        )
        if row is None or row["actor"] != principal.user_id:
            raise NotFound(NONE)
        return WriteOutcome(
            operation_id=operation_id,
            tool=row["tool"],
            state="planned",
            created_at=row["created_at"],
            audit_id=str(row["id"]),
        )
