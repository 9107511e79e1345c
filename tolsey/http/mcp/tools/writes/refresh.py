"""Reading verified revenue anew, on an agent's word."""

from typing import ClassVar

from tolsey.actors.listing.messages import RefreshRevenue, listing
from tolsey.actors.refusals import Conflict, Refusal
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.writes.contract import WriteArguments
from tolsey.http.mcp.tools.writes.recorded import Effected, RecordedWrite
from tolsey.http.web import policies
from tolsey.storage.reports import store as reports


class Refresh(RecordedWrite[WriteArguments]):
    """Has the revenue of a store's listings read at its sources."""

    name: ClassVar[str] = "refresh_revenue"
    title: ClassVar[str] = "Refresh verified revenue"
    description: ClassVar[str] = (
        "Reads the verified revenue of this store's listings anew; takes minutes. 20 an hour."
    )
    scope: ClassVar[str] = "store:read"
    arguments: ClassVar[type[WriteArguments]] = WriteArguments

    def subject(self, given: WriteArguments) -> str:
        """Name what it is about."""
        del given
        return "revenue"

    async def plan(self, principal: Principal, given: WriteArguments) -> Effected:
        """Name the listings."""
        del given
        return Effected({"refreshing": []}, {"refreshing": await self._listings(principal)})

    async def carry_out(
        self, principal: Principal, given: WriteArguments, operation_id: str
    ) -> Effected:
        """Have each listing read its sources; answers those that have one that works."""
        del given, operation_id
        found = await self._listings(principal)
        await self._count(principal, policies.REVENUE_REFRESH)
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
        return Effected({"refreshing": []}, {"refreshing": done})

    async def _listings(self, principal: Principal) -> list[str]:
        views = await reports.listings(
            self._service.database, principal.store_id, principal.organization_id
        )
        if not views:
            raise Conflict(
                "No listing uses this store as a revenue source. Create a listing for the store"
                " first.",
                code="no_listing",
            )
        return [view.listing.id for view in views]
