"""Tools that change something of ours, and nothing in the shop: done here, and kept under their key.

They keep the contract of every write (key, dry run, audit) but need no call that outlives the process: what
they do may be done twice without a difference (rules/agents#tools).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import orjson

from tolsey.actors.store.editing.messages import RecordOperation
from tolsey.actors.store.messages import store
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal, too_many
from tolsey.http.mcp.registry import Hints, Tool, ToolResult
from tolsey.http.mcp.tools.building import reading
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of
from tolsey.http.mcp.tools.writes.contract import WriteArguments, WriteResult
from tolsey.http.mcp.tools.writes.operations import (
    id_of,
    is_known,
    on_record,
    put_on_record,
    result_of,
    shown,
    turned_away,
    wanted,
)
from tolsey.http.mcp.tools.writes.plans import digest_of
from tolsey.http.web.context import Service
from tolsey.storage.commerce import agent_operations
from tolsey.storage.limits import Policy

Given = TypeVar("Given", bound=WriteArguments)


@dataclass(frozen=True, slots=True)
class Effected:
    """What something was and is, or would be."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]


class RecordedWrite(ABC, Generic[Given]):
    """A tool whose work is done in this process, for whoever the gate admitted."""

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    scope: ClassVar[str]
    arguments: ClassVar[type[WriteArguments]]
    is_destructive: ClassVar[bool] = False

    def __init__(self, service: Service) -> None:
        self._service = service

    @abstractmethod
    def subject(self, given: Given) -> str:
        """Name what it is about."""

    @abstractmethod
    async def plan(self, principal: Principal, given: Given) -> Effected:
        """Say what it would do, or refuse."""

    @abstractmethod
    async def carry_out(self, principal: Principal, given: Given, operation_id: str) -> Effected:
        """Do it; once more makes no difference."""

    def tool(self) -> Tool:
        """Make the tool."""

        async def called(call: ToolCall, given: Given) -> ToolResult:
            answer = self._answer(call.principal, given)
            return await on_record(self._service, call, self.name, given, answer)

        return Tool(
            self.name,
            self.title,
            self.description,
            Hints(
                read_only=False,
                destructive=self.is_destructive,
                idempotent=True,
                open_world=False,
            ),
            schema_of(self.arguments),
            reading(self.arguments),
            called,
            answer_schema_of(WriteResult),
            frozenset({self.scope}),
            turned_away(self._service, self.name),
        )

    async def _count(self, principal: Principal, policy: Policy) -> None:
        """Count against the same window as the route of the user who asks by an agent."""
        verdict = await self._service.limits.admit((policy,), f"user:{principal.user_id}")
        if not verdict.allowed:
            raise too_many(verdict)

    async def _answer(self, principal: Principal, given: Given) -> ToolResult:
        operation_id = id_of(principal, given.idempotency_key)
        database = self._service.database
        kept = await agent_operations.find(database, principal.store_id, operation_id)
        if is_known(kept):
            return await self._recorded(principal, given, Effected({}, {}))
        if given.dry_run:
            planned = await self.plan(principal, given)
            return shown(
                WriteResult(
                    operation_id=operation_id,
                    status="planned",
                    before=dict(planned.before),
                    after=dict(planned.after),
                    audit_id=await put_on_record(
                        self._service, principal, "planned", self.name, operation_id
                    ),
                )
            )
        return await self._recorded(
            principal, given, await self.carry_out(principal, given, operation_id)
        )

    async def _recorded(self, principal: Principal, given: Given, done: Effected) -> ToolResult:
        """Keep what was done under its key; or answer what was done before."""
        service, store_id = self._service, principal.store_id
        operation_id = id_of(principal, given.idempotency_key)
        wish = RecordOperation(
            operation_id=operation_id,
            user_id=principal.user_id,
            client_id=principal.client_id,
            tool=self.name,
            subject=self.subject(given),
            digest=digest_of(self.name, wanted(given)),
            before=orjson.dumps(dict(done.before)).decode(),
            after=orjson.dumps(dict(done.after)).decode(),
            at=service.clock(),
        )
        view = await service.runtime.ask(store(store_id), wish)
        audit_id = await agent_operations.audit_id(service.database, store_id, operation_id)
        return shown(result_of(view, audit_id))
