"""Which shops a store is and was connected to, and what its rows of each are kept under."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType

from tolsey.storage.owners import OF_STORE
from tolsey.storage.tables import stored

ShopKey = NewType("ShopKey", str)
"""What the rows of one shop of one store are kept under (rules/shops#shops-of-a-store; migration 0047).

`store_id` of each table of a shop's things is such a key: the store's own id for its first shop,
`store@shop` for each later one. A statement that reads those tables asks for it by this type, so
that none lists another shop's things for having only a store's id at hand.
"""


def later_key(store_id: str, shop_domain: str) -> ShopKey:
    """Make the key of a shop that is not a store's first."""
    return ShopKey(f"{store_id}@{shop_domain}")


@stored(
    "shops_of_stores",
    key=("store_id", "shop_domain"),
    replaces=("shop_key", "sealed_salt"),
    belongs=OF_STORE,
    export="shopsOfStore",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ShopOfStore:
    """A shop that a store is or was connected to, with the salt of its buyers' pseudonyms.

    The salt of a store's first shop is the store's own: that of `stores`. Without one its buyers are
    known by no pseudonym.
    """

    store_id: str
    shop_domain: str
    shop_key: str
    sealed_salt: str | None = field(default=None, metadata={"secret": True}, repr=False)
    first_connected_at: datetime


class ConnectionEnding(StrEnum):
    """How a connection ended."""

    REPLACED = "replaced"
    """The store was connected again, to the same shop or another."""
    DISCONNECTED = "disconnected"
    UNINSTALLED = "uninstalled"


@stored(
    "connection_history",
    key=("store_id", "connected_at"),
    replaces=("ended_at", "ending"),
    when="connection_history.ended_at IS NULL",
    belongs=OF_STORE,
    unexported="An export shows it as `connections`.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionPeriod:
    """When a store was connected to a shop, and how that ended; not at all while it lasts."""

    store_id: str
    connected_at: datetime
    shop_domain: str
    ended_at: datetime | None = None
    ending: str | None = None
