"""Providers of visits, followers and advertisements, over HTTP in their own forms."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from tests.http.clients.storefront.web import SHOP
from tests.http.people import NOON
from tolsey.actors.storefront.observed import Judged, Provenance, ScanVerdict
from tolsey.http.clients.storefront.facts import Found
from tolsey.http.clients.storefront.providers import VARIABLES, ProviderAccount, Providers
from tolsey.sandbox.providers import IntelligenceProviders

CHANNEL: Mapping[str, str] = {"youtube": "https://www.youtube.com/@shop"}


class Asking:
    """Providers of ours, those they ask, and the time between."""

    def __init__(self, others: IntelligenceProviders, given: Mapping[str, str]) -> None:
        self.others = others
        self.now = NOON
        accounts = {
            name: ProviderAccount(url=given[f"{name}_url"], key=given.get(f"{name}_api_key"))
            for name in VARIABLES
        }
        self.providers = Providers(accounts, self.clock)

    def clock(self) -> datetime:
        return self.now

    async def told(
        self, profiles: Mapping[str, str] = CHANNEL, *, is_shop: bool = True
    ) -> Mapping[str, Found]:
        return await self.providers.told(SHOP, profiles, is_shop=is_shop)

    async def judged(self, category: str) -> Judged:
        return (await self.told())[category][1]


@asynccontextmanager
async def asking(**keys: str | None) -> AsyncIterator[Asking]:
    others = IntelligenceProviders(
        visits={SHOP: 48_200},
        followers={"@shop": 1_930, "@shy": None},
        captions={SHOP: [SHOP, f"www.{SHOP}/kettles", "SHOP.EXAMPLE", "shop.example.evil.example"]},
    )
    async with others.serve() as given:
        asks = Asking(others, {**given, **keys})  # type: ignore[dict-item]  # None: no key is set
        try:
            yield asks
        finally:
            await asks.providers.close()


async def test_each_category_is_told_by_its_provider_with_where_it_is_from() -> None:
    async with asking() as asks:
        told = await asks.told()
    facts = {name: fact for found, _ in told.values() for name, fact in found.items()}
    assert {name: fact.value for name, fact in facts.items()} == {
        "monthly_visits": 48_200,
        "profiles": CHANNEL,
        "followers": {"youtube": 1_930},
        "active_ads": 3,  # one leads to another site that begins with the name
    }
    assert facts["monthly_visits"].provenance is Provenance.ESTIMATED
    assert facts["monthly_visits"].source == "Similarweb, 2036-05, worldwide, desktop and mobile"
    assert facts["followers"].provenance is Provenance.OBSERVED
    assert {judged.verdict for _, judged in told.values()} == {ScanVerdict.OK}


@pytest.mark.parametrize("category", sorted(VARIABLES))
async def test_a_provider_without_a_key_is_not_asked_and_its_variable_is_named(
    category: str,
) -> None:
    async with asking(**{f"{category}_api_key": None}) as asks:
        judged = await asks.judged(category)
        assert len(asks.others.asked) == 2
    variable = VARIABLES[category]
    unset = ScanVerdict.PARTIAL if category == "social" else ScanVerdict.MISSING_CREDENTIAL
    assert (judged.verdict, judged.env) == (unset, variable)
    assert judged.reason == f"Set {variable} to read this."


@pytest.mark.parametrize("category", sorted(VARIABLES))
async def test_a_key_that_is_refused_is_named_by_its_variable(category: str) -> None:
    async with asking(**{f"{category}_api_key": "another"}) as asks:
        judged = await asks.judged(category)
    refused = ScanVerdict.PARTIAL if category == "social" else ScanVerdict.FAILED
    assert (judged.verdict, judged.env) == (refused, VARIABLES[category])
    assert "another" not in judged.reason


@pytest.mark.parametrize(
    ("answer", "verdict", "reason"),
    [
        ((404, b"{}"), ScanVerdict.EMPTY, "knows nothing of this site"),
        ((429, b"{}"), ScanVerdict.FAILED, "wants fewer questions for now"),
        ((502, b"<html>"), ScanVerdict.FAILED, "answered 502"),
        ((302, b""), ScanVerdict.FAILED, "answered 302"),
        ((200, b"[1]"), ScanVerdict.FAILED, "cannot be read"),
        ((200, b"not JSON"), ScanVerdict.FAILED, "cannot be read"),
    ],
)
async def test_whatever_a_provider_answers_its_category_ends_with_a_verdict(
    answer: tuple[int, bytes], verdict: ScanVerdict, reason: str
) -> None:
    async with asking() as asks:
        asks.others.failing = answer
        judged = await asks.judged("traffic")
        assert (judged.verdict, reason in judged.reason) == (verdict, True)
        asks.others.failing = None
        # What failed is asked again the next time.
        assert (await asks.judged("traffic")).verdict is ScanVerdict.OK


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"data":7,"items":{}}',
        b'{"data":[null,{"visits":null},{"visits":true},{"visits":-1},{"visits":"9"}],"items":[]}',
        b'{"data":[[],{"ad_creative_link_captions":"x"},{"ad_creative_link_captions":[1]}],"items":[7]}',
        b'{"data":[],"items":[{"statistics":{"subscriberCount":"many"}}]}',
        b'{"data":[],"items":[{"statistics":{"subscriberCount":-4}}]}',
    ],
)
async def test_an_answer_of_another_form_gives_no_figure(body: bytes) -> None:
    async with asking() as asks:
        asks.others.failing = 200, body
        told = await asks.told()
    assert "monthly_visits" not in told["traffic"][0]
    assert "followers" not in told["social"][0]
    assert told["ads"][0]["active_ads"].value == 0


async def test_a_provider_that_is_away_leaves_its_category_failed() -> None:
    providers = Providers(
        {"traffic": ProviderAccount(url="http://127.0.0.1:1", key="k")}, lambda: NOON
    )
    told = await providers.told(SHOP, {}, is_shop=True)
    await providers.close()
    assert told["traffic"][1].reason == "Similarweb could not be reached."


async def test_a_shop_is_asked_for_once_a_day_and_where_there_is_none_nobody_is() -> None:
    async with asking() as asks:
        nothing = await asks.told({}, is_shop=False)
        assert {judged.verdict for _, judged in nothing.values()} == {ScanVerdict.EMPTY}
        assert asks.others.asked == []
        for _ in range(3):
            await asks.told()
        assert len(asks.others.asked) == 3
        asks.now += timedelta(days=1)
        await asks.told()
        assert len(asks.others.asked) == 6


@pytest.mark.parametrize(
    ("profiles", "reason"),
    [
        ({"youtube": "https://youtube.com/@shy"}, "does not show how many"),
        ({"youtube": "https://youtube.com/@nobody"}, "does not show how many"),
        ({"youtube": "https://youtube.com/watch?v=1"}, "of YouTube alone"),
        ({"instagram": "https://instagram.com/shop"}, "it links to instagram"),
        ({**CHANNEL, "instagram": "https://instagram.com/shop"}, "not of instagram"),
    ],
)
async def test_what_followers_cannot_be_told_of_is_said(
    profiles: dict[str, str], reason: str
) -> None:
    async with asking() as asks:
        facts, judged = (await asks.told(profiles))["social"]
    assert judged.verdict is ScanVerdict.PARTIAL
    assert reason in judged.reason
    assert facts["profiles"].value == profiles


@pytest.mark.parametrize(
    ("link", "asked"),
    [
        ("https://youtube.com/@shop/videos", {"forHandle": "@shop"}),
        ("https://www.youtube.com/channel/UC12", {"id": "UC12"}),
        ("https://www.youtube.com/user/shop", {"forUsername": "shop"}),
    ],
)
async def test_a_channel_is_asked_for_as_its_address_names_it(
    link: str, asked: dict[str, str]
) -> None:
    async with asking() as asks:
        await asks.told({"youtube": link})
        queries = [query for path, query in asks.others.asked if path == "/youtube/v3/channels"]
    assert queries == [{"part": "statistics", **asked}]


async def test_more_advertisements_than_are_read_are_a_lower_bound() -> None:
    async with asking() as asks:
        asks.others.captions[SHOP] = [SHOP] * 300
        facts, judged = (await asks.told())["ads"]
    assert facts["active_ads"].value == 250
    assert (judged.verdict, "at least" in judged.reason) == (ScanVerdict.PARTIAL, True)


@pytest.mark.parametrize(("day", "month"), [(10, "2036-04"), (11, "2036-05")])
async def test_the_last_month_is_asked_for_once_it_is_published(day: int, month: str) -> None:
    async with asking() as asks:
        asks.now = NOON.replace(day=day)
        await asks.told()
        query = next(query for path, query in asks.others.asked if path.startswith("/v5/"))
    assert (query["start_date"], query["end_date"]) == (month, month)
