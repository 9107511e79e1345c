"""Having a competitor looked at anew, on an agent's word (rules/intelligence#competitors)."""

from typing import Annotated, ClassVar

from pydantic import Field

from tolsey.actors.domains import required_domain
from tolsey.actors.organization import plans
from tolsey.actors.refusals import NotFound
from tolsey.actors.storefront.messages import RequestScan, storefront
from tolsey.http.mcp.gate import Principal, too_many
from tolsey.http.mcp.tools.competitors.reading import NamedDomain
from tolsey.http.mcp.tools.writes.contract import WriteArguments
from tolsey.http.mcp.tools.writes.recorded import Effected, RecordedWrite
from tolsey.http.web import limits, policies
from tolsey.storage.intelligence import competitors, registry
from tolsey.storage.records.intelligence import ScanMode


class WantedScan(WriteArguments):
    """Which competitor is looked at, and how much of it."""

    domain: NamedDomain
    mode: Annotated[
        ScanMode, Field(description="full reads all of its catalogue, light the first page.")
    ] = "full"


class ScanWriter(RecordedWrite[WantedScan]):
    """Has a competitor of the store scanned, as one of the scans that the plan includes a day."""

    name: ClassVar[str] = "request_competitor_scan"
    title: ClassVar[str] = "Have a competitor scanned"
    description: ClassVar[str] = (
        "Has a competitor looked at anew; takes minutes: get_competitor tells by scanned_at. Counts by plan."
    )
    scope: ClassVar[str] = "intelligence:write"
    arguments: ClassVar[type[WriteArguments]] = WantedScan

    def subject(self, given: WantedScan) -> str:
        """Name what it is about."""
        return f"competitor:{required_domain(given.domain)}"

    async def plan(self, principal: Principal, given: WantedScan) -> Effected:
        """Say when it was looked at last, and that it would be."""
        standing = await self._standing(principal, given)
        return Effected(standing, {**standing, "state": "queued"})

    async def carry_out(
        self, principal: Principal, given: WantedScan, operation_id: str
    ) -> Effected:
        """Ask for the scan; the same key of the call names the same one."""
        service, scan_id = self._service, f"scan_{operation_id.removeprefix('op_')}"
        before = await self._standing(principal, given)
        scan = await registry.find_scan(service.database, scan_id)
        if scan is None:
            # An agent's wish is one of the organization's scans of the day, as a program's is.
            await self._count_scan(principal)
            wish = RequestScan(
                id=scan_id,
                mode=given.mode,
                is_kept=True,
                source="agent",
                at=service.clock(),
                organization_id=principal.organization_id,
                user_id=principal.user_id,
            )
            scan = await service.runtime.ask(storefront(required_domain(given.domain)), wish)
        return Effected(before, {**before, "scan_id": scan.id, "state": scan.state})

    async def _standing(self, principal: Principal, given: WantedScan) -> dict[str, str | None]:
        """Tell when the domain was looked at last. Raises NotFound where the store does not compete with it."""
        database, domain = self._service.database, required_domain(given.domain)
        if not await competitors.load(database, principal.store_id, [domain]):
            raise NotFound(
                "This domain isn't one of the store's competitors. Add it as a competitor first."
            )
        row = await registry.find(database, domain)
        scanned_at = row.scanned_at.isoformat() if row is not None and row.scanned_at else None
        return {"scanned_at": scanned_at, "scan_id": None, "state": None}

    async def _count_scan(self, principal: Principal) -> None:
        bounds = policies.scans(plans.BY_CODE[principal.plan])
        whose = limits.of_organization(principal.organization_id)
        verdict = await self._service.limits.admit(bounds, whose)
        if not verdict.allowed:
            raise too_many(verdict)
