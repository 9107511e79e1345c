"""The store: its connection, its token and its deliveries, one message at a time."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import structlog

from tolsey.actors.store import KIND, connection, events, operations, tokens
from tolsey.actors.store.messages import (
    AppUninstalled,
    BulkFinished,
    Connect,
    ConnectionView,
    CustomerChanged,
    DeliveryIgnored,
    DeliveryUnreadable,
    Disconnect,
    DomainCreated,
    FulfillmentChanged,
    InventoryChanged,
    LeaveShop,
    OrderChanged,
    OrderEdited,
    OrderRead,
    ProductChanged,
    ReadConnection,
    RefundCreated,
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RevokeGrant,
    ScopesChanged,
    ShopUpdated,
    SubscriptionsEnded,
    SubscriptionsReconciled,
    ThemePublished,
    UseToken,
)
from tolsey.actors.store.operation_messages import (
    BeginOperation,
    OperationApplied,
    OperationGivenUp,
    OperationNotSent,
    OperationOvertaken,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
    OperationView,
    RecordOperation,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import Actor, handles, on
from tolsey.runtime.decision import Decision
from tolsey.storage.commerce import agent_operations, connections
from tolsey.storage.database import Database

log = structlog.get_logger()

Shown = Decision[StoreState, ConnectionView]
Silence = Decision[StoreState, None]


class StoreActor(Actor[StoreState]):
    """Every store."""

    kind: ClassVar[str] = KIND
    decides = (
        on(Connect, connection.connect),
        on(Disconnect, connection.disconnect),
        on(LeaveShop, connection.leave),
        on(SubscriptionsEnded, connection.left),
        on(ReadConnection, connection.read),
        on(RevokeGrant, connection.uninstall),
        on(SubscriptionsReconciled, connection.subscribed),
        on(UseToken, tokens.use),
        on(RenewalSucceeded, tokens.renewed),
        on(RenewalUnreachable, tokens.unreachable),
        on(OperationSending, operations.sending),
        on(OperationApplied, operations.applied),
        on(OperationRejected, operations.rejected),
        on(OperationNotSent, operations.not_sent),
        on(OperationOvertaken, operations.overtaken),
        on(OperationUnanswered, operations.unanswered),
        on(OperationGivenUp, operations.given_up),
        on(DeliveryIgnored, events.ignore),
        on(DeliveryUnreadable, events.give_up),
        on(AppUninstalled, events.app_uninstalled),
        on(ScopesChanged, events.scopes_changed),
        on(ShopUpdated, events.shop_updated),
        on(DomainCreated, events.domain_created),
        on(ThemePublished, events.theme_published),
        on(BulkFinished, events.bulk_finished),
        on(
            OrderChanged,
            lambda state, message: events.keep(state, message, message.order, *message.refunds),
        ),
        on(OrderEdited, events.order_edited),
        on(OrderRead, events.order_read),
        on(RefundCreated, lambda state, message: events.keep(state, message, message.refund)),
        on(
            FulfillmentChanged,
            lambda state, message: events.keep(state, message, message.fulfillment),
        ),
        on(ProductChanged, lambda state, message: events.keep(state, message, message.product)),
        on(CustomerChanged, lambda state, message: events.keep(state, message, message.customer)),
        on(InventoryChanged, lambda state, message: events.keep(state, message, message.level)),
    )

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, StoreState]:
        """Read stores back into memory."""
        found, unfinished = await asyncio.gather(
            connections.load(self._database, keys), agent_operations.load(self._database, keys)
        )
        return {
            key: StoreState(
                store_id=key,
                organization_id=parts.organization_id,
                connection=parts.connection,
                shop=parts.shop,
                operations=unfinished.get(key, ()),
                shops=parts.shops,
            )
            for key, parts in found.items()
        }

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List the connection, the shops and the operations, each when it changed."""
        if new.connection is not None and new.connection != old.connection:
            yield new.connection.row()
        if new.shop is not None and new.shop != old.shop:
            yield new.shop
        if new.shops is not old.shops:
            yield from (one for one in new.shops if one not in old.shops)
        if new.operations is not old.operations:
            yield from (one for one in new.operations if one not in old.operations)

    # The connection and its token.

    @handles(RenewalRefused)
    def renewal_refused(self, state: StoreState, message: RenewalRefused) -> Silence:
        """Remember that the platform refuses; the log hears of it once per episode."""
        decision = tokens.refused(state, message)
        if decision.records:
            log.warning("refresh_rejected", store_id=state.store_id, code=message.code)
        return decision

    # What agents want changed.

    @handles(BeginOperation)
    async def begin_operation(
        self, state: StoreState, message: BeginOperation
    ) -> Decision[StoreState, OperationView]:
        """Start an operation, or answer what became of it."""
        kept = await agent_operations.find(self._database, state.store_id, message.operation_id)
        return operations.begin(state, message, kept)

    @handles(RecordOperation)
    async def record_operation(
        self, state: StoreState, message: RecordOperation
    ) -> Decision[StoreState, OperationView]:
        """Keep what was done."""
        kept = await agent_operations.find(self._database, state.store_id, message.operation_id)
        return operations.record(state, message, kept)

    # Deliveries.
