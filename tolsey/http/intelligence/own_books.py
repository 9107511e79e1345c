"""The store itself beside its competitors: told by its own books, so that its figures have no interval."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from tolsey.http.web.context import service
from tolsey.storage.commerce.connections import shop_key_of
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.money.currencies import in_units
from tolsey.storage.reports import products, sales
from tolsey.storage.reports import store as stores

DAYS: Final = 30


async def own_facts(store: StoreRow, at: datetime) -> Mapping[str, Any] | None:
    """Tell of a store the figures that its competitors are compared by; None while it has no shop."""
    database, reports = service().database, service().reports.of(store.organization_id)
    shop = await shop_key_of(database, store.id)
    summary = await stores.summary(reports, store.id, shop, products=True, orders=False, since=at)
    if summary is None or summary["shop_domain"] is None:
        return None
    begun = at - timedelta(days=DAYS)
    best = await products.best_sellers(reports, shop, begun.date(), at.date(), by="units", limit=1)
    sold = await sales.report(reports, shop, begun, at, group_by="none")
    currency = summary["currency"]
    # What is sold in another currency than the shop's is another shop's figure to a buyer.
    taken = sum(row["current_minor"] for row in sold if row["currency"] == currency)
    orders = f"your orders of {DAYS} days"
    told = {
        "best_seller_velocity": (max((row["units"] for row in best), default=0) / DAYS, orders),
        "monthly_revenue": (_units(taken, currency), orders),
        "median_price": (await products.median_price(reports, shop), "your newest products"),
        "product_count": (summary["products"], "your products"),
        "currency": (currency, "your shop"),
    }
    return {
        name: {"value": value, "provenance": "observed", "source": source}
        for name, (value, source) in told.items()
    }


def _units(minor: int, currency: str | None) -> Decimal | None:
    return None if currency is None else in_units(minor, currency)
