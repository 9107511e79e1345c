"""Deliveries of the platform that a store is told of, and the calls that these want made."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.actors.store.messages import Outcome
from tolsey.runtime.messages import Call, LaneName, Message
from tolsey.storage.records.commerce.connection import ShopProfile
from tolsey.storage.records.commerce.deliveries import (
    AttributionTouch,
    CommerceCustomer,
    CommerceFulfillment,
    CommerceInventoryLevel,
    CommerceOrder,
    CommerceProduct,
    CommerceRefund,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One delivery of the platform, proven to be signed with a secret of this store.

    Only its body was signed: topic, times and ids are what the headers say.
    """

    id: str
    topic: str
    shop_domain: str
    at: datetime
    event_id: str | None = None
    triggered_at: datetime | None = None

    @property
    def happened_at(self) -> datetime:
        """When it happened as far as we know: never later than it arrived."""
        return self.at if self.triggered_at is None else min(self.triggered_at, self.at)


class AboutShop:
    """What is said of the shop itself is one thing: it takes effect in order (rules/operators#quarantine)."""

    __slots__ = ()

    @property
    def about(self) -> str:
        """Name the thing."""
        return "shop"


@dataclass(frozen=True, slots=True)
class DeliveryIgnored(Message[Outcome]):
    """A topic that no reason is known for."""

    delivery: Delivery


@dataclass(frozen=True, slots=True)
class DeliveryUnreadable(Message[Outcome]):
    """A topic of the catalogue with a body that is not as documented; `field` names where."""

    delivery: Delivery
    field: str


@dataclass(frozen=True, slots=True)
class AppUninstalled(AboutShop, Message[Outcome]):
    """The merchant removed our app from the shop."""

    delivery: Delivery
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopesChanged(AboutShop, Message[Outcome]):
    """The merchant changed what the app may do."""

    delivery: Delivery
    scopes: tuple[str, ...]
    changed_at: datetime
    audit: str


@dataclass(frozen=True, slots=True)
class ShopUpdated(AboutShop, Message[Outcome]):
    """The shop's own facts changed: plan, currency, address."""

    delivery: Delivery
    shop: ShopProfile
    audit: str


@dataclass(frozen=True, slots=True)
class DomainCreated(AboutShop, Message[Outcome]):
    """The shop got an address of its own."""

    delivery: Delivery
    host: str
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemePublished(AboutShop, Message[Outcome]):
    """The shop shows another theme."""

    delivery: Delivery
    theme_id: int
    name: str | None
    published_at: datetime
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFinished(AboutShop, Message[Outcome]):
    """A bulk export ended; `operation` is JSON text of its id, status, error and type."""

    delivery: Delivery
    operation: str
    finished_at: datetime
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderChanged(Message[Outcome]):
    """An order was made, paid, sent, changed, cancelled or deleted."""

    delivery: Delivery
    order: CommerceOrder
    audit: str
    refunds: tuple[CommerceRefund, ...] = ()
    touch: AttributionTouch | None = None

    @property
    def rows(self) -> tuple[CommerceOrder | AttributionTouch | CommerceRefund, ...]:
        """All that is kept of the order."""
        came_from = () if self.touch is None else (self.touch,)
        return (self.order, *came_from, *self.refunds)

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"order:{self.order.order_id}"


@dataclass(frozen=True, slots=True)
class OrderEdited(Message[Outcome]):
    """The lines of an order changed; the delivery does not say what the order is now."""

    delivery: Delivery
    order_id: int
    audit: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"order:{self.order_id}"


@dataclass(frozen=True, slots=True)
class OrderRead(Message[None]):
    """The platform was asked what an order is now."""

    shop_domain: str
    order: CommerceOrder


@dataclass(frozen=True, slots=True)
class RefundCreated(Message[Outcome]):
    """Money was given back."""

    delivery: Delivery
    refund: CommerceRefund
    audit: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"order:{self.refund.order_id}"


@dataclass(frozen=True, slots=True)
class FulfillmentChanged(Message[Outcome]):
    """A parcel was made or moved on."""

    delivery: Delivery
    fulfillment: CommerceFulfillment
    audit: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"order:{self.fulfillment.order_id}"


@dataclass(frozen=True, slots=True)
class ProductChanged(Message[Outcome]):
    """A product was made, changed or deleted."""

    delivery: Delivery
    product: CommerceProduct
    audit: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"product:{self.product.product_id}"


@dataclass(frozen=True, slots=True)
class CustomerChanged(Message[Outcome]):
    """A buyer was made, changed or deleted."""

    delivery: Delivery
    customer: CommerceCustomer
    audit: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"customer:{self.customer.customer_id}"


@dataclass(frozen=True, slots=True)
class InventoryChanged(Message[Outcome]):
    """A location has another quantity of an item."""

    delivery: Delivery
    level: CommerceInventoryLevel
    audit: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"item:{self.level.inventory_item_id}"


@dataclass(frozen=True, slots=True)
class ReadOrder(Call[OrderRead]):
    """Ask the platform what an order is now."""

    lane: ClassVar[LaneName] = "platform"

    store_id: str
    order_id: int
    organization_id: str | None = None
