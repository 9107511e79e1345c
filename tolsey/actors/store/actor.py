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
    Token,
    UseToken,
)
from tolsey.actors.store.operation_messages import (
    BeginOperation,
    OperationApplied,
    OperationNotSent,
    OperationRejected,
    OperationSending,
    OperationUnanswered,
    OperationView,
    RecordOperation,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.storage.commerce import agent_operations, connections
from tolsey.storage.database import Database

log = structlog.get_logger()

Shown = Decision[StoreState, ConnectionView]
Silence = Decision[StoreState, None]


class StoreActor(Actor[StoreState]):
    """Every store."""

    kind: ClassVar[str] = KIND

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
                key,
                parts.organization_id,
                parts.connection,
                parts.shop,
                operations=unfinished.get(key, ()),
            )
            for key, parts in found.items()
        }

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List the connection, the shop and the operations, each when it changed."""
        if new.connection is not None and new.connection != old.connection:
            yield new.connection.row()
        if new.shop is not None and new.shop != old.shop:
            yield new.shop
        if new.operations is not old.operations:
            yield from (one for one in new.operations if one not in old.operations)

    # The connection and its token.

    @handles(Connect)
    def connect(self, state: StoreState, message: Connect) -> Shown:
        """Take a new grant."""
        return connection.connect(state, message)

    @handles(Disconnect)
    def disconnect(self, state: StoreState, message: Disconnect) -> Shown:
        """Erase the grant."""
        return connection.disconnect(state, message)

    @handles(LeaveShop)
    def leave_shop(self, state: StoreState, message: LeaveShop) -> Shown:
        """End the subscriptions, then erase the grant."""
        return connection.leave(state, message)

    @handles(SubscriptionsEnded)
    def subscriptions_ended(self, state: StoreState, message: SubscriptionsEnded) -> Silence:
        """Erase the grant of a store that leaves."""
        return connection.left(state, message)

    @handles(ReadConnection)
    def read_connection(
        self, state: StoreState, message: ReadConnection
    ) -> Decision[StoreState, ConnectionView | None]:
        """Show the connection."""
        return connection.read(state, message)

    @handles(RevokeGrant)
    def revoke_grant(self, state: StoreState, message: RevokeGrant) -> events.Applied:
        """Void the credentials of a shop that removed the app."""
        return connection.uninstall(state, message)

    @handles(SubscriptionsReconciled)
    def subscriptions_reconciled(
        self, state: StoreState, message: SubscriptionsReconciled
    ) -> Silence:
        """Keep the report."""
        return connection.subscribed(state, message)

    @handles(UseToken)
    def use_token(self, state: StoreState, message: UseToken) -> Decision[StoreState, Token]:
        """Hand out a fresh token."""
        return tokens.use(state, message)

    @handles(RenewalSucceeded)
    def renewal_succeeded(self, state: StoreState, message: RenewalSucceeded) -> Silence:
        """Keep a new token."""
        return tokens.renewed(state, message)

    @handles(RenewalRefused)
    def renewal_refused(self, state: StoreState, message: RenewalRefused) -> Silence:
        """Remember that the platform refuses; the log hears of it once per episode."""
        decision = tokens.refused(state, message)
        if decision.records:
            log.warning("refresh_rejected", store_id=state.store_id, code=message.code)
        return decision

    @handles(RenewalUnreachable)
    def renewal_unreachable(self, state: StoreState, message: RenewalUnreachable) -> Silence:
        """Let who waits try again."""
        return tokens.unreachable(state, message)

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

    @handles(OperationSending)
    def operation_sending(
        self, state: StoreState, message: OperationSending
    ) -> Decision[StoreState, bool]:
        """Put on disk that it may reach the platform from now on."""
        return operations.sending(state, message)

    @handles(OperationApplied)
    def operation_applied(self, state: StoreState, message: OperationApplied) -> Silence:
        """Keep what the shop is now."""
        return operations.applied(state, message)

    @handles(OperationRejected)
    def operation_rejected(self, state: StoreState, message: OperationRejected) -> Silence:
        """Keep why it was not done."""
        return operations.rejected(state, message)

    @handles(OperationNotSent)
    def operation_not_sent(self, state: StoreState, message: OperationNotSent) -> Silence:
        """Let the same key ask again."""
        return operations.not_sent(state, message)

    @handles(OperationUnanswered)
    def operation_unanswered(self, state: StoreState, message: OperationUnanswered) -> Silence:
        """Look again later."""
        return operations.unanswered(state, message)

    # Deliveries.

    @handles(DeliveryIgnored)
    def delivery_ignored(self, state: StoreState, message: DeliveryIgnored) -> events.Applied:
        """Take note of a topic without a reason."""
        return events.ignore(state, message)

    @handles(DeliveryUnreadable)
    def delivery_unreadable(self, state: StoreState, message: DeliveryUnreadable) -> events.Applied:
        """Take note of a body that is not as documented."""
        return events.give_up(state, message)

    @handles(AppUninstalled)
    def app_uninstalled(self, state: StoreState, message: AppUninstalled) -> events.Applied:
        """Put the uninstall on record."""
        return events.app_uninstalled(state, message)

    @handles(ScopesChanged)
    def scopes_changed(self, state: StoreState, message: ScopesChanged) -> events.Applied:
        """Rewrite the scopes."""
        return events.scopes_changed(state, message)

    @handles(ShopUpdated)
    def shop_updated(self, state: StoreState, message: ShopUpdated) -> events.Applied:
        """Keep the shop's facts."""
        return events.shop_updated(state, message)

    @handles(DomainCreated)
    def domain_created(self, state: StoreState, message: DomainCreated) -> events.Applied:
        """Keep the shop's new address."""
        return events.domain_created(state, message)

    @handles(ThemePublished)
    def theme_published(self, state: StoreState, message: ThemePublished) -> events.Applied:
        """Keep the shop's theme."""
        return events.theme_published(state, message)

    @handles(BulkFinished)
    def bulk_finished(self, state: StoreState, message: BulkFinished) -> events.Applied:
        """Keep the end of a bulk export."""
        return events.bulk_finished(state, message)

    @handles(OrderChanged)
    def order_changed(self, state: StoreState, message: OrderChanged) -> events.Applied:
        """Keep an order and its refunds."""
        return events.keep(state, message, message.order, *message.refunds)

    @handles(OrderEdited)
    def order_edited(self, state: StoreState, message: OrderEdited) -> events.Applied:
        """Read an edited order anew."""
        return events.order_edited(state, message)

    @handles(OrderRead)
    def order_read(self, state: StoreState, message: OrderRead) -> Silence:
        """Keep an order that was read anew."""
        return events.order_read(state, message)

    @handles(RefundCreated)
    def refund_created(self, state: StoreState, message: RefundCreated) -> events.Applied:
        """Keep a refund."""
        return events.keep(state, message, message.refund)

    @handles(FulfillmentChanged)
    def fulfillment_changed(self, state: StoreState, message: FulfillmentChanged) -> events.Applied:
        """Keep a parcel."""
        return events.keep(state, message, message.fulfillment)

    @handles(ProductChanged)
    def product_changed(self, state: StoreState, message: ProductChanged) -> events.Applied:
        """Keep a product."""
        return events.keep(state, message, message.product)

    @handles(CustomerChanged)
    def customer_changed(self, state: StoreState, message: CustomerChanged) -> events.Applied:
        """Keep a buyer's pseudonym."""
        return events.keep(state, message, message.customer)

    @handles(InventoryChanged)
    def inventory_changed(self, state: StoreState, message: InventoryChanged) -> events.Applied:
        """Keep a stock level."""
        return events.keep(state, message, message.level)
