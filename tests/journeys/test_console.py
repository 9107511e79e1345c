"""An operator sees what is at work and steers it from pages; each act shows its count first and keeps its reason."""

import re
from functools import partial

import anyio
import asyncpg
import httpx
import orjson
import pytest

from tests.journeys.conftest import EVENTS, Seller, order_body, signed
from tests.journeys.strangers import browsing, quiet
from tolsey.http.layout import live as following
from tolsey.http.operators import live as admin_live
from tolsey.http.operators.console.sections import SECTIONS
from tolsey.service import Running

DEAD = """
INSERT INTO dead_letters (id, key, kind, actor_key, name, payload, attempts, error, status, slot, created_at, died_at)
SELECT 'dead_' || n, 'key_' || n, 'store', $1, 'store.Sleep', '{}', 5, 'KeyError: ''tax_lines''', 'dead', 1, now(), now()
FROM generate_series(1, 3) n
"""
LATER = """
INSERT INTO outbox (key, slot, kind, actor_key, name, payload, attempts, due_at, held_by)
VALUES ($1, $2, 'store', $3, 'store.NotKnownHere', '{}', 2, now() + $4::text::interval, $5)
"""
ACTS = "SELECT event, subject, metadata->>'reason' AS reason FROM audit_log WHERE event LIKE 'admin.%' ORDER BY id"


async def press(operator: httpx.AsyncClient, address: str, **typed: str) -> httpx.Response:
    """Look at an act's form, then send it; answer with the page that follows."""
    looked = await operator.get(address)
    assert looked.status_code == 200, looked.text
    assert "Not yet done" in looked.text
    return await operator.post(address, data=typed, follow_redirects=True)


async def test_every_page_of_the_console_is_the_operators_alone(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    for address in (
        *SECTIONS,
        f"/admin/actors/store/{seller.store_id}",
        "/admin/jobs/retention-sweep/run",
    ):
        shown = await operator.get(address)
        assert shown.status_code == 200, f"{address}: {shown.text}"
        for link in re.findall(r'class="actions sections".*?</nav>', shown.text, re.DOTALL):
            assert all(f'href="{one}"' in link for one in SECTIONS)
        assert (await seller.browser.get(address)).status_code == 403
        async with browsing(live) as nobody:
            assert (await nobody.get(address)).status_code == 303


async def test_what_waits_behind_a_poison_message_is_counted_and_goes_on_when_it_is_edited(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    await database.execute(DEAD, seller.store_id)
    await database.execute(
        "UPDATE dead_letters SET sender = 'webhook:x', about = 'order:7', created_at = now() - interval '1 h'"
        " WHERE id = 'dead_1'"
    )
    await database.execute(
        "INSERT INTO outbox (key, slot, kind, actor_key, name, payload, sender, about, held_by, due_at)"
        " VALUES ('behind', 1, 'store', $1, 'store.Sleep', '{}', 'webhook:x', 'order:7', 'dead_1', 'infinity')",
        seller.store_id,
    )
    found = (await operator.get("/api/admin/dead-letters/dead_1")).json()
    assert (found["letter"]["about"], found["letter"]["behind"]) == ("order:7", 1)
    assert [one["key"] for one in found["held"]] == ["behind"]
    would = await operator.post(
        "/api/admin/dead-letters/dead_1/discard", json={"reason": "x", "dryRun": True}
    )
    assert (would.json()["affected"], would.json()["behind"]) == (1, 1)
    assert (await operator.get("/api/admin/dead-letters/none")).status_code == 404

    edit = "/admin/dead-letters/dead_1/edit"
    assert "Waiting behind it" in (await operator.get(edit)).text
    wrong = await operator.post(edit, data={"reason": "x", "payload": "{"})
    assert wrong.status_code == 422
    await press(operator, "/admin/dead-letters/dead_1/discard", reason="of a test shop")
    (row,) = await database.fetch(
        "SELECT held_by, due_at <= now() AS due FROM outbox WHERE key = 'behind'"
    )
    assert tuple(row) == (None, True)
    assert (await operator.get(edit)).status_code == 404


async def test_an_actor_says_which_message_is_in_flight_and_which_come_later(
    live: Running, seller: Seller, operator: httpx.AsyncClient, database_url: str
) -> None:
    await seller.connect()
    await quiet(live)
    asked = f"/api/admin/actors/store/{seller.store_id}"
    plain = (await operator.get(asked)).json()
    assert ("inFlight" in plain, plain["timers"]) == (False, [])
    for key, due, held in (
        ("later", "1 day", None),
        ("past", "-1 day", None),
        ("held", "1 day", "dead_1"),
    ):
        await live.service.database.execute(LATER, key, plain["slot"], seller.store_id, due, held)
    body = order_body(1)
    deliver = partial(seller.browser.post, EVENTS, content=body, headers=signed(body))
    somebody = await asyncpg.connect(database_url)
    try:
        async with anyio.create_task_group() as tasks:
            await somebody.execute("BEGIN; LOCK TABLE actor_journal IN EXCLUSIVE MODE")
            tasks.start_soon(deliver)
            with anyio.fail_after(60):
                while "inFlight" not in (seen := (await operator.get(asked)).json()):
                    await anyio.sleep(0.01)
            shown = await operator.get(f"/admin/actors/store/{seller.store_id}")
            await somebody.execute("ROLLBACK")
    finally:
        await somebody.close()

    assert (seen["inFlight"]["stage"], seen["inFlight"]["message"]) == ("commit", "OrderChanged")
    assert seen["inFlight"]["seconds"] >= 0
    assert [(one["key"], one["message"], one["attempts"]) for one in seen["timers"]] == [
        ("later", "store.NotKnownHere", 2)
    ]
    assert "OrderChanged, for " in shown.text
    assert "store.NotKnownHere" in shown.text


async def test_a_state_of_before_is_shown_beside_todays(
    live: Running, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = "/api/admin/actors/job/retention-sweep"
    committer = live.service.runtime._committer
    monkeypatch.setattr(committer, "_history", frozenset({"job"}))
    ran = await operator.post("/api/admin/crons/retention-sweep/run", json={"reason": "x"})
    assert ran.status_code == 200
    turns = (await operator.get(f"{job}/turns")).json()["items"]
    assert [one["restorable"] for one in turns] == [True] * len(turns)
    first = turns[-1]
    assert first["message"] == "RunNow"

    shown = (await operator.get(f"{job}/at", params={"message": first["messageId"]})).json()
    assert shown["before"] == {
        "name": "retention-sweep",
        "running": None,
        "last": None,
        "waiting": None,
    }
    assert shown["now"]["running"] is None
    last = (await operator.get(f"{job}/at", params={"message": turns[0]["messageId"]})).json()
    assert last["before"]["running"]["id"]
    assert "running" in {one["place"] for one in last["differences"]}
    page = await operator.get(
        f"/admin/actors/job/retention-sweep/at?message={turns[0]['messageId']}"
    )
    assert page.status_code == 200
    assert "<del>" in page.text
    assert "/at?message=" in (await operator.get("/admin/actors/job/retention-sweep/turns")).text

    await live.service.database.execute(
        "UPDATE actor_journal SET way_back = NULL WHERE version = 1"
    )
    lost = (await operator.get(f"{job}/at", params={"message": first["messageId"]})).json()
    assert lost["before"] is None
    assert lost["why"]
    assert lost["reached"]["version"] == first["version"] + 1
    gone = await operator.get(f"{job}/at", params={"message": "nothing"})
    assert (gone.status_code, gone.json()["code"]) == (404, "message_not_in_journal")
    rows = await live.service.database.fetch(
        "SELECT subject FROM audit_log WHERE event = 'admin.actor.state_before'"
    )
    assert {row["subject"] for row in rows} == {"job:retention-sweep"}
    assert len(rows) == 5


async def test_an_operator_is_told_when_the_service_moves_until_it_stops(
    live: Running, seller: Seller, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    told = await operator.get("/api/admin/live?looks=1")
    assert told.headers["content-type"] == "text/event-stream"
    (id,) = re.findall(r"^id: (\w+)$", told.text, re.MULTILINE)
    (data,) = re.findall(r"^data: (.+)$", told.text, re.MULTILINE)
    assert orjson.loads(data)["deadLetters"] == {}
    await live.service.database.execute(DEAD, seller.store_id)
    again = await operator.get("/api/admin/live?looks=3", headers={"Last-Event-ID": id})
    assert '"deadLetters":{"store":3}' in again.text
    assert again.text.count("event: changed") < 3  # what did not move is not told
    assert admin_live.open_streams == []

    monkeypatch.setattr(admin_live, "MOST_STREAMS", 0)
    assert (await operator.get("/api/admin/live?looks=1")).status_code == 503
    monkeypatch.undo()
    assert (await operator.get("/api/admin/live?looks=16")).status_code == 422
    monkeypatch.setattr(live.service.runtime, "draining", True)
    assert (await operator.get("/api/admin/live")).text == "retry: 1000\n\n"
    monkeypatch.undo()
    assert (await seller.browser.get("/api/admin/live")).status_code == 403
    page = (await operator.get("/admin/dead-letters")).text
    assert 'data-follows="/api/admin/live"' in page
    assert "KeyError" in page  # without a script, too


async def test_actors_are_sorted_by_what_went_wrong_and_drained(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    for sort in ("errors", "cpu"):
        found = await operator.get(f"/api/admin/actors?sort={sort}")
        assert found.status_code == 200
        assert all(one["recentErrors"] == 0 for one in found.json()["items"])
        seconds = [one["recentSeconds"] for one in found.json()["items"]]
        assert sort == "errors" or seconds == sorted(seconds, reverse=True)
    drained = await operator.post(
        f"/api/admin/actors/store/{seller.store_id}/drain", json={"reason": "x"}
    )
    assert (drained.status_code, drained.json()["status"]) == (200, "asleep")


async def test_a_cause_of_dead_letters_is_counted_before_it_is_given_up_for_a_reason(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    database = live.service.database
    await database.execute(DEAD, seller.store_id)
    groups = (await operator.get("/admin/dead-letters")).text
    (discard,) = re.findall(r'href="(/admin/dead-letters/groups/\w+/discard)"', groups)
    looked = (await operator.get(discard)).text
    assert re.search(r"Letters</dt><dd><bdi>3<", looked)
    silent = await operator.post(discard, data={})
    assert silent.status_code == 422
    assert "Say why" in silent.text
    counted = await database.fetch("SELECT FROM dead_letters WHERE status = 'dead'")
    assert len(counted) == 3

    one = await press(
        operator, "/admin/dead-letters/dead_1/replay", reason="mended in the last release"
    )
    assert "Sent again." in one.text
    rest = await press(operator, discard, reason="of a test shop")
    assert "Given up." in rest.text
    assert "Nothing failed for good." in rest.text
    assert (await operator.get(discard)).status_code == 404
    acts = [(row["event"], row["reason"]) for row in await database.fetch(ACTS)]
    assert acts == [
        ("admin.dead_letter.replay", "mended in the last release"),
        ("admin.dead_letter_group.discard", "of a test shop"),
    ]


async def test_a_store_is_paused_and_resumed_from_what_its_diagnosis_says(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    address = f"/admin/actors/store/{seller.store_id}"
    paused = await press(operator, f"{address}/pause", reason="the shop asks for it")
    assert "Paused:" in paused.text
    diagnosis = await operator.get(f"/api/admin/stores/{seller.store_id}/diagnosis")
    (cause, *_others) = diagnosis.json()["causes"]
    assert cause["cause"] == "store_paused"
    shown = (await operator.get("/admin/find", params={"q": seller.store_id})).text
    assert f'href="{cause["page"]}"' in shown
    resumed = await press(operator, cause["page"], reason="it is over")
    assert "Resumed." in resumed.text
    record = (
        await operator.get("/admin/audit", params={"subject": f"store:{seller.store_id}"})
    ).text
    assert "the shop asks for it" in record


async def test_a_job_is_run_and_an_incident_told_from_the_console(
    live: Running, seller: Seller, operator: httpx.AsyncClient
) -> None:
    ran = await press(operator, "/admin/jobs/expire-credits/run", reason="to see that it runs")
    assert "completed" in ran.text
    told = await press(
        operator,
        "/admin/incidents/open",
        component="revenue",
        impact="minor",
        title="Revenue is read late",
        body="We read revenue an hour late.",
        reason="the platform throttles us",
    )
    assert "Revenue is read late" in told.text
    (say,) = re.findall(r'href="(/admin/incidents/\w+/say)"', told.text)
    await press(
        operator, say, state="resolved", body="It is read in time again.", reason="it is over"
    )
    assert "It is read in time again." in (await seller.browser.get("/status/history")).text


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/admin/actors?sort=colour", 422),
        ("/admin/audit?subject=a&actor=b", 422),
        ("/admin/actors/nothing/x", 404),
        ("/admin/jobs/nothing/run", 404),
        ("/admin/dead-letters/none/replay", 404),
    ],
)
async def test_an_address_that_no_page_gives_is_refused_in_words(
    operator: httpx.AsyncClient, address: str, status: int
) -> None:
    answer = await operator.get(address)
    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/html")
