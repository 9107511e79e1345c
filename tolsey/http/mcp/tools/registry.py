"""What every store's endpoint offers."""

from typing import Final

from tolsey.http.mcp.registry import Registry
from tolsey.http.mcp.tools.building import ReadTools
from tolsey.http.mcp.tools.competitors.reading import CompetitorTools
from tolsey.http.mcp.tools.deals.reading import DealTools
from tolsey.http.mcp.tools.launch.reading import LaunchTools
from tolsey.http.mcp.tools.platform.reading import PlatformTools
from tolsey.http.mcp.tools.prompts import prompts
from tolsey.http.mcp.tools.reads.audit import AuditTools
from tolsey.http.mcp.tools.reads.catalog import CatalogTools
from tolsey.http.mcp.tools.reads.compliance import ComplianceTools
from tolsey.http.mcp.tools.reads.customers import CustomerTools
from tolsey.http.mcp.tools.reads.inventory import InventoryTools
from tolsey.http.mcp.tools.reads.memory import MemoryTools
from tolsey.http.mcp.tools.reads.money import MoneyTools
from tolsey.http.mcp.tools.reads.orders import OrderTools
from tolsey.http.mcp.tools.reads.reports import ReportTools
from tolsey.http.mcp.tools.reads.search import SearchTools
from tolsey.http.mcp.tools.reads.store import StoreTools
from tolsey.http.mcp.tools.resources import Resources
from tolsey.http.mcp.tools.writes.outcomes import OutcomeTools
from tolsey.http.mcp.tools.writes.shop import writers
from tolsey.http.web.context import Service

READERS: Final[tuple[type[ReadTools], ...]] = (
    StoreTools,
    OrderTools,
    CatalogTools,
    InventoryTools,
    CustomerTools,
    ReportTools,
    MoneyTools,
    AuditTools,
    ComplianceTools,
    LaunchTools,
    CompetitorTools,
    DealTools,
    OutcomeTools,
    MemoryTools,
    PlatformTools,
    SearchTools,
)
"""What reads, in the order in which it is listed."""


def stores_registry(service: Service) -> Registry:
    """Gather the tools, resources and prompts of a store, for every store alike."""
    return Registry.of(
        *(one for kind in READERS for one in kind(service).tools()),
        *writers(service),
        *Resources(service).offered(),
        *prompts(),
    )
