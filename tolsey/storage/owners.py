"""Whose the rows of a table are, and what becomes of them when their owner goes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class RowOwner(StrEnum):
    """Of whom or what rows may be; each goes one day, and its rows with it."""

    USER = "user"
    ORGANIZATION = "organization"
    STORE = "store"
    """A store, whatever shop it is connected to."""
    SHOP = "shop"
    """One shop of one store: a `store_id` of its tables is a `ShopKey`."""
    BUYER = "buyer"
    """A customer of a shop, by the pseudonym that the store knows them by."""


NAMED_BY: Final = {
    RowOwner.USER: "user_id",
    RowOwner.ORGANIZATION: "organization_id",
    RowOwner.STORE: "store_id",
    RowOwner.SHOP: "store_id",
}
"""The column with an owner's id, unless a table has another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongs:
    """Whose rows are: `by` names the column with the owner's id, or is a condition on `$1`.

    A buyer's are those with the pseudonym `$1` under the shop's key `$2`. When the owner goes, so do the
    rows; or only what `emptied` says of columns, each with the SQL of what stands there then; or they stay,
    for the reason in `stays`.
    """

    to: RowOwner
    by: str = ""
    emptied: Mapping[str, str] = field(default_factory=dict)
    stays: str = ""

    @property
    def condition(self) -> str:
        """Which rows are the owner's."""
        by = self.by or NAMED_BY[self.to]
        if "$1" in by:
            return by
        return f"{by} = $1 AND store_id = $2" if self.to == RowOwner.BUYER else f"{by} = $1"


OF_USER: Final = Belongs(to=RowOwner.USER)
OF_ORGANIZATION: Final = Belongs(to=RowOwner.ORGANIZATION)
OF_STORE: Final = Belongs(to=RowOwner.STORE)
OF_SHOP: Final = Belongs(to=RowOwner.SHOP)

ADDRESS_OF_USER: Final = "(SELECT email FROM users WHERE id = $1)"
"""What was written to somebody knows them by their address, as long as the account is there."""

MONEY: Final = "Evidence of money, kept for seven years."
ID_ALONE: Final = "It names an id that leads to nobody once the user's row is empty."
COUNTED: Final = "Counted from the orders and products, which an export has."
EVIDENCE_OF_USER: Final = Belongs(to=RowOwner.USER, stays=ID_ALONE)
EVIDENCE_OF_ORGANIZATION: Final = Belongs(to=RowOwner.ORGANIZATION, stays=MONEY)
ORDERS_OF_BUYER: Final = (
    "SELECT order_id FROM commerce_orders WHERE customer_hash = $1 AND store_id = $2"
)
WITH_ORDERS_OF_BUYER: Final = Belongs(
    to=RowOwner.BUYER,
    by=f"order_id IN ({ORDERS_OF_BUYER}) AND store_id = $2",
    stays="It names an order, of which nobody can tell any more who bought it.",
)
OF_LISTINGS: Final = Belongs(
    to=RowOwner.ORGANIZATION,
    by="listing_id IN (SELECT id FROM listings WHERE organization_id = $1)",
)
OF_LISTINGS_OF_STORE: Final = Belongs(
    to=RowOwner.STORE, by="listing_id IN (SELECT id FROM listings WHERE store_id = $1)"
)
