"""Decisions about which shops a store was connected to, and when."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from tolsey.actors.store.state import StoreState
from tolsey.storage.records.commerce.connection import DISCONNECTED, Connection, ConnectionStatus
from tolsey.storage.records.commerce.shops import (
    ConnectionEnding,
    ConnectionPeriod,
    ShopOfStore,
    later_key,
)

DESTROYED: Final = ""
"""What stands in place of a salt that is gone for good."""


def connected(
    state: StoreState, shop_domain: str, sealed_salt: str, at: datetime
) -> tuple[ShopOfStore, ...]:
    """Tell the shops of a store that is connected to one of them now; a known one keeps its key.

    One salt for each store and shop (rules/shops#shops-of-a-store): that of a shop which has one stays.
    """
    shops, former = state.shops, state.connection
    if not shops:
        # What there is of a shop that a process of the release before connected is kept under the
        # store's id: that shop is the first, and else the one that is connected now.
        first = shop_domain if former is None else former.shop_domain
        begun_at = at if former is None else former.connected_at
        shops = (
            ShopOfStore(
                store_id=state.store_id,
                shop_domain=first,
                shop_key=state.store_id,
                first_connected_at=begun_at,
            ),
        )
    known = next((one for one in shops if one.shop_domain == shop_domain), None)
    if known is None:
        added = ShopOfStore(
            store_id=state.store_id,
            shop_domain=shop_domain,
            shop_key=later_key(state.store_id, shop_domain),
            sealed_salt=sealed_salt or None,
            first_connected_at=at,
        )
        return (*shops, added)
    is_first = known.shop_key == state.store_id
    if known.sealed_salt != DESTROYED and (is_first or known.sealed_salt is not None):
        return shops
    # A shop that was forgotten and comes back is a new one: its salt has a row of its own.
    salted = replace(
        known,
        shop_key=later_key(state.store_id, shop_domain),
        sealed_salt=sealed_salt or None,
    )
    return tuple(salted if one is known else one for one in shops)


def begun(connection: Connection) -> ConnectionPeriod:
    """Make the row of a connection that lasts."""
    return ConnectionPeriod(
        store_id=connection.store_id,
        connected_at=connection.connected_at,
        shop_domain=connection.shop_domain,
    )


def ended(
    connection: Connection | None, at: datetime, ending: ConnectionEnding
) -> tuple[ConnectionPeriod, ...]:
    """Make the row of a connection that ends now; none where there was none, or it ended before."""
    if connection is None or connection.status in {ConnectionStatus.REVOKED, DISCONNECTED}:
        return ()
    return (replace(begun(connection), ended_at=at, ending=ending),)
