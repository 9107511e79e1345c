"""Reading verified revenue anew, on an agent's word."""

from typing import Final

import orjson

from tolsey.actors.listing.messages import RefreshRevenue, listing
from tolsey.actors.refusals import Conflict, Refusal
from tolsey.actors.store.editing.messages import RecordOperation
from tolsey.actors.store.messages import store
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.gate import Principal, too_many
from tolsey.http.mcp.registry import Hints, Tool, ToolResult
from tolsey.http.mcp.tools.building import reading
from tolsey.http.mcp.tools.schemas import answer_schema_of, schema_of
from tolsey.http.mcp.tools.writes.changes import WriteArguments, WriteResult
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
from tolsey.http.web import policies
from tolsey.http.web.context import Service
from tolsey.storage.commerce import agent_operations
from tolsey.storage.reports import store as reports

NAME: Final = "refresh_revenue"
HINTS: Final = Hints(read_only=False, destructive=False, idempotent=True, open_world=False)
SUBJECT: Final = "revenue"


class Refresh:
    """Has the revenue of a store's listings read at its sources."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def tool(self) -> Tool:
        """Make the tool."""

        async def called(call: ToolCall, given: WriteArguments) -> ToolResult:
            return await on_record(self._service, call, NAME, given, self._answer(call, given))

        return Tool(
            NAME,
            "Refresh verified revenue",
            "Reads the verified revenue of this store's listings anew; takes minutes. 20 an hour.",
            HINTS,
            schema_of(WriteArguments),
            reading(WriteArguments),
            called,
            answer_schema_of(WriteResult),
            frozenset({"store:read"}),
            turned_away(self._service, NAME),
        )

    async def _answer(self, call: ToolCall, given: WriteArguments) -> ToolResult:
        service, principal = self._service, call.principal
        operation_id = id_of(principal, given.idempotency_key)
        database = service.database
        kept = await agent_operations.find(database, principal.store_id, operation_id)
        if is_known(kept):
            return await self._recorded(principal, given, [])
        views = await reports.listings(database, principal.store_id, principal.organization_id)
        found = [view.listing.id for view in views]
        if not found:
            raise Conflict("No listing shows this store's revenue.", code="no_listing")
        if given.dry_run:
            audit_id = await put_on_record(service, principal, "planned", NAME, operation_id)
            return shown(
                WriteResult(
                    operation_id=operation_id,
                    status="planned",
                    before={"refreshing": []},
                    after={"refreshing": found},
                    audit_id=audit_id,
                )
            )
        await self._count(principal)
        return await self._recorded(principal, given, await self._refreshed(found))

    async def _refreshed(self, found: list[str]) -> list[str]:
        """Have each listing read its sources; answers those that have one that works."""
        done: list[str] = []
        refused: Refusal | None = None
        for listing_id in found:
            try:
                wish = RefreshRevenue(self._service.clock())
                await self._service.runtime.ask(listing(listing_id), wish)
            except Refusal as refusal:
                refused = refusal
            else:
                done.append(listing_id)
        if not done and refused is not None:
            raise refused
        return done

    async def _count(self, principal: Principal) -> None:
        """Count against the same window as the route of a listing's seller."""
        policy = (policies.REVENUE_REFRESH,)
        verdict = await self._service.limits.admit(policy, f"user:{principal.user_id}")
        if not verdict.allowed:
            raise too_many(verdict)

    async def _recorded(
        self, principal: Principal, given: WriteArguments, done: list[str]
    ) -> ToolResult:
        """Keep what was done under its key; or answer what was done before."""
        service, store_id = self._service, principal.store_id
        operation_id = id_of(principal, given.idempotency_key)
        wish = RecordOperation(
            operation_id=operation_id,
            user_id=principal.user_id,
            client_id=principal.client_id,
            tool=NAME,
            subject=SUBJECT,
            digest=digest_of(NAME, wanted(given)),
            before=orjson.dumps({"refreshing": []}).decode(),
            after=orjson.dumps({"refreshing": done}).decode(),
            at=service.clock(),
        )
        view = await service.runtime.ask(store(store_id), wish)
        audit_id = await agent_operations.audit_id(service.database, store_id, operation_id)
        return shown(result_of(view, audit_id))
