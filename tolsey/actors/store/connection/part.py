"""Which organization's a store is, its shop, the grant and its token."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import structlog

from tolsey.actors.store.connection import connecting, tokens
from tolsey.actors.store.connection.messages import (
    Connect,
    Disconnect,
    LeaveShop,
    ReadConnection,
    RenewalRefused,
    RenewalSucceeded,
    RenewalUnreachable,
    RevokeGrant,
    SubscriptionsEnded,
    SubscriptionsReconciled,
    UseToken,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, handles, on
from tolsey.runtime.decision import Decision
from tolsey.storage.commerce import connections
from tolsey.storage.database import Database

log = structlog.get_logger()


class ShopConnection(KindPart[StoreState]):
    """The connection to a shop; `renewing_since` is in memory alone."""

    owns: ClassVar[tuple[str, ...]] = (
        "organization_id",
        "connection",
        "shop",
        "shops",
        "renewing_since",
    )
    decides = (
        on(Connect, connecting.connect),
        on(Disconnect, connecting.disconnect),
        on(LeaveShop, connecting.leave),
        on(SubscriptionsEnded, connecting.left),
        on(ReadConnection, connecting.read),
        on(RevokeGrant, connecting.uninstall),
        on(SubscriptionsReconciled, connecting.subscribed),
        on(UseToken, tokens.use),
        on(RenewalSucceeded, tokens.renewed),
        on(RenewalUnreachable, tokens.unreachable),
    )

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read connections, shops, and which organizations' the stores are."""
        found = await connections.load(self._database, keys)
        return {
            key: {
                "organization_id": rows.organization_id,
                "connection": rows.connection,
                "shop": rows.shop,
                "shops": rows.shops,
            }
            for key, rows in found.items()
        }

    def changes(self, old: StoreState, new: StoreState) -> Iterable[Any]:
        """List the connection and the shops, each when it changed."""
        if new.connection is not None and new.connection != old.connection:
            yield new.connection.row()
        if new.shop is not None and new.shop != old.shop:
            yield new.shop
        if new.shops is not old.shops:
            yield from (one for one in new.shops if one not in old.shops)

    @handles(RenewalRefused)
    def renewal_refused(
        self, state: StoreState, message: RenewalRefused
    ) -> Decision[StoreState, None]:
        """Remember that the platform refuses; the log hears of it once per episode."""
        decision = tokens.refused(state, message)
        if decision.records:
            log.warning("refresh_rejected", store_id=state.store_id, code=message.code)
        return decision
