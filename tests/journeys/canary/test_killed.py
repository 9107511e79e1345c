"""An erasure that is killed anywhere goes on where it stood, and loses nothing that is written meanwhile."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from tests.journeys.canary.planting import OTHER, OTHER_SECRET, World, plant, requested, unnamed
from tests.journeys.canary.spelling import someone
from tests.journeys.conftest import EVENTS, SECRET, SHOP, Seller, order_body, sign_up, signed
from tests.journeys.strangers import browsing
from tolsey.actors.job.erasing.effects import Erasing

pytestmark = pytest.mark.slow  # a campaign: some hundred deaths of one erasure

FIRST_OF_TRAFFIC = 900_000
MOST_DEATHS = 300
FACT_EVERY = timedelta(seconds=0.6)
"""No more than the 120 a minute that the limit of memories lets through, however long the erasure takes."""


class Killed(BaseException):
    """The process is gone: nothing that is caught."""


class Mortal:
    """Kills who works through it at one of the next things they wait for: before it is done, or after."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable, no secret
        self._left, self._after = 0, False

    def live_anew(self, longest: int) -> None:
        self._left, self._after = self._random.randint(1, longest), self._random.random() < 0.5

    def of(self, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def done(*args: Any, **given: Any) -> Any:
            self._left -= 1
            if self._left == 0 and not self._after:
                raise Killed
            result = await work(*args, **given)
            if self._left == 0:
                raise Killed
            return result

        return done


class Through:
    """Something whose every function is waited for through a mortal."""

    def __init__(self, inner: Any, mortal: Mortal) -> None:
        self._inner, self._mortal = inner, mortal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        mortal = name in {"fetch", "fetchrow", "execute", "purge", "count", "keep_erasure"}
        return self._mortal.of(found) if mortal else found


@pytest.fixture
def erasings(monkeypatch: pytest.MonkeyPatch) -> list[Erasing]:
    """Hold what erases in the services that begin."""
    made: list[Erasing] = []
    begin = Erasing.__init__

    def noted(self: Erasing, *args: Any, **given: Any) -> None:
        begin(self, *args, **given)
        made.append(self)

    monkeypatch.setattr(Erasing, "__init__", noted)
    return made


async def deaths_until_done(erasing: Erasing, seed: int) -> int:
    """Run an erasure that dies again and again, until a run comes to its end; answer how often it died."""
    mortal = Mortal(seed)
    erasing._database = Through(erasing._database, mortal)  # type: ignore[assignment]
    erasing._vectors = Through(erasing._vectors, mortal)
    erasing._listed = Through(erasing._listed, mortal)
    erasing._ask = mortal.of(erasing._ask)
    for died in range(MOST_DEATHS):
        mortal.live_anew(longest=10 + 2 * died)
        with suppress(Killed):
            await erasing.run(datetime.now(UTC), lambda _: None)
            return died
    raise AssertionError("it never came to its end")


class Traffic:
    """What people and another shop's platform write into a store meanwhile, and what was answered."""

    def __init__(self, seller: Seller, old: list[tuple[bytes, dict[str, str]]]) -> None:
        self._seller, self._old = seller, old
        self.orders: list[int] = []
        self.facts: dict[str, datetime] = {}
        self.refused = 0
        self._wrote_at = datetime.min.replace(tzinfo=UTC)

    async def flow(self) -> None:
        for number in range(FIRST_OF_TRAFFIC, 2 * FIRST_OF_TRAFFIC):
            await self.order(number)
            if datetime.now(UTC) - self._wrote_at > FACT_EVERY:
                await self.fact(f"fact.{number % 50}")
            raw, headers = self._old[number % len(self._old)]
            again = await self._seller.browser.post(EVENTS, content=raw, headers=headers)
            assert again.status_code == 401, again.text  # of a shop that the store has left
            self.refused += 1

    async def order(self, number: int) -> None:
        raw = order_body(number, tags="kept")
        headers = signed(raw, shop=OTHER, secret=OTHER_SECRET)
        answer = await self._seller.browser.post(EVENTS, content=raw, headers=headers)
        assert answer.status_code == 200, answer.text
        self.orders.append(number)

    async def fact(self, key: str) -> None:
        path = f"/api/stores/{self._seller.store_id}/memory/facts/{key}"
        asked = datetime.now(UTC)
        answer = await self._seller.browser.put(path, json={"value": "kept"})
        assert answer.status_code == 200, answer.text
        self.facts[key] = self._wrote_at = asked


async def test_an_erasure_that_dies_anywhere_under_traffic_is_done_once_and_loses_no_answered_write(
    erasings: list[Erasing], planted: World, seed: int
) -> None:
    dora, database = someone("dora", 17), planted.live.service.database
    async with browsing(planted.live) as browser:
        seller = await sign_up(browser)
        old = await plant(planted, seller, SHOP, SECRET, dora)
        assert (await seller.connect(OTHER, OTHER_SECRET)).status_code == 200
        await planted.settled()
        await planted.asked("redact", {"shop_id": 1, "shop_domain": SHOP})
        traffic = Traffic(seller, old)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(traffic.flow)
            deaths = await deaths_until_done(erasings[0], seed)
            tasks.cancel_scope.cancel()
        assert deaths > 3
        await traffic.order(FIRST_OF_TRAFFIC - 1)  # what the actor holds is written once more
        await traffic.fact("fact.last")
        await planted.run("retention-sweep")
        await planted.settled()

    request = await requested(planted)
    assert request["completedAt"] is not None
    receipts = {one["leg"]: one for one in request["legs"]}
    assert len(receipts) == len(request["legs"])
    assert {one["rowsAfter"] for one in request["legs"]} <= {0}
    (found,) = await planted.places(dora)
    assert unnamed(found, request) == set(), found

    rows = await database.fetch(
        "SELECT order_id FROM commerce_orders WHERE store_id = $1 AND metadata->>'tags' = 'kept'",
        f"{seller.store_id}@{OTHER}",
    )
    assert traffic.refused > 0
    assert set(traffic.orders) <= {row["order_id"] for row in rows}
    forgotten_at = datetime.fromisoformat(receipts["vectors"]["at"])
    kept = {key for key, at in traffic.facts.items() if at > forgotten_at}
    facts = await database.fetch("SELECT name FROM facts WHERE deleted_at IS NULL")
    assert "fact.last" in kept
    assert kept <= {row["name"] for row in facts}
