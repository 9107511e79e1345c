"""What a store can be asked, what it answers, and the calls to the world that it wants made."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from tolsey.actors.store import KIND
from tolsey.runtime.messages import ActorId, Call, LaneName, Message
from tolsey.storage.records.commerce.connection import ShopProfile, TokenKind
from tolsey.storage.records.commerce.deliveries import (
    CommerceCustomer,
    CommerceFulfillment,
    CommerceInventoryLevel,
    CommerceOrder,
    CommerceProduct,
    CommerceRefund,
)


def store(store_id: str) -> ActorId:
    """Address a store."""
    return ActorId(KIND, store_id)


class Outcome(StrEnum):
    """What became of a delivery."""

    APPLIED = "applied"
    IGNORED = "ignored"


class TokenState(StrEnum):
    """Whether calls to the shop can be made (rules/accounts#stores)."""

    OK = "ok"
    UNAVAILABLE = "token_unavailable"
    NEVER = "never"


# --- the connection and its token


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionView:
    """A connection as its merchant may see it: it holds no key material, sealed or not."""

    shop_domain: str
    status: str
    scopes: tuple[str, ...]
    token_state: TokenState
    connected_at: datetime
    uninstalled_at: datetime | None
    subscriptions: tuple[tuple[str, str], ...] = ()
    token_kind: TokenKind | None = None

    @property
    def scopes_known(self) -> bool:
        """Whether the platform ever told what the grant allows."""
        return bool(self.scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Message[ConnectionView]):
    """The platform took a token of the merchant's app; everything secret is sealed text.

    With an empty `client_id` the token is static: the merchant pasted it, and nothing renews it.
    `sealed_salt` is of the pseudonyms of this shop's buyers, should it have none yet.
    """

    at: datetime
    user_id: str
    shop: ShopProfile
    client_id: str
    access_token: str = field(repr=False)
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: datetime
    sealed_salt: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Disconnect(Message[ConnectionView]):
    """The merchant takes the connection away."""

    at: datetime
    user_id: str


@dataclass(frozen=True, slots=True)
class LeaveShop(Message[ConnectionView]):
    """The store is about to be deleted: its subscriptions end at the platform, then its connection."""

    at: datetime
    user_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionsEnded(Message[None]):
    """The platform was asked to end the subscriptions of a store that leaves its shop."""

    connected_at: datetime
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ReadConnection(Message[ConnectionView | None]):
    """What is the connection now? None when there never was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The right to call a shop. `storage.commerce.connections` opens the sealed `access_token`."""

    store_id: str
    shop_domain: str
    access_token: str = field(repr=False)
    expires_at: datetime
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UseToken(Message[Token]):
    """A call to the shop is to be made now; waits for one renewal however many ask.

    `dead` is the sealed text of a token that the platform no longer knows, if that was found out.
    """

    at: datetime
    dead: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewalSucceeded(Message[None]):
    """The platform granted a new token to the connection of `connected_at`."""

    connected_at: datetime
    access_token: str = field(repr=False)
    scopes: tuple[str, ...]
    expires_at: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class RenewalRefused(Message[None]):
    """The platform will not renew: the app is gone or its secret was changed. `code` is its own."""

    connected_at: datetime
    code: str
    at: datetime


@dataclass(frozen=True, slots=True)
class RenewalUnreachable(Message[None]):
    """The platform could not be asked for now."""

    connected_at: datetime
    at: datetime


@dataclass(frozen=True, slots=True)
class SubscriptionsReconciled(Message[None]):
    """What became of the subscription to each topic of the catalogue."""

    connected_at: datetime
    results: tuple[tuple[str, str], ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeGrant(Message[Outcome]):
    """The app is no longer in the shop since `happened_at`: its credentials must go.

    With `connected_at` only those of the grant made then, which the platform was asked about.
    """

    shop_domain: str
    happened_at: datetime
    at: datetime
    connected_at: datetime | None = None


# --- deliveries


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
class AppUninstalled(Message[Outcome]):
    """The merchant removed our app from the shop."""

    delivery: Delivery
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopesChanged(Message[Outcome]):
    """The merchant changed what the app may do."""

    delivery: Delivery
    scopes: tuple[str, ...]
    changed_at: datetime
    audit: str


@dataclass(frozen=True, slots=True)
class ShopUpdated(Message[Outcome]):
    """The shop's own facts changed: plan, currency, address."""

    delivery: Delivery
    shop: ShopProfile
    audit: str


@dataclass(frozen=True, slots=True)
class DomainCreated(Message[Outcome]):
    """The shop got an address of its own."""

    delivery: Delivery
    host: str
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemePublished(Message[Outcome]):
    """The shop shows another theme."""

    delivery: Delivery
    theme_id: int
    name: str | None
    published_at: datetime
    audit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFinished(Message[Outcome]):
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


@dataclass(frozen=True, slots=True)
class OrderEdited(Message[Outcome]):
    """The lines of an order changed; the delivery does not say what the order is now."""

    delivery: Delivery
    order_id: int
    audit: str


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


@dataclass(frozen=True, slots=True)
class FulfillmentChanged(Message[Outcome]):
    """A parcel was made or moved on."""

    delivery: Delivery
    fulfillment: CommerceFulfillment
    audit: str


@dataclass(frozen=True, slots=True)
class ProductChanged(Message[Outcome]):
    """A product was made, changed or deleted."""

    delivery: Delivery
    product: CommerceProduct
    audit: str


@dataclass(frozen=True, slots=True)
class CustomerChanged(Message[Outcome]):
    """A buyer was made, changed or deleted."""

    delivery: Delivery
    customer: CommerceCustomer
    audit: str


@dataclass(frozen=True, slots=True)
class InventoryChanged(Message[Outcome]):
    """A location has another quantity of an item."""

    delivery: Delivery
    level: CommerceInventoryLevel
    audit: str


# --- calls


@dataclass(frozen=True, slots=True)
class RenewToken(Call[RenewalSucceeded | RenewalRefused | RenewalUnreachable]):
    """Ask the platform for a new token with the credentials of the connection of `connected_at`."""

    lane: ClassVar[LaneName] = "short"

    store_id: str
    connected_at: datetime


@dataclass(frozen=True, slots=True)
class ReconcileSubscriptions(Call[SubscriptionsReconciled]):
    """Make the platform's subscriptions those of the catalogue."""

    lane: ClassVar[LaneName] = "platform"

    store_id: str
    connected_at: datetime
    organization_id: str | None = None


@dataclass(frozen=True, slots=True)
class EndSubscriptions(Call[SubscriptionsEnded]):
    """End what the platform delivers for a store that leaves its shop."""

    lane: ClassVar[LaneName] = "platform"

    store_id: str
    connected_at: datetime
    user_id: str


@dataclass(frozen=True, slots=True)
class CheckGrant(Call[RevokeGrant]):
    """Ask the platform whether a grant still lives."""

    lane: ClassVar[LaneName] = "platform"

    store_id: str
    connected_at: datetime


@dataclass(frozen=True, slots=True)
class ReadOrder(Call[OrderRead]):
    """Ask the platform what an order is now."""

    lane: ClassVar[LaneName] = "platform"

    store_id: str
    order_id: int
    organization_id: str | None = None


@dataclass(frozen=True, slots=True)
class RevokeListingSources(Call[None]):
    """Tell the organization's listings that stand on this shop that their source is gone."""

    lane: ClassVar[LaneName] = "short"

    organization_id: str
    shop_domain: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ForgetShops(Call[None]):
    """Let the webhook receiver read these shops' secrets afresh."""

    lane: ClassVar[LaneName] = "short"

    shop_domains: tuple[str, ...]
