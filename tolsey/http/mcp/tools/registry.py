"""What every store's endpoint offers."""

from tolsey.http.mcp.registry import Registry
from tolsey.http.mcp.tools.audit import AuditTools
from tolsey.http.mcp.tools.catalog import CatalogTools
from tolsey.http.mcp.tools.customers import CustomerTools
from tolsey.http.mcp.tools.inventory import InventoryTools
from tolsey.http.mcp.tools.money import MoneyTools
from tolsey.http.mcp.tools.orders import OrderTools
from tolsey.http.mcp.tools.outcomes import OutcomeTools
from tolsey.http.mcp.tools.platform import PlatformTools
from tolsey.http.mcp.tools.prompts import prompts
from tolsey.http.mcp.tools.resources import Resources
from tolsey.http.mcp.tools.search import SearchTools
from tolsey.http.mcp.tools.store import StoreTools
from tolsey.http.mcp.tools.writes import writers
from tolsey.http.web.context import Service


def stores_registry(service: Service) -> Registry:
    """Gather the tools, resources and prompts of a store, for every store alike."""
    return Registry.of(
        *StoreTools(service).tools(),
        *OrderTools(service).tools(),
        *CatalogTools(service).tools(),
        *InventoryTools(service).tools(),
        *CustomerTools(service).tools(),
        *MoneyTools(service).tools(),
        *AuditTools(service).tools(),
        *OutcomeTools(service).tools(),
        *PlatformTools(service).tools(),
        *SearchTools(service).tools(),
        *writers(service),
        *Resources(service).offered(),
        *prompts(),
    )
