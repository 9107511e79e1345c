"""The status page from the first look to the last mail: rules/service#status, rules/service#alerts."""

import hmac
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import feedparser
import httpx
import orjson
import pytest

from tests.http.people import Clock
from tests.journeys.conftest import CRON_SECRET
from tests.timing import until
from tolsey.http.status import webhooks
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.people import mail as kept

pytestmark = pytest.mark.anyio

CRON = {"Authorization": f"Bearer {CRON_SECRET}"}
OPERATOR = "operator@example.com"
READER = "reader@example.com"


@pytest.fixture
def clock() -> Clock:
    # In the hour before: a row that is due later than the database's own now() would wait for it.
    hour = datetime.now(UTC) - timedelta(hours=1)
    return Clock(hour.replace(minute=2, second=0, microsecond=0))


@pytest.fixture
async def live(settings: Settings, clock: Clock) -> AsyncIterator[Running]:
    told = settings.model_copy(update={"operator_email": OPERATOR})
    async with running(told, clock=clock, timers=False, poll_seconds=0.1) as service:
        yield service


async def look(browser: httpx.AsyncClient, clock: Clock) -> dict[str, Any]:
    """Have the job look once more, five minutes later."""
    clock.advance(timedelta(minutes=5))
    answer = await browser.post("/api/cron/alerts-tick", headers=CRON)
    assert answer.status_code == 200, answer.text
    outcome: dict[str, Any] = answer.json()["outcome"]
    assert outcome["status"] == "completed", outcome
    return outcome


async def break_webhooks(live: Running, at: datetime, letters: int = 6) -> None:
    for number in range(letters):
        await live.service.database.execute(
            """
            INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error,
                                      created_at, died_at)
            VALUES ($1, $1, 0, 'store', 'store_1', 'store.Gone', '{}', 3, 'broken', $2, $2)
            """,
            f"dead_{at:%H%M}_{number}",
            at,
        )


async def mails(live: Running, event: str) -> list[dict[str, str]]:
    rows = await live.service.database.fetch(
        "SELECT id, recipient, subject FROM outbound_mail WHERE event = $1 ORDER BY created_at, id",
        event,
    )
    return [dict(row) for row in rows]


async def said_in(live: Running, mail_id: str) -> str:
    found = await kept.find(live.service.database, mail_id)
    assert found is not None
    content = live.service.mail.content(found)
    assert content is not None
    return content.text


async def subscribed(live: Running, browser: httpx.AsyncClient, email: str = READER) -> None:
    asked = await browser.post("/api/status/subscribe", json={"email": email})
    assert (asked.status_code, asked.json()) == (202, {"state": "unconfirmed"})
    (mail,) = [one for one in await mails(live, "status_wanted") if one["recipient"] == email]
    link = re.search(r"/status/confirm/\S+", await said_in(live, mail["id"]))
    assert link is not None
    assert await count_subscribers(live) == 0
    # A scanner of mails that opens each link decides nothing.
    assert (await browser.get(link[0])).status_code == 200
    assert await count_subscribers(live) == 0
    assert (await browser.post(link[0])).status_code == 200
    assert await count_subscribers(live) == 1


async def count_subscribers(live: Running) -> int:
    row = await live.service.database.fetchrow("SELECT count(*)::int AS n FROM status_subscribers")
    return int(row["n"]) if row else 0


async def test_trouble_is_seen_published_told_and_over(
    live: Running, browser: httpx.AsyncClient, clock: Clock
) -> None:
    await subscribed(live, browser)
    assert (await look(browser, clock))["unwell"] == 0
    assert "Everything works." in (await browser.get("/status")).text

    await break_webhooks(live, clock())
    assert (await look(browser, clock))["opened"] == 0  # once is no trouble
    assert (await look(browser, clock))["opened"] == 1
    quiet = (await browser.get("/status.json")).json()
    assert quiet["incidents"] == []  # a draft
    assert {one["name"]: one["status"] for one in quiet["components"]}["Webhooks in"] == (
        "degraded_performance"
    )
    await look(browser, clock)
    assert (await look(browser, clock))["published"] == 1  # after ten minutes
    (incident,) = (await browser.get("/status.json")).json()["incidents"]
    assert (incident["status"], incident["impact"]) == ("investigating", "minor")
    assert incident["name"] in (await browser.get("/status")).text

    clock.advance(timedelta(hours=1))
    assert (await look(browser, clock))["resolved"] == 1
    assert (await browser.get("/status.json")).json()["incidents"] == []
    assert incident["name"] in (await browser.get("/status/history")).text
    changed = await mails(live, "status_changed")
    assert [(one["recipient"], one["subject"].split(":")[0]) for one in changed] == [
        (READER, "Investigating"),
        (READER, "Resolved"),
    ]

    # Each mail ends it, and nothing is kept then.
    end = re.search(r"/mail/unsubscribe/\S+", await said_in(live, changed[-1]["id"]))
    assert end is not None
    assert (await browser.post(end[0])).status_code == 200
    assert await count_subscribers(live) == 0


async def test_an_operator_tells_what_is_wrong_and_a_feed_reader_reads_it(
    live: Running, browser: httpx.AsyncClient, operator: httpx.AsyncClient, clock: Clock
) -> None:
    await subscribed(live, browser)
    body = {
        "component": "intelligence",
        "title": "Scans are late",
        "impact": "minor",
        "body": "Scans start late.",
        "reason": "Seen by hand.",
    }
    assert (await browser.post("/api/admin/incidents", json=body)).status_code == 401
    opened = await operator.post("/api/admin/incidents", json=body)
    assert opened.status_code == 201, opened.text
    clock.advance(timedelta(minutes=20))
    more = {"state": "identified", "body": "One large shop <b>", "reason": "Found."}
    path = f"/api/admin/incidents/{opened.json()['id']}/updates"
    assert (await operator.post(path, json=more)).status_code == 201
    listed = (await operator.get("/api/admin/incidents")).json()["items"]
    assert [(one["state"], len(one["updates"])) for one in listed] == [("identified", 2)]

    first = await browser.get("/status/incidents.rss")
    feed = feedparser.parse(first.content)
    assert not feed.bozo
    assert feed.version == "rss20"
    assert [(one.title, one.summary) for one in feed.entries] == [
        ("Identified: Scans are late", "One large shop <b>"),
        ("Investigating: Scans are late", "Scans start late."),
    ]
    assert len({one.id for one in feed.entries}) == 2
    again = await browser.get(
        "/status/incidents.rss", headers={"If-None-Match": first.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")
    unchanged = await browser.get("/status/api/v2/summary.json")
    clock.advance(timedelta(seconds=30))
    kept = {"If-None-Match": unchanged.headers["etag"]}
    assert (await browser.get("/status.json", headers=kept)).status_code == 304
    told = await mails(live, "status_changed")
    assert [one["subject"] for one in told] == [
        "Investigating: Scans are late",
        "Identified: Scans are late",
    ]
    # The page says first what is wrong, with what people wrote as text.
    page = (await browser.get("/status")).text
    assert "Competitor scans: not well. All else works." in page
    assert "One large shop &lt;b&gt;" in page
    resolved = {"state": "resolved", "body": "Level again.", "reason": "Done."}
    assert (await operator.post(path, json=resolved)).json()["resolvedAt"] is not None
    documents = {
        name: (await browser.get(f"/status/api/v2/{name}.json")).json()
        for name in ("status", "components", "incidents", "incidents/unresolved")
    }
    assert documents["status"]["status"]["indicator"] == "none"
    assert len(documents["components"]["components"]) == 7
    assert len(documents["incidents"]["incidents"]) == 1
    assert documents["incidents/unresolved"]["incidents"] == []
    assert (await browser.get("/status/api/v2/nothing.json")).status_code == 404


class Receiver:
    """A program at an address, which keeps what it is sent and proves who sent it."""

    def __init__(self) -> None:
        self.secret = ""
        self.status = 200
        self.taken: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.status == 200:
            seconds, signed = request.headers["X-Tolsey-Signature"].split(",")
            body = f"{seconds.removeprefix('t=')}.".encode() + request.content
            proof = hmac.new(self.secret.encode(), body, "sha256").hexdigest()
            assert hmac.compare_digest(signed, f"v1={proof}")
            self.taken.append(orjson.loads(request.content))
        return httpx.Response(self.status)

    async def sent(self, number: int) -> dict[str, Any]:
        await until(lambda: len(self.taken) >= number)
        assert len(self.taken) == number
        return self.taken[-1]


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    found = Receiver()
    transport = httpx.MockTransport(found)
    monkeypatch.setattr(
        webhooks, "guarded_client", lambda **_: httpx.AsyncClient(transport=transport)
    )
    return found


async def test_a_program_confirms_is_told_of_its_parts_and_ends_it(
    live: Running, browser: httpx.AsyncClient, operator: httpx.AsyncClient, receiver: Receiver
) -> None:
    wanted = {"webhook": "https://hooks.example.com/status", "components": ["billing"]}
    receiver.status = 503  # until it knows its secret
    asked = await browser.post("/api/status/subscribe", json=wanted)
    assert asked.status_code == 202
    await until_over(live)
    receiver.secret, receiver.status = asked.json()["secret"], 200
    # Another look within the hour, for it said nothing.
    asked = await browser.post("/api/status/subscribe", json=wanted)
    receiver.secret = asked.json()["secret"]
    invitation = await receiver.sent(1)
    assert invitation["type"] == "subscription.confirm"
    assert await count_webhooks(live) == 0
    broken = await browser.post(
        "/api/status/confirm", json={"token": invitation["token"].swapcase()}
    )
    assert (broken.status_code, broken.json()["code"]) == (400, "invalid_token")
    for _ in range(2):
        done = await browser.post("/api/status/confirm", json={"token": invitation["token"]})
        assert done.json() == {"state": "confirmed"}
    assert await count_webhooks(live) == 1

    for component in ("revenue", "billing"):
        incident = {
            "component": component,
            "title": f"Trouble with {component}",
            "impact": "minor",
            "body": "We look.",
            "reason": "seen",
        }
        assert (await operator.post("/api/admin/incidents", json=incident)).status_code == 201
    told = await receiver.sent(2)
    assert told["type"] == "incident.updated"
    assert told["incident"]["component"] == "billing"
    assert told["update"]["body"] == "We look."

    token = {"token": told["unsubscribe"]["token"]}
    assert (await browser.post("/api/status/unsubscribe", json=token)).json() == {"state": "ended"}
    assert await count_webhooks(live) == 0
    ending = {"token": invitation["token"]}
    assert (await browser.post("/api/status/unsubscribe", json=ending)).status_code == 400


async def test_an_address_that_fails_too_often_is_forgotten_and_one_of_ours_is_never_called(
    live: Running,
    browser: httpx.AsyncClient,
    operator: httpx.AsyncClient,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhooks, "MOST_FAILURES", 1)
    running_here = live.service.status_webhooks
    receiver.status = 410
    token = ""

    async def caught(self: Any, call: Any) -> None:
        nonlocal token
        token = orjson.loads(call.body)["token"]

    with monkeypatch.context() as patched:
        patched.setattr(type(running_here), "_deliver", caught)
        wanted = {"webhook": "https://hooks.example.com/gone"}
        assert (await browser.post("/api/status/subscribe", json=wanted)).status_code == 202
        await until_over(live)
    assert (await browser.post("/api/status/confirm", json={"token": token})).status_code == 200
    incident = {
        "component": "api",
        "title": "Trouble",
        "impact": "minor",
        "body": "We look.",
        "reason": "seen",
    }
    assert (await operator.post("/api/admin/incidents", json=incident)).status_code == 201
    await until_over(live)
    assert await count_webhooks(live) == 0

    monkeypatch.undo()
    for wrong in ("http://hooks.example.com/", "https://a:b@hooks.example.com/", "ftp://x"):
        refused = await browser.post("/api/status/subscribe", json={"webhook": wrong})
        assert refused.status_code == 422, wrong
    both = {"webhook": "https://hooks.example.com/", "email": READER}
    assert (await browser.post("/api/status/subscribe", json=both)).status_code == 422
    inside = {"webhook": "https://127.0.0.1/"}
    assert (await browser.post("/api/status/subscribe", json=inside)).status_code == 202
    await until_over(live)
    assert await count_webhooks(live) == 0


async def until_over(live: Running) -> None:
    """Wait until no program is to be told anything."""

    async def is_done() -> bool:
        return not await live.service.database.fetch(
            "SELECT 1 FROM outbox WHERE name LIKE '%TellStatusWebhook'"
        )

    await until(is_done)


async def count_webhooks(live: Running) -> int:
    row = await live.service.database.fetchrow("SELECT count(*)::int AS n FROM status_webhooks")
    return int(row["n"]) if row else 0


async def test_a_service_that_no_longer_looks_at_itself_does_not_say_that_it_is_well(
    browser: httpx.AsyncClient, clock: Clock
) -> None:
    await look(browser, clock)
    assert (await browser.get("/status.json")).json()["status"]["indicator"] == "none"
    clock.advance(timedelta(minutes=16))
    assert (await browser.get("/status.json")).json()["status"]["indicator"] == "major"


async def test_a_link_that_confirms_is_good_for_a_day_and_for_one_address(
    live: Running, browser: httpx.AsyncClient, clock: Clock
) -> None:
    for _ in range(2):  # the second within the hour writes no second mail
        form = await browser.post("/status/subscribe", data={"email": READER})
        assert form.status_code == 200
        assert "We wrote to that address." in form.text
    (mail,) = await mails(live, "status_wanted")
    link = re.search(r"/status/confirm/\S+", await said_in(live, mail["id"]))
    assert link is not None
    clock.advance(timedelta(days=1, minutes=1))
    assert (await browser.post(link[0])).status_code == 400
    assert (await browser.post("/status/confirm/made.up")).status_code == 400
    assert (await browser.post("/status/subscribe", data={"email": "nobody"})).status_code == 422
    assert await count_subscribers(live) == 0


async def test_the_operator_is_written_to_once_a_day_while_a_threshold_is_passed(
    live: Running, browser: httpx.AsyncClient, clock: Clock
) -> None:
    for number in range(21):
        kind = "payment_intent.succeeded" if number < 20 else "charge.dispute.created"
        await live.service.database.execute(
            """
            INSERT INTO payment_events (event_id, type, livemode, created_at, state, received_at)
            VALUES ($1, $2, true, $3, 'applied', $3)
            """,
            f"evt_{number}",
            kind,
            clock(),
        )
    assert (await look(browser, clock))["operatorsTold"] == 1
    again = await look(browser, clock)
    assert (again["alerts"], again["operatorsTold"]) == (1, 0)
    clock.advance(timedelta(days=1))
    assert (await look(browser, clock))["operatorsTold"] == 1
    clock.advance(timedelta(days=30))
    over = await look(browser, clock)
    assert (over["alerts"], over["operatorsTold"]) == (0, 0)
    told = await mails(live, "alert_raised")
    assert [(one["recipient"], one["subject"]) for one in told] == [
        (OPERATOR, "Alert: Too many chargebacks")
    ] * 2
    assert "1 of 20 payments" in await said_in(live, told[0]["id"])


async def test_a_dry_run_says_what_a_job_would_do_and_begins_nothing(
    live: Running, operator: httpx.AsyncClient
) -> None:
    body = {"reason": "To see.", "dryRun": True}
    answer = await operator.post("/api/admin/crons/alerts-tick/run", json=body)
    assert answer.json() == {
        "job": "alerts-tick",
        "does": "Operators hear of trouble.",
        "joins": None,
        "last": None,
    }
    row = await live.service.database.fetchrow("SELECT count(*)::int AS n FROM cron_executions")
    assert row is not None
    assert row["n"] == 0
    unknown = await operator.post("/api/admin/crons/nothing/run", json=body)
    assert unknown.status_code == 404
