from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import chain
from typing import Any

import pytest

from tests.http.people import Clock, Person, SignUp, made_operator, settings_of
from tolsey.actors.organization.ledger.messages import GrantCredits, HoldCredits, SpendCredits
from tolsey.actors.organization.messages import organization
from tolsey.http.web.edge import Edge
from tolsey.service import Running, running

ADJUST = "/api/admin/credits/adjust"
DOLLAR = 1_000_000


@pytest.fixture
async def live(database_url: str, redis_url: str, clock: Clock) -> AsyncIterator[Running]:
    settings = settings_of(database_url=database_url, redis_url=redis_url)
    async with running(settings, clock=clock, timers=False) as started:
        yield started


@pytest.fixture
def edge(live: Running) -> Edge:
    assert isinstance(live.app, Edge)
    return live.app


@pytest.fixture
async def ann(sign_up: SignUp) -> Person:
    return await sign_up("ann@example.com")


@pytest.fixture
async def operator(live: Running, sign_up: SignUp) -> Person:
    return await made_operator(live.service.database, await sign_up("operator@example.com"))


async def read(person: Person, path: str = "", **query: Any) -> Any:
    query["organizationId"] = person.organization_id
    answer = await person.browser.get(f"/api/credits{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_new_organization_has_no_credits(ann: Person) -> None:
    assert await read(ann) == {
        "balance": 0,
        "available": 0,
        "held": 0,
        "grants": [],
        "grantsTotal": 0,
        "nextExpiry": None,
        "nextCursor": None,
    }
    assert await read(ann, "/ledger") == {"items": [], "nextCursor": None}


async def test_a_member_sees_what_is_there_what_is_held_and_when_it_expires(
    live: Running, ann: Person, clock: Clock
) -> None:
    at, ask = clock(), live.service.runtime.ask
    to = organization(ann.organization_id)
    week = timedelta(days=7)
    await ask(
        to,
        GrantCredits(key="late", kind="bonus", amount=2 * DOLLAR, at=at, expires_at=at + 2 * week),
    )
    await ask(
        to,
        GrantCredits(
            key="purchase:pi_1",
            kind="purchase",
            amount=DOLLAR,
            at=at,
            expires_at=at + week,
            reference="pi_1",
        ),
    )
    await ask(
        to,
        HoldCredits(hold_id="h", amount=DOLLAR // 2, at=at, lease_until=at + timedelta(minutes=15)),
    )
    seen = await read(ann)
    assert (seen["balance"], seen["available"], seen["held"]) == (3_000_000, 2_500_000, 500_000)
    assert [(one["id"], one["remaining"]) for one in seen["grants"]] == [
        ("purchase:pi_1", DOLLAR),
        ("late", 2 * DOLLAR),
    ]
    assert seen["nextExpiry"] == seen["grants"][0]["expiresAt"]
    clock.advance(timedelta(minutes=16))
    assert (await read(ann))["held"] == 0
    clock.advance(week)
    assert (await read(ann))["balance"] == 2_000_000


async def test_the_hundred_grants_spent_next_are_shown_and_the_rest_by_cursor(
    live: Running, ann: Person, clock: Clock
) -> None:
    at, to, ask = clock(), organization(ann.organization_id), live.service.runtime.ask
    for n in range(230):
        ends = at + timedelta(days=300 - n // 10)
        await ask(
            to, GrantCredits(key=f"g|{n:03}", kind="bonus", amount=DOLLAR, at=at, expires_at=ends)
        )
    first = await read(ann)
    second = await read(ann, cursor=first["nextCursor"])
    third = await read(ann, cursor=second["nextCursor"])
    parts = [[one["id"] for one in part["grants"]] for part in (first, second, third)]
    assert [len(part) for part in parts] == [100, 100, 30]
    in_order = sorted(range(230), key=lambda n: (-(n // 10), n))
    assert list(chain(*parts)) == [f"g|{n:03}" for n in in_order]
    assert third["nextCursor"] is None
    assert {part["grantsTotal"] for part in (first, second, third)} == {230}
    assert {part["balance"] for part in (first, second, third)} == {230 * DOLLAR}
    assert {part["nextExpiry"] for part in (first, second, third)} == {
        first["grants"][0]["expiresAt"]
    }
    # What is spent meanwhile moves nobody's place: the grant that was last shown is gone.
    await ask(to, SpendCredits(key="s", amount=150 * DOLLAR, reason="chat", at=at))
    rest = await read(ann, cursor=first["nextCursor"])
    assert [one["id"] for one in rest["grants"]] == list(chain(*parts))[150:]


async def test_credits_of_ten_thousand_lots_are_read_in_parts_of_bounded_size(
    live: Running, ann: Person, clock: Clock
) -> None:
    """The route, the page and an agent's tool once answered with all of them, 1.7 MB."""
    at, lots = clock(), 10_000
    await live.service.database.execute(
        "INSERT INTO credit_accounts (organization_id, seq, hash, debt, allowance) VALUES ($1, 1, '', 0, 0)",
        ann.organization_id,
    )
    await live.service.database.execute(
        "INSERT INTO credit_lots (organization_id, id, kind, amount, remaining, pinned, granted_at,"
        " expires_at, seq) SELECT $1, 'g' || n, 'bonus', $2, $2, 0, $3,"
        " $3::timestamptz + interval '1 day' * (1 + n % 300), 1 FROM generate_series(1, $4) n",
        *(ann.organization_id, DOLLAR, at, lots),
    )
    ids = list[str]()
    reported = set[tuple[int, int, int, str]]()
    cursor: str | None = None
    while cursor or not ids:
        query = {"organizationId": ann.organization_id, **({"cursor": cursor} if cursor else {})}
        answer = await ann.browser.get("/api/credits", params=query)
        assert len(answer.content) < 30_000
        part = answer.json()
        ids += [one["id"] for one in part["grants"]]
        reported.add((part["balance"], part["available"], part["grantsTotal"], part["nextExpiry"]))
        cursor = part["nextCursor"]
    assert len(ids) == len(set(ids)) == lots
    assert [one[:3] for one in reported] == [(lots * DOLLAR, lots * DOLLAR, lots)]
    page = await ann.browser.get("/billing", params={"organizationId": ann.organization_id})
    assert page.status_code == 200
    assert len(page.content) < 100_000
    assert "10,000" in page.text


@pytest.mark.parametrize("cursor", ["LTE", "fHw", "Mnwz", "MjAyNi0wNy0wMXx4fGc"])
async def test_a_cursor_of_something_else_shows_no_grants(ann: Person, cursor: str) -> None:
    query = {"organizationId": ann.organization_id, "cursor": cursor}
    wrong = await ann.browser.get("/api/credits", params=query)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_cursor")


async def test_the_ledger_is_read_page_by_page_newest_first(
    live: Running, ann: Person, clock: Clock
) -> None:
    at, to = clock(), organization(ann.organization_id)
    ask = live.service.runtime.ask
    await ask(
        to,
        GrantCredits(
            key="b", kind="bonus", amount=9 * DOLLAR, at=at, expires_at=at + timedelta(days=9)
        ),
    )
    for n in range(4):
        await ask(to, SpendCredits(key=f"s:{n}", amount=DOLLAR, reason="chat", at=at))
    await ask(
        to, HoldCredits(hold_id="h", amount=DOLLAR, at=at, lease_until=at + timedelta(days=1))
    )
    first = await read(ann, "/ledger", limit=4)
    rest = await read(ann, "/ledger", limit=4, cursor=first["nextCursor"])
    entries = [*first["items"], *rest["items"]]
    assert rest["nextCursor"] is None
    assert [one["seq"] for one in entries] == [6, 5, 4, 3, 2, 1]
    assert [one["amount"] for one in entries] == [0, *[-DOLLAR] * 4, 9 * DOLLAR]
    assert entries[1]["kind"] == "spend"
    assert entries[1]["postings"] == [{"debit": "usage", "credit": "lot:b", "amount": DOLLAR}]
    assert sum(one["amount"] for one in entries) == (await read(ann))["balance"]


@pytest.mark.parametrize("path", ["/api/credits", "/api/credits/ledger"])
async def test_credits_of_no_one_and_of_others_are_not_shown(
    ann: Person, sign_up: SignUp, path: str
) -> None:
    stranger = await sign_up("stranger@example.com")
    assert (await ann.browser.get(path)).status_code == 422
    query = {"organizationId": ann.organization_id}
    foreign = await stranger.browser.get(path, params=query)
    absent = await stranger.browser.get(path, params={"organizationId": "org_0"})
    assert foreign.status_code == absent.status_code == 404
    wrong = await ann.browser.get("/api/credits/ledger", params={**query, "cursor": "LTE"})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_cursor")


async def test_an_operator_adjusts_credits_once_and_says_why(
    live: Running, ann: Person, operator: Person
) -> None:
    body = {"organizationId": ann.organization_id, "amount": 5 * DOLLAR, "reason": "an outage"}
    headers = {"Idempotency-Key": "one"}
    first = await operator.browser.post(ADJUST, json=body, headers=headers)
    again = await operator.browser.post(ADJUST, json=body, headers=headers)
    assert first.status_code == 200, first.text
    assert first.json() == again.json()
    assert (await read(ann))["available"] == 5 * DOLLAR
    less = await operator.browser.post(ADJUST, json={**body, "amount": -6 * DOLLAR})
    assert (less.status_code, less.json()["code"]) == (402, "insufficient_credits")
    assert less.json()["available"] == 5 * DOLLAR
    (row,) = await live.service.database.fetch(
        "SELECT actor, organization_id, metadata->>'reason' AS reason FROM audit_log"
        " WHERE event = 'manual.adjustment'"
    )
    assert tuple(row) == (operator.user_id, ann.organization_id, "an outage")


async def test_an_adjustment_whose_answer_was_lost_is_not_made_again(
    live: Running, ann: Person, operator: Person
) -> None:
    body = {"organizationId": ann.organization_id, "amount": 5 * DOLLAR, "reason": "an outage"}
    headers = {"Idempotency-Key": "one"}
    first = await operator.browser.post(ADJUST, json=body, headers=headers)
    await live.service.database.execute(
        "UPDATE idempotency_keys SET answer = NULL, locked_until = NULL"
    )
    again = await operator.browser.post(ADJUST, json=body, headers=headers)
    assert again.json() == first.json()
    assert (await read(ann))["balance"] == 5 * DOLLAR


async def test_an_adjustment_says_how_much_for_whom_and_why(ann: Person, operator: Person) -> None:
    body = {"organizationId": ann.organization_id, "amount": DOLLAR, "reason": "why"}
    wrongs: list[dict[str, Any]] = [
        *({"amount": one} for one in (0, 1.5, 10**18, True, "5")),
        {"reason": "  "},
    ]
    for wrong in wrongs:
        answer = await operator.browser.post(ADJUST, json={**body, **wrong})
        assert answer.status_code == 422, wrong
    nobody = await operator.browser.post(ADJUST, json={**body, "organizationId": "org_0"})
    assert nobody.status_code == 404
    assert (await ann.browser.post(ADJUST, json=body)).status_code == 403
