"""A store's grant on its commerce platform, as it is remembered and as it is kept."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final

from tolsey.storage.owners import OF_STORE
from tolsey.storage.tables import Jsonb, Sealed, stored

PROVIDER = "commerce"


class ConnectionStatus(StrEnum):
    """Whether the grant can be used (rules/shops#connecting)."""

    PENDING = "pending"
    ACTIVE = "active"
    ERROR = "error"
    REVOKED = "revoked"


DISCONNECTED = "disconnected"
"""Written by the merchant's DELETE; it is in no enumeration (rules/shops#connecting)."""


class TokenKind(StrEnum):
    """How a connection has its token (rules/shops#tokens: `tokenKind`)."""

    GRANT = "grant"
    """Minted with the app's id and secret, and renewed before it ends."""
    STATIC = "static"
    """Pasted by the merchant, of an app that was made in the shop; nothing renews it."""


STATIC_UNTIL: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""The end of a static token: none that anybody knows. The release before hands it out as any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The merchant's custom app, as far as we may remember it; key material is sealed text.

    An app whose token is static has no `client_id`.
    Empty `scopes` were never told to us: what the grant allows is unknown. `former_secret` is the
    client secret that a newer one of the same app replaced: the platform signs with both for a
    while. `refused_at` says since when the platform refuses to renew the token.
    """

    store_id: str
    shop_domain: str
    status: str
    connected_at: datetime
    client_id: str | None = None
    access_token: str | None = field(default=None, metadata={"secret": True}, repr=False)
    token_expires_at: datetime | None = None
    client_secret: str | None = field(default=None, metadata={"secret": True}, repr=False)
    former_secret: str | None = field(default=None, metadata={"secret": True}, repr=False)
    scopes: tuple[str, ...] = ()
    scopes_at: datetime | None = None
    refused_at: datetime | None = None
    uninstalled_at: datetime | None = None

    @property
    def token_kind(self) -> TokenKind | None:
        """How the connection has its token; None when it has none."""
        if self.access_token is None:
            return None
        return TokenKind.STATIC if self.client_id is None else TokenKind.GRANT

    def row(self) -> "ConnectionRow":
        """Make the row that says all of it; what is forgotten is absent from its metadata."""
        metadata: dict[str, object] = {"scopes": self.scopes}
        if self.scopes_at is not None:
            metadata["scopesAt"] = self.scopes_at.isoformat()
        if self.client_secret is not None:
            metadata["clientSecretEncrypted"] = self.client_secret
        if self.former_secret is not None:
            metadata["formerClientSecretEncrypted"] = self.former_secret
        if self.uninstalled_at is not None:
            metadata["uninstalledAt"] = self.uninstalled_at.isoformat()
        return ConnectionRow(
            store_id=self.store_id,
            provider=PROVIDER,
            shop_domain=self.shop_domain,
            status=self.status,
            client_id=self.client_id,
            access_token=self.access_token,
            token_expires_at=self.token_expires_at,
            metadata=json.dumps(metadata),
            refused_at=self.refused_at,
            connected_at=self.connected_at,
            uninstalled_at=self.uninstalled_at,
        )


@stored(
    "integration_connections",
    key=("store_id", "provider"),
    besides={
        "secret_hash": Annotated[str | None, Sealed],
        "mcp_key_hash": Annotated[str | None, Sealed],
        "pairing_code": Annotated[str | None, Sealed],
        "created_at": datetime,
    },
    belongs=OF_STORE,
    unexported="An export shows it as its merchant may see it, as `integrations`.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRow:
    """A row of integration_connections; `metadata` is JSON text with the sealed client secret."""

    store_id: str
    provider: str
    shop_domain: str
    status: str
    client_id: str | None
    access_token: str | None = field(metadata={"secret": True}, repr=False)
    token_expires_at: datetime | None
    metadata: Annotated[str, Jsonb] = field(metadata={"secret": True}, repr=False)
    refused_at: datetime | None
    connected_at: datetime
    uninstalled_at: datetime | None


@stored(
    "store_shops",
    key=("store_id",),
    belongs=OF_STORE,
    export="shops",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShopProfile:
    """What the platform says about a connected shop; a row of store_shops.

    `plan_name` is the platform's internal word (`partner_test`, `affiliate` mark test shops).
    `custom_domains`, `subscriptions` and `bulk_operation` are JSON text: hosts, what became of
    the subscription to each topic, and the last bulk export that ended.
    """

    store_id: str
    shop_domain: str
    facts_at: datetime
    shop_id: int | None = None
    name: str | None = None
    plan_name: str | None = None
    plan_display_name: str | None = None
    partner_development: bool | None = None
    currency: str | None = None
    primary_domain: str | None = None
    timezone: str | None = None
    country: str | None = None
    password_enabled: bool | None = None
    setup_required: bool | None = None
    shop_created_at: datetime | None = None
    theme_id: int | None = None
    theme_name: str | None = None
    theme_at: datetime | None = None
    custom_domains: Annotated[str, Jsonb] = "[]"
    subscriptions: Annotated[str, Jsonb] = "{}"
    subscribed_at: datetime | None = None
    bulk_operation: Annotated[str | None, Jsonb] = None
    bulk_at: datetime | None = None
