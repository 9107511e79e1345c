"""Who did what in a store."""

from datetime import datetime
from typing import Annotated, Any, Final

import orjson
from pydantic import Field

from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import Id
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolPage, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.mcp.tools.shop_words import ShopValues
from tolsey.storage.database import Row
from tolsey.storage.reports import store as reports

SCOPES: Final = frozenset({"audit:read"})
LONGEST: Final = 200

Scalar = str | int | float | bool


class AuditArguments(PageArguments):
    """Which events."""

    event: Annotated[
        Annotated[str, Field(max_length=100)] | None,
        Field(description="How the event's name begins, such as commerce.webhook."),
    ] = None


class AuditEvent(ToolAnswer):
    """Something that was done: by a user's id, `platform` or `system`."""

    id: Id
    event: str
    actor: str
    at: datetime
    detail: ShopValues


class AuditTools(ReadTools):
    """Reads a store's audit rows for whoever the gate admitted."""

    pages = Pages("list_audit_events", int)

    @reads(
        "list_audit_events",
        "List audit events",
        "Lists who did what in this store, newest first: agents, people and the platform.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: AuditArguments) -> ToolPage[AuditEvent]:
        """List what was done."""
        found = await reports.audit(
            self._reports(principal),
            principal.store_id,
            principal.organization_id,
            self.pages.number_after(asked),
            asked.limit + 1,
            event=asked.event,
        )
        return self.pages.part(found, asked, key=lambda row: (row["id"],), show=_event)


def _event(row: Row) -> AuditEvent:
    """Show a row with those of its words that are short: what is long is what somebody wrote."""
    detail: dict[str, Any] = orjson.loads(row["detail"])
    short = {
        name: value
        for name, value in detail.items()
        if isinstance(value, Scalar) and len(str(value)) <= LONGEST
    }
    return AuditEvent.read(row, at=row["created_at"], detail=short)
