"""The index of the market says what listings and their proofs say."""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson
import pytest

from tolsey.actors.listing.ranges import range_of
from tolsey.actors.listing.verification.transitions import Badge
from tolsey.http.selling.attestation import badge, verification_of
from tolsey.storage.database import Database
from tolsey.storage.selling import listings, market
from tolsey.storage.selling.market import MarketSearch

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
AMOUNTS = (-5, 0, 99_999, 100_000, 149_999, 150_000, 1_234_567, 7_499_999, 7_500_000, 10**14)


async def sell(database: Database, id: str, **given: Any) -> None:
    row = {"title": "A shop", "asking_price": 100, "currency": "USD", "status": "ACTIVE"} | given
    await database.execute(
        """
        INSERT INTO listings (id, organization_id, slug, title, teaser, anonymous, category, country, asking_price,
            currency, included_assets, excluded_assets, self_reported, auto_approve_access, financing_offered, status,
            created_by, created_at, seller_active_at)
        VALUES ($1, 'org_1', $1, $2, $3, false, $4, $5, $6, $7, '[]', '[]', '{}', false, false, $8, 'usr_1', $9, $9)
        """,
        id,
        row["title"],
        row.get("teaser"),
        row.get("category"),
        row.get("country"),
        row["asking_price"],
        row["currency"],
        row["status"],
        NOON,
    )


async def prove(database: Database, id: str, revenue: int, *, shown: str = "exact") -> None:
    await database.execute(
        "INSERT INTO revenue_snapshots (listing_id, window_end, window_start, source, shop_domain, definition,"
        " shop_currency, verified, figures, orders, skipped, flags) VALUES"
        " ($1, $2, $2, 'commerce', 's.example', 'rv2', 'USD', true, $3::text::jsonb, 1, '{}', '[]')",
        id,
        NOON,
        orjson.dumps(
            {"USD": {"revenue30d": revenue, "mrr": 0, "annualised": 12 * revenue, "orders": 1}}
        ).decode(),
    )
    await database.execute(
        "INSERT INTO listing_verifications (listing_id, provider, state, generation, shop_domain, keeps_badge, since,"
        " accepted_at, last_ok_at, verified_at) VALUES ($1, 'commerce', 'verified', 1, 's.example', false, $2, $2, $2, $2)",
        id,
        NOON,
    )
    await database.execute(
        "INSERT INTO listing_visibility VALUES ($1, jsonb_build_object('revenue30d', $2::text))",
        id,
        shown,
    )


async def found(database: Database, at: datetime = NOON, **wanted: Any) -> list[str]:
    hits = await market.search(database, MarketSearch(**wanted), after=None, at=at, limit=50)
    return [hit.view.listing.id for hit in hits]


@pytest.mark.parametrize("currency", ["USD", "JPY", "KWD", "CLF"])
async def test_ranges_in_the_index_are_those_that_are_shown(
    database: Database, currency: str
) -> None:
    random = Random(7)  # noqa: S311 - no secret
    amounts = [*AMOUNTS, *(int(10 ** random.uniform(0, 13)) for _ in range(200))]
    rows = await database.fetch(
        "SELECT amount_range(amount, $2) AS found FROM unnest($1::bigint[]) AS amount",
        amounts,
        currency,
    )
    shown = [range_of("revenue30d", amount, currency) for amount in amounts]
    assert [tuple(row["found"]) for row in rows] == [(one.low, one.high) for one in shown]


async def test_words_are_found_whole_or_begun_without_case_and_accents(database: Database) -> None:
    await sell(database, "lst_1", title="Café Été", teaser="Bougies à la main")
    await sell(database, "lst_2", title="Candles", category="Home & Garden")
    await sell(database, "lst_3", title="Candles", status="DRAFT")
    assert await found(database, words="cafe ETE") == ["lst_1"]
    assert await found(database, words="boug") == ["lst_1"]
    assert await found(database, words="candle") == ["lst_2"]
    assert await found(database, words="garden candles") == ["lst_2"]
    assert await found(database, words="candles bougies") == []
    assert await found(database, words="'!&|:*()") == ["lst_2", "lst_1"]
    assert await found(database, category="HOME & garden") == ["lst_2"]


async def test_a_listing_leaves_the_index_with_the_market(database: Database) -> None:
    await sell(database, "lst_1")
    assert await found(database) == ["lst_1"]
    await database.execute("UPDATE listings SET status = 'WITHDRAWN'")
    assert await found(database) == []
    await database.execute("UPDATE listings SET status = 'SOLD'")
    assert await found(database, status="SOLD") == ["lst_1"]
    await database.execute("UPDATE listings SET asking_price = NULL")
    assert await found(database) == []


async def test_a_revenue_that_is_not_shown_is_not_found_by(database: Database) -> None:
    for id, shown in (("lst_1", "exact"), ("lst_2", "bucket"), ("lst_3", "hidden")):
        await sell(database, id)
        await prove(database, id, 1_234_567, shown=shown)
    usd: dict[str, Any] = {"currency": "USD"}
    assert await found(database, **usd, least_revenue=1_234_567) == ["lst_1"]
    assert await found(database, **usd, least_revenue=1_000_000) == ["lst_2", "lst_1"]
    # The range is up to 15,000: a closer look at the upper end must not tell more.
    assert await found(database, **usd, most_revenue=1_300_000) == ["lst_1"]
    assert await found(database, **usd, most_revenue=1_500_000) == ["lst_2", "lst_1"]
    assert await found(database, **usd, order="revenue_desc") == ["lst_1", "lst_2"]
    assert await found(database, NOON + 24 * 7 * HOUR, **usd, least_revenue=0) == []
    assert await found(database, currency="EUR", least_revenue=0) == []
    assert len(await found(database, **usd, verified=True)) == 3


MACHINES = (
    "none",
    "pending",
    "verified",
    "stale",
    "needs_permission",
    "token_unavailable",
    "failed",
)


async def test_what_the_index_calls_verified_has_the_badge_whenever_one_looks(
    database: Database,
) -> None:
    random = Random(11)  # noqa: S311 - no secret
    for n in range(120):
        id = f"lst_{n:03}"
        await sell(database, id)
        await prove(database, id, 500_000)
        good = NOON - random.choice((1, 20, 30, 100, 160, 200)) * HOUR
        await database.execute(
            "UPDATE listing_verifications SET state = $2, keeps_badge = $3, since = $4, accepted_at = $4,"
            " last_ok_at = $5, verified_at = $5 WHERE listing_id = $1",
            id,
            random.choice((*MACHINES, "suspended")),
            random.random() < 0.5,
            NOON - random.choice((1, 20, 30)) * HOUR,
            good,
        )
    for at in (NOON, NOON + 5 * HOUR, NOON + 30 * HOUR):
        green, shown = set[str](), set[str]()
        for n in range(120):
            view = await listings.find(database, f"lst_{n:03}")
            assert view is not None
            if badge(view, at) is Badge.GREEN:
                green.add(view.listing.id)
            if verification_of(view, at).revenue30d is not None:
                shown.add(view.listing.id)
        hits = await market.search(
            database, MarketSearch(verified=True), after=None, at=at, limit=200
        )
        assert {hit.view.listing.id for hit in hits} == green
        asked = MarketSearch(currency="USD", least_revenue=0)
        hits = await market.search(database, asked, after=None, at=at, limit=200)
        assert {hit.view.listing.id for hit in hits} == shown
