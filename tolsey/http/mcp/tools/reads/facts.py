"""What is known of a shop: what it told since it was connected, and nothing of what lay still."""

from datetime import datetime

from tolsey.actors.refusals import NotFound
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.building import Item, ReadTools, ToolAnswer, ToolPage
from tolsey.storage.commerce import order_imports
from tolsey.storage.reports import store as reports


class FactsAnswer(ToolAnswer):
    """An answer made of what the shop told: whole for what changed since `facts_since`.

    Of orders it is from when on they are known: those from before the connection were imported.
    """

    facts_since: datetime | None


class FactsPart(ToolPage[Item], FactsAnswer):
    """A part of a list of what the shop told."""


class FactsTools(ReadTools):
    """Tools that read what the shop told."""

    async def _since(self, principal: Principal) -> datetime | None:
        """Say since when the shop tells what changes; None for a store that was never connected."""
        return await reports.connected_at(self._service.database, principal.store_id)

    async def _orders_since(self, principal: Principal) -> datetime | None:
        """Say from when on orders are known; None for a store that was never connected."""
        known = await order_imports.known(self._service.database, principal.store_id)
        return None if known is None else known.since

    async def _unknown(self, principal: Principal, what: str) -> NotFound:
        """Say that nothing is known of a thing, and how it can be there all the same."""
        is_order = what == "order"
        at = await (self._orders_since(principal) if is_order else self._since(principal))
        if at is None:
            return NotFound(
                f"This {what} doesn't exist, or you don't have access to it. Check the id."
            )
        return NotFound(
            f"No {what} with this id has changed since {at.isoformat(timespec='seconds')}, when our records start. Use platform_query to read older ones."
        )
