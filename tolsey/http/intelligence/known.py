"""What is known of several storefronts or products at once, for routes and agents alike."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from tolsey.actors.storefront import sales
from tolsey.actors.storefront.effects import stock_move, tracked
from tolsey.actors.storefront.registry import shown_state
from tolsey.actors.storefront.sales import SnapshotTimes, TrackedProduct
from tolsey.actors.storefront.velocity import Figure
from tolsey.http.answers.market.intelligence import ComparedAnswer, highlights
from tolsey.http.web.paging import InvalidCursor
from tolsey.storage.database import Database, Row
from tolsey.storage.intelligence import history, registry

MOST_COMPARED: Final = 5


def change_key(row: Row) -> str:
    """Name the place of a change in the list of all."""
    return f"{row['at'].isoformat()}|{row['domain']}|{row['variant_id']}|{row['kind']}"


def change_after(key: str) -> tuple[datetime, str, int, str] | None:
    """Read the place after which a list of changes goes on; None at its beginning. Raises InvalidCursor."""
    if not key:
        return None
    try:
        at, domain, variant, kind = key.split("|")
        return datetime.fromisoformat(at), domain, int(variant), kind
    except ValueError as error:
        raise InvalidCursor from error


async def compared(
    database: Database, domains: Sequence[str], now: datetime
) -> list[ComparedAnswer]:
    """Put the figures of some shops side by side, in the order in which they were named."""
    rows = await registry.load(database, domains)
    found = list[ComparedAnswer]()
    for domain in domains:
        row = rows.get(domain)
        facts = orjson.loads(row.facts) if row is not None else {}
        found.append(
            ComparedAnswer(
                domain=domain,
                state=None if row is None else shown_state(row, now),
                highlights=highlights(facts, row.scanned_at if row is not None else None),
            )
        )
    return found


async def sales_of(
    database: Database, domain: str, products: Sequence[int], now: datetime
) -> dict[int, tuple[TrackedProduct, Figure]]:
    """Tell how fast some products of a shop sell."""
    since = now - timedelta(days=history.LONGEST_DAYS)
    seen_at = SnapshotTimes(await history.snapshot_times(database, domain, since))
    rows = await history.stock_changes(database, domain, since, products)
    moves = dict[int, list[sales.StockMove]]()
    for row in rows:
        moves.setdefault(row["product_id"], []).append(stock_move(row))
    return {
        one.id: (one, sales.of_product(one, seen_at, moves.get(one.id, ())))
        for one in map(tracked, await history.stocked(database, domain, products))
    }
