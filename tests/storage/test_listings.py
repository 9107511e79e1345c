"""What is read back of listings and their history."""

from datetime import UTC, datetime, timedelta

from tolsey.storage.database import Database
from tolsey.storage.selling import listings, snapshots

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SHOP = "corner.myshopify.com"


async def snapshot(
    database: Database, at: datetime, revenue: int, *, shop: str = SHOP, verified: bool = True
) -> None:
    await database.execute(
        """
        INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain,
            definition, shop_currency, verified, figures, orders, skipped, flags)
        VALUES ('listing_1', $1, $2, 'commerce', $3, 'rv2', 'USD', $4,
            jsonb_build_object('revenue', $5::bigint), 1, '{}', '[]')
        """,
        at,
        at - 30 * DAY,
        shop,
        verified,
        revenue,
    )


async def test_an_unknown_listing_wakes_up_blank(database: Database) -> None:
    found = await listings.load(database, ["listing_1"])

    assert found == {"listing_1": listings.ListingRows()}


async def test_the_history_has_the_last_verified_snapshot_of_each_day(database: Database) -> None:
    midnight = NOON.replace(hour=0)
    await snapshot(database, midnight - timedelta(seconds=1), 1)
    await snapshot(database, midnight, 2)
    await snapshot(database, NOON, 3)
    await snapshot(database, NOON + timedelta(hours=1), 4, verified=False)
    await snapshot(database, NOON + timedelta(hours=2), 5, shop="other.myshopify.com")
    await snapshot(database, NOON - 40 * DAY, 6)

    found = await snapshots.history(database, "listing_1", SHOP, NOON - 30 * DAY)
    assert [day.figures for day in found] == ['{"revenue": 1}', '{"revenue": 3}']


async def test_an_earlier_window_is_the_nearest_that_had_ended_by_then(
    database: Database,
) -> None:
    await snapshot(database, NOON - 30 * DAY + timedelta(hours=1), 1)
    await snapshot(database, NOON - 30 * DAY - timedelta(hours=1), 2)
    await snapshot(database, NOON - 31 * DAY, 3)
    await snapshot(database, NOON - 63 * DAY, 4)

    ends = [NOON - 30 * DAY, NOON - 60 * DAY]
    found = await snapshots.earlier(database, "listing_1", SHOP, "rv2", ends)
    assert [each.figures for each in found] == ['{"revenue": 2}']


async def test_the_same_listing_always_syncs_at_the_same_moment_of_the_hour() -> None:
    waits = {listings.jitter(f"listing_{n}") for n in range(2000)}

    assert waits <= {timedelta(seconds=seconds) for seconds in range(3000)}
    assert len(waits) > 1000
    assert listings.jitter("listing_7") == listings.jitter("listing_7")


async def test_listings_whose_seller_went_away_are_found(database: Database) -> None:
    await database.execute(
        """
        INSERT INTO listings (id, organization_id, title, slug, status, anonymous, included_assets,
            excluded_assets, self_reported, auto_approve_access, financing_offered, created_by,
            created_at, seller_active_at)
        SELECT 'listing_' || n, 'org_1', 't', 's' || n, 'ACTIVE', false, '[]', '[]', '{}', false,
            false, 'usr_1', $1, $1::timestamptz - n * interval '100 days'
        FROM generate_series(0, 2) n
        """,
        NOON,
    )

    assert await listings.left_alone(database, NOON - 180 * DAY) == ["listing_2"]
