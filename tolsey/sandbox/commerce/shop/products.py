"""Products with their variants and stock, and the location that holds it."""

from dataclasses import dataclass, field
from datetime import datetime

from tolsey.sandbox.commerce.shop.files import StoredFile

LOCATION_ID = 655_441_491


@dataclass(slots=True)
class Variant:
    """A sellable form of a product; the price is in minor units of the shop's currency."""

    id: int
    inventory_item_id: int
    title: str
    sku: str
    price: int
    compare_at_price: int | None = None
    available: int = 0
    tracked: bool = True
    is_stocked: bool = True
    """Whether the location keeps it."""
    product: "Product | None" = field(default=None, repr=False)


@dataclass(slots=True)
class Product:
    """A product of the catalogue."""

    id: int
    title: str
    handle: str
    created_at: datetime
    updated_at: datetime
    variants: list[Variant] = field(default_factory=list)
    status: str = "ACTIVE"
    vendor: str = ""
    product_type: str = ""
    tags: tuple[str, ...] = ()
    published_at: datetime | None = None
    currency: str = "USD"
    description_html: str = ""
    seo: dict[str, str] = field(default_factory=dict)
    publications: set[int] = field(default_factory=set)
    media: StoredFile | None = None

    @property
    def stock(self) -> int:
        """Units available over all variants."""
        return sum(variant.available for variant in self.variants)
