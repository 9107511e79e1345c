"""Tables that the database keeps by itself beside a store's orders and products (migrations 33, 35, 50, 56, 61, 63, 64 and 65)."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Final

from tolsey.storage.owners import COUNTED, OF_SHOP
from tolsey.storage.tables import Integer, Personal, bare

SUMS: Final = bare(
    "commerce_sums",
    {"store_id": str, "counted_through": int},
    key=("store_id",),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
SALES: Final = bare(
    "commerce_sales",
    {
        "store_id": str,
        "minutes": Annotated[int, Integer],
        "at": datetime,
        "source": str,
        "currency": str,
        **dict.fromkeys(
            ("orders", "gross_minor", "current_minor", "refunds", "refunded_minor"), int
        ),
    },
    key=("store_id", "minutes", "at", "source", "currency"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
PRODUCT_SALES: Final = bare(
    "commerce_product_sales",
    {
        "store_id": str,
        "span": str,
        "day": date,
        **dict.fromkeys(("product_id", "variant_id"), int),
        "currency": str,
        **dict.fromkeys(("units", "kept_units"), int),
        "sold": Decimal,
    },
    key=("store_id", "span", "day", "product_id", "variant_id", "currency"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
ATTRIBUTION: Final = bare(
    "commerce_attribution",
    {
        "store_id": str,
        "day": date,
        **dict.fromkeys(("source", "medium", "campaign", "currency"), str),
        **dict.fromkeys(("orders", "gross_minor", "current_minor"), int),
    },
    key=("store_id", "day", "source", "medium", "campaign", "currency"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
REFUND_REASONS: Final = bare(
    "commerce_refund_reasons",
    {
        "store_id": str,
        "day": date,
        "is_cancelled": bool,
        **dict.fromkeys(("reason", "currency"), str),
        **dict.fromkeys(("refunds", "amount_minor"), int),
    },
    key=("store_id", "day", "is_cancelled", "reason", "currency"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
COUNTED_TOUCHES: Final = bare(
    "commerce_counted_touches",
    {
        "store_id": str,
        "order_id": int,
        "day": date,
        **dict.fromkeys(("source", "medium", "campaign", "currency"), str),
        **dict.fromkeys(("gross_minor", "current_minor"), int),
    },
    key=("store_id", "order_id"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
COHORTS: Final = bare(
    "commerce_cohorts",
    {
        "store_id": str,
        "month": date,
        "currency": str,
        **dict.fromkeys(("buyers", "returning_buyers", "orders", "spent_minor"), int),
    },
    key=("store_id", "month", "currency"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
BUYERS: Final = bare(
    "commerce_buyers",
    {
        "store_id": str,
        "pseudonym": Annotated[str, Personal.PSEUDONYM],
        "orders": int,
        "refunded_orders": int,
        "first_order_at": datetime | None,
        "last_order_at": datetime | None,
    },
    key=("store_id", "pseudonym"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
SPENDING: Final = bare(
    "commerce_spending",
    {
        "store_id": str,
        "pseudonym": Annotated[str, Personal.PSEUDONYM],
        "currency": str,
        "orders": int,
        "spent_minor": int,
    },
    key=("store_id", "pseudonym", "currency"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
COUNTED_REFUNDS: Final = bare(
    "commerce_counted_refunds",
    {
        "store_id": str,
        "refund_id": int,
        "order_id": int,
        "at": datetime,
        "source": str,
        "currency": str,
        "amount_minor": int,
        "is_cancelled": bool,
        "reason": str,
    },
    key=("store_id", "refund_id"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
STOCK: Final = bare(
    "commerce_stock",
    {
        "store_id": str,
        "product_id": int,
        "place": int,
        "variant_id": int | None,
        "item": int | None,
        "is_listed": bool,
        "said_tracked": bool | None,
        "said_quantity": int | None,
        "tracked": bool | None,
        "available": int | None,
    },
    key=("store_id", "product_id", "place"),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
STOCK_UNREAD: Final = bare(
    "commerce_stock_unread",
    {"store_id": str, "read_through": int},
    key=("store_id",),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
PRODUCT_COUNTS: Final = bare(
    "commerce_product_counts",
    {"store_id": str, "products": int},
    key=("store_id",),
    belongs=OF_SHOP,
    unexported=COUNTED,
)
