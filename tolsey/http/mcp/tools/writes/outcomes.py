"""What became of a change that an agent asked for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from tolsey.actors.refusals import NotFound
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools.building import Answer, Arguments, tool
from tolsey.http.web.context import Service
from tolsey.storage.commerce import agent_operations
from tolsey.storage.records.commerce.agent_operation import AgentOperation

SCOPES: Final = frozenset({"store:read"})
NONE: Final = "There is no such operation."


class OperationId(Arguments):
    """Which change."""

    operation_id: Annotated[str, Field(description="Of the change's answer.")]


class Outcome(Answer):
    """A change: `state` says how far it is, and `finished_at` that nothing more will become of it.

    One that was only planned has been shown by a dry run, and nothing was changed under its id.
    """

    operation_id: str
    tool: str
    state: str
    created_at: datetime
    finished_at: datetime | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    version: str | None = None
    code: str | None = None
    detail: str | None = None
    audit_id: str | None = None


class OutcomeTools:
    """Reads a user's changes, whichever of their agents asked for them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "get_operation",
                "Get an operation",
                "Tells what became of a change you asked for, by its operation_id: use it when an"
                " answer was lost.",
                arguments=OperationId,
                answer=Outcome,
                run=self.get,
                scopes=SCOPES,
                hints=READS,
            )
        ]

    async def get(self, principal: Principal, asked: OperationId) -> Outcome:
        """Read one change of the user's own."""
        database, store_id = self._service.database, principal.store_id
        found = await agent_operations.find(database, store_id, asked.operation_id)
        if found is None:
            return await self._planned(principal, asked.operation_id)
        if found.user_id != principal.user_id:
            raise NotFound(NONE)
        audit_id = await agent_operations.audit_id(database, store_id, asked.operation_id)
        return _outcome(found, audit_id)

    async def _planned(self, principal: Principal, operation_id: str) -> Outcome:
        """Read a change that was only ever planned."""
        row = await agent_operations.planned(
            self._service.database, principal.store_id, operation_id
        )
        if row is None or row["actor"] != principal.user_id:
            raise NotFound(NONE)
        return Outcome(
            operation_id=operation_id,
            tool=row["tool"],
            state="planned",
            created_at=row["created_at"],
            audit_id=str(row["id"]),
        )


def _outcome(found: AgentOperation, audit_id: str | None) -> Outcome:
    return Outcome(
        operation_id=found.operation_id,
        tool=found.tool,
        state=found.state,
        created_at=found.created_at,
        finished_at=found.finished_at,
        before=None if found.before is None else orjson.loads(found.before),
        after=None if found.after is None else orjson.loads(found.after),
        version=found.version,
        code=found.code,
        detail=found.detail,
        audit_id=audit_id,
    )
