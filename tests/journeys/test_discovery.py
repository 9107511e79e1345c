"""Jobs find storefronts and have them scanned: by the queue where there is one, a few inline where not."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest
from structlog.testing import capture_logs

from tests.http.people import Clock
from tests.journeys.conftest import CRON_SECRET, sign_up
from tests.journeys.test_scans import DOMAIN, clock, count
from tests.timing import until
from tolsey.actors.storefront.messages import (
    DiscoverStorefront,
    SuppressStorefront,
    storefront,
)
from tolsey.sandbox.server import Receive, Send, listening, whole
from tolsey.sandbox.storefronts import Storefront, Storefronts, product
from tolsey.service import Running, running
from tolsey.settings import Settings

__all__ = ["clock"]

KEY = "sig_0123456789abcdef0123456789abcdef"
SHOPS = tuple(f"shop{n}.example" for n in range(5))


class Outside:
    """The queue and the data set, as their clients see them."""

    def __init__(self) -> None:
        self.published: list[tuple[str, dict[str, Any], Mapping[str, str]]] = []
        self.entries: list[Any] = []
        self.status = 200

    async def answer(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await whole(receive)
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        found: Any = {"messageId": "msg_1"}
        if scope["method"] == "POST":
            self.published.append((scope["path"], orjson.loads(body), headers))
        else:
            asked = httpx.QueryParams(scope["query_string"].decode())
            start = int(asked["offset"])
            found = self.entries[start : start + int(asked["limit"])]
        text = orjson.dumps(found)
        length = (b"content-length", str(len(text)).encode())
        await send({"type": "http.response.start", "status": self.status, "headers": [length]})
        await send({"type": "http.response.body", "body": text})


@pytest.fixture
def web() -> Storefronts:
    return Storefronts(
        *(Storefront(domain=one, products=[product(1, quantity=5)]) for one in (DOMAIN, *SHOPS))
    )


@asynccontextmanager
async def serving(
    settings: Settings, web: Storefronts, clock: Clock, **given: Any
) -> AsyncIterator[Running]:
    async with web.serve() as url:
        update = {"storefront_url": url, "scan_pace_seconds": 0.0, **given}
        started = running(
            settings.model_copy(update=update), timers=False, poll_seconds=0.1, clock=clock
        )
        async with started as live:
            yield live


def client(live: Running) -> httpx.AsyncClient:
    base = live.service.settings.base_url
    return httpx.AsyncClient(transport=httpx.ASGITransport(live.app), base_url=base)


async def ran(live: Running, job: str) -> dict[str, Any]:
    async with client(live) as machine:
        bearer = {"Authorization": f"Bearer {CRON_SECRET}"}
        answer = await machine.post(f"/api/cron/{job}", headers=bearer, timeout=120)
    assert answer.status_code == 200, answer.text
    outcome: dict[str, Any] = answer.json()["outcome"]
    assert outcome.pop("status") == "completed", outcome
    return outcome


async def heard(live: Running, *domains: str) -> None:
    for one in domains:
        wish = DiscoverStorefront(source="test", at=live.service.clock())
        assert await live.service.runtime.ask(storefront(one), wish)


async def states(live: Running) -> dict[str, str]:
    rows = await live.service.database.fetch("SELECT domain, state FROM storefronts")
    return {row["domain"]: row["state"] for row in rows}


async def test_without_a_queue_a_few_are_scanned_inline_and_the_outcome_says_why(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    async with serving(settings, web, clock) as live:
        await heard(live, *SHOPS)
        with capture_logs() as logs:
            outcome = await ran(live, "discovery-harvest-tick")
        assert outcome == {
            "due": 5,
            "enqueued": 0,
            "queueUnready": True,
            "inlineScanned": 3,
            "reason": outcome["reason"],
        }
        assert "QUEUE_URL" in outcome["reason"]
        assert sum(one["event"] == "enqueue_failed" for one in logs) == 5
        assert sorted((await states(live)).values()) == ["active"] * 3 + ["discovered"] * 2


async def test_with_a_queue_each_is_published_once_and_scanned_when_it_calls_back(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    outside = Outside()
    async with listening(outside.answer) as port:
        queue = {
            "queue_url": f"http://127.0.0.1:{port}",
            "queue_token": "queue-token",
            "queue_signing_key": KEY,
        }
        async with serving(settings, web, clock, **queue) as live, client(live) as machine:
            await heard(live, DOMAIN)
            assert await ran(live, "discovery-harvest-tick") == {"due": 1, "enqueued": 1}
            ((path, body, headers),) = outside.published
            base = live.service.settings.base_url
            assert path == f"/v2/publish/{base}/api/internal/scans"
            assert (body, headers["authorization"]) == ({"domain": DOMAIN}, "Bearer queue-token")
            assert headers["upstash-deduplication-id"] == f"scan-{DOMAIN}"

            text = orjson.dumps(body)
            good = token(text, clock)
            for bad in refused(text, clock):
                answer = await called(machine, text, bad)
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), bad
            answer = await called(machine, text, good)
            assert answer.status_code == 202, answer.text

            async def is_done() -> bool:
                return (await states(live))[DOMAIN] == "active"

            await until(is_done)
            assert await count(live, "storefront_snapshots") == 1
            # The queue delivers at least once: the same delivery is no second scan.
            again = await called(machine, text, good)
            assert again.status_code in {200, 202}, again.text
            assert await count(live, "storefront_scans") == 1


async def test_internal_routes_are_nowhere_while_no_key_is_set(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    async with serving(settings, web, clock) as live, client(live) as machine:
        text = orjson.dumps({"domain": DOMAIN})
        for sign in (token(text, clock), token(text, clock, key="")):
            assert (await called(machine, text, sign)).status_code == 404


def token(body: bytes, clock: Clock, *, key: str = KEY, head: Any = None, **claims: Any) -> str:
    said = {
        "iat": int(clock().timestamp()),
        "jti": "jwt_1",
        "body": packed(hashlib.sha256(body).digest()),
        **claims,
    }
    parts = [packed(orjson.dumps(one)) for one in (head or {"alg": "HS256", "typ": "JWT"}, said)]
    signed = hmac.digest(key.encode(), ".".join(parts).encode(), "sha256")
    return ".".join([*parts, packed(signed)])


def packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def refused(body: bytes, clock: Clock) -> list[str]:
    now = int(clock().timestamp())
    good = token(body, clock)
    return [
        "",
        "x.y.z",
        good[:-4] + "AAAA",
        token(body, clock, key="another"),
        token(body, clock, head={"alg": "none"}),
        token(b'{"domain":"other.example"}', clock),
        token(body, clock, iat=now - 301),
        token(body, clock, iat=now + 120),
        token(body, clock, exp=now - 1),
        token(body, clock, iat="now"),
        token(body, clock, jti=None),
    ]


async def called(machine: httpx.AsyncClient, body: bytes, sign: str) -> httpx.Response:
    headers = {"Queue-Signature": sign, "Content-Type": "application/json"}
    return await machine.post("/api/internal/scans", content=body, headers=headers)


async def test_what_is_left_alone_is_fed_by_no_job(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    outside = Outside()
    outside.entries = [{"domain": DOMAIN}]
    async with listening(outside.answer) as port:
        dataset = {
            "dataset_url": f"http://127.0.0.1:{port}",
            "dataset_token": "t",
            "dataset_id": "d",
        }
        async with serving(settings, web, clock, **dataset) as live:
            suppress = SuppressStorefront(reason="asked", source="owner", at=clock())
            await live.service.runtime.ask(storefront(DOMAIN), suppress)
            outcome = await ran(live, "discovery-apify-sync")
            assert (outcome["discovered"], outcome["skipped"]) == (0, 1)
            await ran(live, "discovery-bootstrap-tick")
            await ran(live, "discovery-harvest-tick")
            await ran(live, "intelligence-tick")
            assert await states(live) == {}
            assert web.shops[DOMAIN].asked == []


async def test_the_data_set_is_read_in_and_given_up_after_25_failures_in_a_row(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    outside = Outside()
    named = [{"url": f"https://www.{one}/"} for one in SHOPS]
    outside.entries = [*named, *([{"domain": "127.0.0.1"}] * 24), {"domain": DOMAIN}]
    async with listening(outside.answer) as port:
        dataset = {
            "dataset_url": f"http://127.0.0.1:{port}",
            "dataset_token": "t",
            "dataset_id": "d",
        }
        async with serving(settings, web, clock, **dataset) as live:
            outcome = await ran(live, "discovery-apify-sync")
            assert outcome == {
                "read": 30,
                "discovered": 6,
                "skipped": 0,
                "failed": 24,
                "aborted": False,
                "reason": "",
            }
            clock.advance(timedelta(days=7))
            outside.status = 500
            outcome = await ran(live, "discovery-apify-sync")
            assert (outcome["read"], outcome["failed"], outcome["aborted"]) == (25, 25, True)


async def test_jobs_without_their_settings_do_nothing_and_say_so(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    async with serving(settings, web, clock) as live:
        outcome = await ran(live, "discovery-apify-sync")
        assert outcome["noop"] is True
        assert "DATASET_TOKEN" in outcome["reason"]
        await live.service.database.execute(
            """
            INSERT INTO storefronts (domain, state, source, discovered_at)
            SELECT n || '.example', 'active', 'test', now() FROM generate_series(1, 500) n
            """
        )
        assert await ran(live, "discovery-bootstrap-tick") == {"stores": 500, "noop": True}


async def test_shops_that_somebody_competes_with_are_looked_at_again(
    settings: Settings, web: Storefronts, clock: Clock
) -> None:
    async with serving(settings, web, clock) as live:
        base = live.service.settings.base_url
        async with client(live) as browser:
            browser.headers["Origin"] = base
            seller = await sign_up(browser)
            answer = await seller.post(f"/api/stores/{seller.store_id}/competitors", domain=DOMAIN)
            assert answer.status_code == 201
            await heard(live, SHOPS[0])
            with capture_logs() as logs:
                assert await ran(live, "intelligence-tick") == {
                    "refreshed": 0,
                    "refreshedDeep": 1,
                }
            events = {one["event"] for one in logs}
            assert {"refresh_hot.done", "refresh_hot_deep.done"} <= events

            async def is_done() -> bool:
                return (await states(live))[DOMAIN] == "active"

            await until(is_done)
            clock.advance(timedelta(hours=7))
            assert await ran(live, "intelligence-tick") == {"refreshed": 1, "refreshedDeep": 0}
            assert web.shops[SHOPS[0]].asked == []  # nobody competes with it
