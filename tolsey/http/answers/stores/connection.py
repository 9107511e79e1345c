"""Stores and their connections, as their members see them."""

from typing import Any, Final, Literal, Self

from pydantic import ConfigDict, Field

from tolsey.actors.store.connection.messages import ConnectionView, TokenState
from tolsey.http.answers.base import ApiAnswer, Omittable, Timestamp
from tolsey.storage.commerce.order_imports import KnownOrders
from tolsey.storage.records.commerce.connection import PROVIDER, TokenKind
from tolsey.storage.records.commerce.imports import ImportState, OrderImport
from tolsey.storage.records.commerce.shops import ConnectionEnding, ConnectionPeriod

IMPORT_DETAILS: Final = {
    "token_unavailable": "The shop rejected the app. Connect the store again to restart the import.",
    "disconnected": "The store was disconnected from this shop. Connect it again.",
    "platform_denied": "Shopify didn't allow the app to export orders. Start the import again, or contact"
    " support.",
    "export_failed": "Shopify failed to complete the export three times. Start the import again later.",
    "commerce_unreachable": "Shopify was unreachable for too long. Start the import again; it continues from where"
    " it stopped.",
}
"""Why an import stands, by its code, and what to do."""


class StoreAnswer(ApiAnswer):
    """A store of an organization."""

    id: str
    organization_id: str
    name: str
    created_at: Timestamp


class PreviewAnswer(ApiAnswer):
    """Where a store's storefront can be looked at, and until when."""

    url: str
    expires_at: Timestamp


class ConnectionAnswer(ApiAnswer):
    """A store's connection, without any secret; one that never was has no status."""

    provider: str
    shop_domain: str | None
    status: str | None
    scopes: list[str]
    scopes_known: bool
    token_state: TokenState
    token_kind: TokenKind | None
    connected_at: Timestamp | None
    uninstalled_at: Timestamp | None

    @classmethod
    def of(cls, view: ConnectionView | None) -> Self:
        """Show what the store's actor says of its connection."""
        return cls(
            provider=PROVIDER,
            shop_domain=view.shop_domain if view else None,
            status=view.status if view else None,
            scopes=list(view.scopes) if view else [],
            scopes_known=bool(view and view.scopes_known),
            token_state=view.token_state if view else TokenState.NEVER,
            token_kind=view.token_kind if view else None,
            connected_at=view.connected_at if view else None,
            uninstalled_at=view.uninstalled_at if view else None,
        )


class OrderImportAnswer(ApiAnswer):
    """The last import of what a shop sold before it was connected; `detail` says what to do."""

    state: ImportState
    reach: Literal["sixty_days", "all"]
    since: Timestamp | None
    orders: int
    expected: int | None
    unread: int
    begun_at: Timestamp
    changed_at: Timestamp
    finished_at: Timestamp | None
    code: Omittable[str] = None
    detail: Omittable[str] = None

    @classmethod
    def of(cls, last: OrderImport) -> Self:
        """Show how far an import is."""
        return cls.read(
            last,
            reach="all" if last.since is None else "sixty_days",
            detail=None if last.code is None else IMPORT_DETAILS.get(last.code),
        )


class OrderHistoryAnswer(ApiAnswer):
    """From when on every order of a store is known, and how the import of earlier ones is.

    With `knowsAll` none is missing, and `knownSince` is when the shop was made, if it told.
    """

    known_since: Timestamp | None
    knows_all: bool
    order_import: OrderImportAnswer | None

    @classmethod
    def of(cls, known: KnownOrders | None) -> Self:
        """Show what is known of orders; nothing of a store that was never connected."""
        last = known and known.order_import
        return cls(
            known_since=known.since if known else None,
            knows_all=bool(known and known.knows_all),
            order_import=OrderImportAnswer.of(last) if last else None,
        )


class ConnectionPeriodAnswer(ApiAnswer):
    """When a store was connected to which shop; one that lasts has no end."""

    shop_domain: str
    connected_at: Timestamp
    ended_at: Timestamp | None
    ending: ConnectionEnding | None

    @classmethod
    def of(cls, period: ConnectionPeriod) -> Self:
        """Show what the history has of a connection."""
        ending = None if period.ending is None else ConnectionEnding(period.ending)
        return cls.read(period, ending=ending)


class ExportedRowsAnswer(ApiAnswer):
    """Under each further name the rows of a table, as they are kept."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, list[dict[str, Any]]] = Field(init=False)


class StoreExportAnswer(ExportedRowsAnswer):
    """All that is kept about a store."""

    store: StoreAnswer
    integrations: list[ConnectionAnswer]
    connections: list[ConnectionPeriodAnswer]


class ConnectedAnswer(ApiAnswer):
    """The connection after a change."""

    connection: ConnectionAnswer
