"""Stores and their connections, as their members see them."""

from typing import Any, Self

from pydantic import ConfigDict, Field

from tolsey.actors.store.connection.messages import ConnectionView, TokenState
from tolsey.http.answers.base import ApiAnswer, Timestamp
from tolsey.storage.records.commerce.connection import PROVIDER, TokenKind
from tolsey.storage.records.commerce.shops import ConnectionEnding, ConnectionPeriod


class StoreAnswer(ApiAnswer):
    """A store of an organization."""

    id: str
    organization_id: str
    name: str
    created_at: Timestamp


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
