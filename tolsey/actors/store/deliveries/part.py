"""What the platform delivers; nothing of it is in memory, and its rows are written by their turns."""

from tolsey.actors.store.deliveries import events
from tolsey.actors.store.deliveries.messages import (
    AppUninstalled,
    BulkFinished,
    CustomerChanged,
    DeliveryIgnored,
    DeliveryUnreadable,
    DomainCreated,
    FulfillmentChanged,
    InventoryChanged,
    OrderChanged,
    OrderEdited,
    OrderRead,
    ProductChanged,
    RefundCreated,
    ScopesChanged,
    ShopUpdated,
    ThemePublished,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, on


class ShopDeliveries(KindPart[StoreState]):
    """Deliveries of a store's shop."""

    decides = (
        on(DeliveryIgnored, events.ignore),
        on(DeliveryUnreadable, events.give_up),
        on(AppUninstalled, events.app_uninstalled),
        on(ScopesChanged, events.scopes_changed),
        on(ShopUpdated, events.shop_updated),
        on(DomainCreated, events.domain_created),
        on(ThemePublished, events.theme_published),
        on(BulkFinished, events.bulk_finished),
        on(OrderChanged, lambda state, message: events.keep(state, message, *message.rows)),
        on(OrderEdited, events.order_edited),
        on(OrderRead, events.order_read),
        on(RefundCreated, lambda state, message: events.keep(state, message, message.refund)),
        on(
            FulfillmentChanged,
            lambda state, message: events.keep(state, message, message.fulfillment),
        ),
        on(ProductChanged, lambda state, message: events.keep(state, message, message.product)),
        on(CustomerChanged, events.customer_changed),
        on(InventoryChanged, lambda state, message: events.keep(state, message, message.level)),
    )
