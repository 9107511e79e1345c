"""Privacy requests that concern a store."""

from datetime import UTC, datetime
from typing import Final

from tolsey.http.answers.people.compliance import ComplianceRequestAnswer
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.building import ReadTools, ToolAnswer, ToolPage, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.storage.commerce import compliance
from tolsey.storage.records.commerce.compliance import ComplianceRequest

SCOPES: Final = frozenset({"compliance:read"})


class PrivacyRequest(ToolAnswer):
    """A request to tell or to forget, and its `clock`; `pending_steps` wait for an operator, who closes it."""

    id: str
    topic: str
    source: str
    received_at: datetime
    due_at: datetime
    clock: str
    overdue: bool
    completed_at: datetime | None
    handled_at: datetime | None
    pending_steps: list[str]


class ComplianceTools(ReadTools):
    """Reads a store's privacy requests for whoever the gate admitted."""

    pages = Pages("list_compliance_requests", str)

    @reads(
        "list_compliance_requests",
        "List privacy requests",
        "Lists what the shop or its customers asked to be told or forgotten, newest first.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: PageArguments) -> ToolPage[PrivacyRequest]:
        """List privacy requests."""
        after = self.pages.after(asked)
        found = await compliance.page(
            self._reports(principal),
            str(after[0]) if after else None,
            asked.limit + 1,
            store_id=principal.store_id,
        )
        return self.pages.part(found, asked, key=lambda row: (row.id,), show=self._shown)

    def _shown(self, request: ComplianceRequest) -> PrivacyRequest:
        at = self._service.clock().astimezone(UTC)
        return PrivacyRequest.read(ComplianceRequestAnswer.of(request, (), at))
