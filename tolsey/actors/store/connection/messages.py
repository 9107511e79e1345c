"""What a store can be asked about its connection and token, and the calls that these want made."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from tolsey.actors.store.messages import Outcome
from tolsey.runtime.messages import Call, LaneName, Message
from tolsey.storage.records.commerce.connection import ShopProfile, TokenKind


class TokenState(StrEnum):
    """Whether calls to the shop can be made (rules/accounts#stores)."""

    OK = "ok"
    UNAVAILABLE = "token_unavailable"
    NEVER = "never"


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
