"""Who did what in a store."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools.building import Answer, tool
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.web.context import Service
from tolsey.storage.database import Row
from tolsey.storage.reports import store as reports

SCOPES: Final = frozenset({"audit:read"})
LONGEST: Final = 200

Scalar = str | int | float | bool


class AuditQuery(PageArguments):
    """Which events."""

    event: Annotated[
        Annotated[str, Field(max_length=100)] | None,
        Field(description="How the event's name begins, such as commerce.webhook."),
    ] = None


class AuditEvent(Answer):
    """Something that was done: by a user's id, `platform` or `system`."""

    id: str
    event: str
    actor: str
    at: datetime
    detail: dict[str, Any]


class AuditPage(Answer):
    """A part of what was done."""

    items: list[AuditEvent]
    next_cursor: str | None


class AuditTools:
    """Reads a store's audit rows for whoever the gate admitted."""

    pages = Pages("list_audit_events", int)

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "list_audit_events",
                "List audit events",
                "Lists who did what in this store, newest first: agents, people and the platform.",
                arguments=AuditQuery,
                answer=AuditPage,
                run=self.list,
                scopes=SCOPES,
                hints=READS,
            )
        ]

    async def list(self, principal: Principal, asked: AuditQuery) -> AuditPage:
        """List what was done."""
        found = await reports.audit(
            self._service.reports.of(principal.organization_id),
            principal.store_id,
            principal.organization_id,
            self.pages.number_after(asked),
            asked.limit + 1,
            event=asked.event,
        )
        part, following = self.pages.cut(found, asked, lambda row: (row["id"],))
        return AuditPage(items=[_event(row) for row in part], next_cursor=following)


def _event(row: Row) -> AuditEvent:
    """Show a row with those of its words that are short: what is long is what somebody wrote."""
    detail: dict[str, Any] = orjson.loads(row["detail"])
    return AuditEvent(
        id=str(row["id"]),
        event=row["event"],
        actor=row["actor"],
        at=row["created_at"],
        detail={
            name: value
            for name, value in detail.items()
            if isinstance(value, Scalar) and len(str(value)) <= LONGEST
        },
    )
