"""An operator sees what is at work and steers it from pages; each act shows its count first and keeps its reason."""

import re

import httpx
import pytest

from tests.journeys.conftest import Seller
from tests.journeys.strangers import browsing
from tolsey.http.operators.console.sections import SECTIONS
from tolsey.service import Running

DEAD = """
INSERT INTO dead_letters (id, key, kind, actor_key, name, payload, attempts, error, status, slot, created_at, died_at)
SELECT 'dead_' || n, 'key_' || n, 'store', $1, 'store.Sleep', '{}', 5, 'KeyError: ''tax_lines''', 'dead', 1, now(), now()
FROM generate_series(1, 3) n
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
