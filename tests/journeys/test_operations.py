"""Operators see and steer: health, crons, metrics, actors, dead letters, audit rows."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import httpx
import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from tests.journeys.conftest import CRON_SECRET, EVENTS, SHOP, Seller, order_body, signed
from tests.journeys.strangers import quiet
from tests.timing import until
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import RunNow, Tick, job
from tolsey.runtime.codec import encode
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage import audit
from tolsey.storage.records.runtime.turns import OutboxRow

CRON = {"Authorization": f"Bearer {CRON_SECRET}"}


async def test_health_names_its_checks_and_is_never_cached(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/api/health")

    assert answer.status_code == 200
    assert answer.json() == {
        "ok": True,
        "checks": {"db": True, "cache": True},
        "version": answer.json()["version"],
    }
    assert answer.headers["Cache-Control"] == "no-store"


async def test_a_lost_cache_is_503_without_its_reason(
    settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nowhere = tmp_path_factory.mktemp("gone") / "redis.sock"
    lost = settings.model_copy(update={"redis_url": f"unix://{nowhere}"})
    async with running(lost, timers=False) as service:
        transport = httpx.ASGITransport(service.app)
        async with httpx.AsyncClient(transport=transport, base_url=lost.base_url) as client:
            with structlog.testing.capture_logs() as written:
                answer = await client.get("/api/health")

    assert answer.status_code == 503
    assert answer.json()["checks"] == {"db": True, "cache": False}
    assert "sock" not in answer.text
    assert any(entry["event"] == "health.degraded" for entry in written)


async def test_a_job_runs_once_for_its_due_time_whoever_calls(browser: httpx.AsyncClient) -> None:
    path = "/api/cron/prune-webhook-deliveries"
    first = await browser.post(path, headers=CRON)
    again = await browser.get(path, headers=CRON)

    assert first.status_code == 200, first.text
    assert first.json()["outcome"] == {"status": "completed", "deleted": 0}
    assert again.json() == first.json()


async def test_ticks_of_many_processes_make_one_run(live: Running) -> None:
    due_at = JOBS["retention-sweep"].due_at(datetime.now(UTC))
    runs: list[str] = []

    async def tick() -> None:
        message = Tick(due_at, new_id("run"), datetime.now(UTC))
        ended = await live.service.runtime.ask(job("retention-sweep"), message)
        runs.append(ended.id)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(tick)

    assert len(runs) == 10
    assert len(set(runs)) == 1
    row = await live.service.database.fetchrow("SELECT count(*) AS n FROM cron_executions")
    assert row is not None
    assert row["n"] == 1


@pytest.mark.parametrize("secret", ["", "Bearer wrong", f"Basic {CRON_SECRET}", "Bearer é"])
async def test_a_wrong_cron_secret_runs_nothing(
    browser: httpx.AsyncClient, live: Running, secret: str
) -> None:
    headers = {"Authorization": secret.encode()} if secret else {}
    answer = await browser.post("/api/cron/prune-audit-log", headers=headers)  # type: ignore[arg-type]  # bytes are sent as they are

    assert answer.status_code == 401
    assert await live.service.database.fetch("SELECT 1 FROM cron_executions") == []


async def test_an_unset_cron_secret_names_the_variable_and_runs_nothing(
    settings: Settings,
) -> None:
    unset = settings.model_copy(update={"cron_secret": None})
    async with running(unset, timers=False) as service:
        transport = httpx.ASGITransport(service.app)
        async with httpx.AsyncClient(transport=transport, base_url=unset.base_url) as client:
            with structlog.testing.capture_logs() as written:
                answer = await client.post("/api/cron/prune-audit-log", headers=CRON)
            rows = await service.service.database.fetch("SELECT 1 FROM cron_executions")

    assert answer.status_code == 503
    assert answer.json()["code"] == "missing_credential"
    assert "CRON_SECRET" in answer.json()["detail"]
    assert rows == []
    assert any(entry["event"] == "cron.prune-audit-log.missing_secret" for entry in written)


async def test_a_job_that_there_is_not_is_none(browser: httpx.AsyncClient) -> None:
    unknown = await browser.post("/api/cron/no-such-job", headers=CRON)

    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_job")


async def test_old_deliveries_and_audit_rows_go_and_deliveries_trails_stay(
    browser: httpx.AsyncClient, live: Running
) -> None:
    database = live.service.database
    await database.execute(
        """
        INSERT INTO commerce_webhook_events (store_id, delivery_id, topic, shop_domain, created_at)
        SELECT 'store_1', n::text, 'orders/create', $1, now() - make_interval(days => 6 + n % 2 * 2)
        FROM generate_series(1, 12000) n
        """,
        SHOP,
    )
    await database.execute(
        """
        INSERT INTO audit_log (event, subject, actor, metadata, created_at, retention)
        SELECT event, 's', 'system', '{}', now() - make_interval(days => days),
            CASE event WHEN 'login' THEN '180_days' ELSE '7_years' END
        FROM unnest(ARRAY['login', 'commerce.webhook.orders.create', 'purchase.completed']) event,
             unnest(ARRAY[179, 181]) days
        """
    )
    said = ["user.signed_in", "refund.requested", "plan.change_requested", "payout_account.opened"]
    for days in (179, 181, 8 * 366):
        for event in said:
            async with database.transaction() as tx:
                await audit.write(tx, event, f"said:{event}", actor="usr_1")
        await database.execute(
            "UPDATE audit_log SET created_at = now() - make_interval(days => $1), subject = 's'"
            " WHERE subject LIKE 'said:%'",
            days,
        )
    for name in ("prune-webhook-deliveries", "prune-audit-log"):
        assert (await browser.post(f"/api/cron/{name}", headers=CRON)).status_code == 200

    kept = await database.fetchrow(
        "SELECT count(*) AS n, min(created_at) AS oldest FROM commerce_webhook_events"
    )
    assert kept is not None
    assert kept["n"] == 6000
    assert kept["oldest"] > datetime.now(UTC) - timedelta(days=7)
    rows = await database.fetch(
        "SELECT event, count(*) AS n FROM audit_log WHERE subject = 's' GROUP BY event"
    )
    assert {row["event"]: row["n"] for row in rows} == {
        "login": 1,
        "commerce.webhook.orders.create": 2,
        "purchase.completed": 2,
        "user.signed_in": 1,
        "refund.requested": 2,
        "plan.change_requested": 2,
        "payout_account.opened": 2,
    }


async def test_a_listing_left_alone_for_half_a_year_leaves_the_market_by_the_sweep(
    seller: Seller, browser: httpx.AsyncClient, live: Running
) -> None:
    database = live.service.database
    await database.execute(
        """
        INSERT INTO listings (id, organization_id, title, slug, status, anonymous, included_assets,
            excluded_assets, self_reported, auto_approve_access, financing_offered, created_by,
            created_at, seller_active_at)
        SELECT 'listing_' || days, $1, 't', 's' || days, 'ACTIVE', false, '[]', '[]', '{}', false,
            false, 'usr_1', now(), now() - make_interval(days => days)
        FROM unnest(ARRAY[170, 190]) days
        """,
        seller.organization_id,
    )
    swept = await browser.post("/api/cron/retention-sweep", headers=CRON)
    assert swept.json()["outcome"]["listingsLeftAlone"] == 1
    await until(lambda: database.fetch("SELECT 1 FROM listings WHERE status = 'EXPIRED'"))

    listed = (await seller.browser.get("/api/sell/listings")).json()["items"]
    assert [(item["slug"], item["status"]) for item in listed] == [
        ("s190", "EXPIRED"),
        ("s170", "ACTIVE"),
    ]


async def test_metrics_count_turns_and_name_no_store(
    seller: Seller, browser: httpx.AsyncClient
) -> None:
    text = (await browser.get("/metrics")).text

    counted = 'tolsey_turns_total{kind="organization",message="OpenStore",outcome="ok",process='
    (line,) = [line for line in text.splitlines() if line.startswith(counted)]
    assert line.endswith("} 1.0")
    assert "tolsey_turn_seconds_bucket" in text
    assert seller.store_id not in text
    assert seller.organization_id not in text


async def test_metrics_tell_requests_calls_deliveries_jobs_dead_letters_and_the_process(
    seller: Seller, browser: httpx.AsyncClient, live: Running
) -> None:
    await seller.connect()
    body = order_body(1)
    for headers in (signed(body), signed(body, secret="shpss_wrong")):
        await browser.post(EVENTS, content=body, headers=headers)
    await browser.get("/nothing/at/this/address")
    assert (await browser.post("/api/cron/retention-sweep", headers=CRON)).status_code == 200
    await live.service.database.execute(
        """
        INSERT INTO dead_letters (id, key, slot, kind, actor_key, name, payload, attempts, error,
            created_at)
        VALUES ('dead_1', 'k', 1, 'store', 's', 'N', '{}', 5, 'e', now())
        """
    )
    await until(lambda: not live.service.runtime.admin.effects_in_flight)
    answer = await browser.get("/metrics")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}

    def told(name: str, **wanted: str) -> float:
        """Add up the samples of a name with these labels."""
        samples = [
            sample.value
            for family in families.values()
            for sample in family.samples
            if sample.name == name and wanted.items() <= sample.labels.items()
        ]
        assert samples, name
        return sum(samples)

    requests = "http_server_request_duration_seconds_count"
    status = partial(told, requests, http_request_method="POST", http_route=EVENTS)
    assert (status(http_response_status_code="200"), status(http_response_status_code="401")) == (
        1,
        1,
    )
    assert told(requests, http_route="/api/stores", http_response_status_code="201") == 1
    assert told(requests, http_route="", http_response_status_code="404") == 1
    assert told("http_server_active_requests") == 1
    deliveries = partial(told, "tolsey_webhook_deliveries_total", http_route=EVENTS)
    assert deliveries(outcome="accepted") == deliveries(outcome="invalid_signature") == 1
    calls = partial(told, "tolsey_call_seconds_count", call="ReconcileSubscriptions")
    assert calls(lane="platform", outcome="done") == 1
    assert told("tolsey_calls_waiting", lane="platform") == 0
    asked = partial(told, "http_client_request_duration_seconds_count", peer="commerce")
    assert asked(http_response_status_code="200", error_type="") >= 2
    assert told("tolsey_dead_letters", kind="store") == 1
    assert told("tolsey_job_last_success_timestamp_seconds", job="retention-sweep") > 1.7e9
    assert told("tolsey_job_last_run_failed", job="retention-sweep") == 0
    assert told("process_cpu_seconds_total") > 0
    assert told("process_resident_memory_bytes") > 1e7
    assert told("process_open_fds") > 1


async def test_metrics_are_openmetrics_for_whoever_asks_for_it(browser: httpx.AsyncClient) -> None:
    wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    answer = await browser.get("/metrics", headers=wanted)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


async def test_each_request_is_one_line_of_the_log_and_holds_no_token(
    seller: Seller, browser: httpx.AsyncClient
) -> None:
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as written:
        await browser.get(f"/api/stores/{seller.store_id}", headers={"X-Request-Id": "look-here"})
        await browser.get("/password/reset/sesame-0123456789", headers={"X-Request-Id": "hide"})
        await browser.get("/mail/elsewhere/sesame-0123456789/x")
        await browser.get("/api/health")
    lines = [entry for entry in written if entry["event"] == "request"]
    assert [(line["method"], line["status"]) for line in lines[:1]] == [("GET", 200)]
    assert lines[0]["path"] == f"/api/stores/{seller.store_id}"
    assert lines[0]["request_id"] == "look-here"
    assert lines[0]["milliseconds"] > 0
    assert [line["log_level"] for line in lines] == ["info", "info", "info", "debug"]
    assert "sesame" not in repr(written)


async def test_metrics_are_not_for_strangers(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"})

    assert answer.status_code == 401


async def test_an_operator_sees_a_store_without_its_secrets(
    seller: Seller, operator: httpx.AsyncClient, platform: Platform
) -> None:
    assert (await seller.connect()).status_code == 200
    listed = await operator.get("/api/admin/actors?kind=store&sort=mailbox")
    seen = await operator.get(f"/api/admin/actors/store/{seller.store_id}")

    assert [item["id"] for item in listed.json()["items"]] == [seller.store_id]
    assert seen.status_code == 200
    state = json.dumps(seen.json()["state"])
    assert SHOP in state
    assert "shpss_" not in state
    assert "shpat_" not in state
    assert "v1." not in state
    assert [turn["message"] for turn in seen.json()["turns"]].count("Connect") == 1


async def test_an_operator_sees_what_a_store_asks_of_the_outside(
    seller: Seller, operator: httpx.AsyncClient, live: Running, platform: Platform
) -> None:
    await seller.connect()

    async def is_done() -> bool:
        return not await live.service.database.fetch("SELECT FROM outbox")

    await until(is_done)
    seen = await operator.get(f"/api/admin/actors/store/{seller.store_id}")
    calls = {call["call"]: call for call in seen.json()["calls"]}
    done = calls["ReconcileSubscriptions"]
    assert (done["state"], done["lane"], done["attempts"]) == ("done", "platform", 1)
    assert (done["nextTryAt"], done["lastError"]) == (None, None)
    assert done["createdAt"] <= done["finishedAt"]
    ended = (await operator.get("/api/admin/calls?state=done")).json()
    assert done in ended["items"]
    first = (await operator.get("/api/admin/calls?state=done&limit=1")).json()
    rest = await operator.get(f"/api/admin/calls?state=done&cursor={first['nextCursor']}")
    assert first["items"][0] not in rest.json()["items"]
    assert first["items"] + rest.json()["items"] == ended["items"]
    assert (await operator.get("/api/admin/calls")).json()["items"] == []
    assert (await operator.get("/api/admin/calls?state=failed")).json()["items"] == []


async def test_a_paused_store_keeps_its_deliveries_waiting_until_it_is_resumed(
    seller: Seller, operator: httpx.AsyncClient, browser: httpx.AsyncClient, live: Running
) -> None:
    assert (await seller.connect()).status_code == 200
    where = f"/api/admin/actors/store/{seller.store_id}"
    paused = await operator.post(f"{where}/pause", json={"reason": "looking at it"})
    assert paused.json()["status"] == "paused"
    body = order_body(1)
    answers: list[httpx.Response] = []

    async def deliver() -> None:
        answers.append(await browser.post(EVENTS, content=body, headers=signed(body)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(deliver)
        await until(lambda: live.service.runtime.admin.waiting != 0)
        assert answers == []
        await operator.post(f"{where}/resume", json={"reason": "done"})

    assert answers[0].json() == {"status": "accepted"}
    events = await live.service.database.fetch(
        "SELECT event, metadata->>'reason' AS reason FROM audit_log"
        " WHERE event LIKE 'admin.actor.%' ORDER BY id"
    )
    assert [tuple(row) for row in events] == [
        ("admin.actor.pause", "looking at it"),
        ("admin.actor.resume", "done"),
    ]


async def test_an_actor_that_was_put_to_sleep_wakes_on_its_next_message(
    seller: Seller, operator: httpx.AsyncClient, live: Running
) -> None:
    await seller.connect()
    await quiet(live)
    asleep = await operator.post(
        f"/api/admin/actors/store/{seller.store_id}/passivate", json={"reason": "trying"}
    )
    again = await seller.browser.get(f"/api/stores/{seller.store_id}/integrations/commerce")

    assert asleep.json()["status"] == "asleep"
    assert again.json()["status"] == "active"


async def test_a_dead_letter_is_listed_grouped_replayed_and_discarded(
    operator: httpx.AsyncClient, live: Running
) -> None:
    database = live.service.database
    message = encode(RunNow("run_1", datetime.now(UTC)))
    row = await live.service.runtime._outbox.add(  # no route makes one
        [
            OutboxRow(
                key="k1",
                slot=slot_of("no-such-job"),
                kind="job",
                actor_key="no-such-job",
                name="RunNow",
                payload=message,
                due_at=datetime.now(UTC),
            )
        ]
    )
    assert row == 1
    live.service.runtime.slots.wake_outbox()
    await until(lambda: database.fetch("SELECT 1 FROM dead_letters"))
    (dead,) = (await operator.get("/api/admin/dead-letters")).json()["items"]
    assert dead["message"] == "RunNow"
    assert (
        dead["error"]
        == "refused: There is no job named no-such-job. List the jobs with GET /api/admin/crons."
    )

    (group,) = (await operator.get("/api/admin/dead-letters/groups")).json()["items"]
    assert (group["message"], group["letters"], group["fingerprint"]) == (
        "RunNow",
        1,
        dead["fingerprint"],
    )
    one, all_of_it = (
        f"/api/admin/dead-letters/{dead['id']}",
        (f"/api/admin/dead-letters/groups/{group['fingerprint']}"),
    )
    for path in (one, all_of_it):
        tried = await operator.post(f"{path}/replay", json={"reason": "a look", "dryRun": True})
        assert (tried.status_code, tried.json()["dryRun"]) == (200, True), tried.text
    wrong = await operator.post(
        f"{one}/replay", json={"reason": "mended", "payload": {"scheduled_at": "soon"}}
    )
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_payload")
    assert len((await operator.get("/api/admin/dead-letters")).json()["items"]) == 1

    replayed = await operator.post(
        f"{one}/replay", json={"reason": "mended", "payload": dead["payload"]}
    )
    assert replayed.json()["status"] == "replayed"

    async def is_done() -> bool:
        return len(await database.fetch("SELECT 1 FROM dead_letters")) >= 2

    await until(is_done)
    (again,) = (await operator.get("/api/admin/dead-letters")).json()["items"]
    assert again["key"] == "k1"
    slow = await operator.post(f"{all_of_it}/discard", json={"reason": "hopeless", "perSecond": 1})
    assert (slow.status_code, slow.json()["code"]) == (422, "unprocessable")
    discarded = await operator.post(f"{all_of_it}/discard", json={"reason": "hopeless"})
    assert (discarded.json()["affected"], discarded.json()["remaining"]) == (1, 0)
    gone = await operator.post(f"{all_of_it}/discard", json={"reason": "hopeless"})
    assert gone.status_code == 404
    assert (await operator.get("/api/admin/dead-letters")).json()["items"] == []
    twice = await operator.post(
        f"/api/admin/dead-letters/{again['id']}/discard", json={"reason": "x"}
    )
    assert twice.status_code == 404


async def test_an_operator_runs_a_job_and_sees_its_history(operator: httpx.AsyncClient) -> None:
    run = await operator.post("/api/admin/crons/retention-sweep/run", json={"reason": "now"})
    listed = await operator.get("/api/admin/crons")

    assert run.status_code == 200, run.text
    (job_seen,) = [item for item in listed.json()["items"] if item["name"] == "retention-sweep"]
    assert [entry["executionId"] for entry in job_seen["history"]] == [run.json()["executionId"]]
    assert job_seen["history"][0]["trigger"] == "manual"
    assert job_seen["history"][0]["outcome"]["sessions"] == 0
    assert {one["name"] for one in listed.json()["items"]} == JOBS.keys()


async def test_a_seller_is_no_operator(seller: Seller) -> None:
    paths = ("actors", "actors/store/x", "dead-letters", "crons", "audit", "webhooks", "shards")
    for path in paths:
        answer = await seller.browser.get(f"/api/admin/{path}")
        assert answer.status_code == 403, path


@pytest.mark.parametrize(
    "body",
    [
        b'{"csp-report": {"document-uri": "https://x.example/", "blocked-uri": "inline"}}',
        b'{"csp-report": {"document-uri": "https://x.example/cb?code=sesame", "blocked-uri": "inline"}}',
        b'[{"type": "csp-violation", "body": {"documentURL": "https://x/#sesame", "blockedURL": "inline"}}]',
        b'[{"type": "csp-violation", "body": {"blockedURL": "inline"}}]',
        b"not json",
        b"[" * 5000,
        b"",
    ],
)
async def test_a_report_of_a_browser_is_noted_and_answers_nothing(
    browser: httpx.AsyncClient, body: bytes
) -> None:
    with structlog.testing.capture_logs() as written:
        answer = await browser.post(
            "/api/security/csp-report",
            content=body,
            headers={"Content-Type": "application/csp-report", "Origin": "https://x.example"},
        )

    assert (answer.status_code, answer.content) == (204, b"")
    noted = [entry for entry in written if entry["event"] == "csp.violation"]
    assert len(noted) == (1 if b"inline" in body else 0)
    assert "sesame" not in repr(noted)


async def test_a_path_with_two_slashes_is_not_redirected_to_where_the_caller_says(
    browser: httpx.AsyncClient,
) -> None:
    answer = await browser.get("/api//health", headers={"Host": "evil.example"})

    assert answer.status_code == 404
    assert "evil.example" not in answer.text
    assert "Location" not in answer.headers


async def test_the_description_knows_the_receiver_too(browser: httpx.AsyncClient) -> None:
    described = (await browser.get("/openapi.json")).json()

    operation = described["paths"][EVENTS]["post"]
    assert "200" in operation["responses"]
    assert described["openapi"].startswith("3.1")
    assert len(described["paths"]) > 40


async def test_what_an_operator_reads_is_paged(operator: httpx.AsyncClient, live: Running) -> None:
    await live.service.database.execute(
        """
        INSERT INTO audit_log (event, subject, actor, metadata)
        SELECT 'test.paged', n::text, 'system', '{}' FROM generate_series(1, 25) n
        """
    )
    subjects: list[str] = []
    cursor: str | None = None
    while True:
        query: dict[str, Any] = {"limit": 10} | ({"cursor": cursor} if cursor else {})
        answer = (await operator.get("/api/admin/audit", params=query)).json()
        subjects += [row["subject"] for row in answer["items"] if row["event"] == "test.paged"]
        cursor = answer["nextCursor"]
        if cursor is None:
            break
    assert subjects == [str(n) for n in range(25, 0, -1)]


async def test_the_request_id_follows_the_work_it_caused(seller: Seller, live: Running) -> None:
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as written:
        answer = await seller.browser.post(
            "/api/integrations/commerce/custom-app",
            json={
                "storeId": seller.store_id,
                "shopDomain": SHOP,
                "clientId": "client-1",
                "clientSecret": "shpss_0123456789abcdef0123456789abcdef",
            },
            headers={"X-Request-Id": "trace-me"},
        )
        assert answer.headers["X-Request-Id"] == "trace-me"
        await until(lambda: not live.service.runtime.admin.effects_in_flight)

    done = [entry for entry in written if entry["event"] == "effect.done"]
    assert {entry["request_id"] for entry in done} == {"trace-me"}
    spans = live.service.runtime.telemetry.last_of(ActorId("store", seller.store_id))
    assert "trace-me" in {span.request_id for span in spans}
