import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from tests.http.people import Clock, Person, SignUp, made_operator, settings_of
from tolsey.actors.job.messages import RunNow, job
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.http.web.edge import Edge
from tolsey.runtime.ids import new_id
from tolsey.runtime.shards.oversight import Oversight
from tolsey.service import Running, running

DOLLAR = 1_000_000
TERMS = {
    "plan": "custom",
    "storesIncluded": 2,
    "monthlyAllowance": 900 * DOLLAR,
    "dailyBonus": 7 * DOLLAR,
    "reason": "Signed on paper",
}
ENDED = {"plan": "free", "reason": "They left"}


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


async def agree(operator: Person, whose: Person, body: dict[str, Any]) -> httpx.Response:
    path = f"/api/admin/organizations/{whose.organization_id}/contract"
    return await operator.browser.put(path, json=body)


async def run(live: Running, name: str, clock: Clock) -> dict[str, Any]:
    execution = await live.service.runtime.ask(job(name), RunNow(new_id("run"), clock()))
    assert execution.status == "completed", execution.error
    return dict(json.loads(execution.outcome or "{}"))


async def test_a_contract_gives_stores_credits_and_bonuses_from_now_on(
    live: Running, ann: Person, operator: Person, clock: Clock
) -> None:
    answer = await agree(operator, ann, TERMS)
    assert answer.status_code == 200, answer.text
    agreed = answer.json()
    assert agreed.pop("since") is not None
    assert agreed == {
        "organizationId": ann.organization_id,
        **{name: value for name, value in TERMS.items() if name != "reason"},
    }
    papers = {"kyc": "case 17", "signedContract": "drawer 4"}
    assert papers.items() <= (await agree(operator, ann, {**TERMS, **papers})).json().items()
    assert papers.items() <= (await agree(operator, ann, TERMS)).json().items()
    assert [(await ann.store(f"Shop {n}")).status_code for n in range(3)] == [201, 201, 402]
    assert (await run(live, "daily-bonus", clock))["granted"] == 1
    to = organization(ann.organization_id)
    view = await live.service.runtime.ask(to, ReadCredits(clock()))
    assert view.standing.available == 907 * DOLLAR
    clock.advance(timedelta(days=32))
    assert (await run(live, "monthly-credits-reset", clock))["granted"] == 1
    assert (await run(live, "expire-credits", clock))["ledgersBroken"] == 0


async def test_a_contract_and_its_end_outlive_the_process_and_are_audited(
    live: Running, ann: Person, operator: Person
) -> None:
    path = f"/api/organizations/{ann.organization_id}"
    await agree(operator, ann, TERMS)
    assert (await ann.browser.get(path)).json()["plan"] == "custom"
    asleep = Oversight(live.service.shard, live.service.runtime)
    await asleep.actor("passivate", organization(ann.organization_id))
    assert (await agree(operator, ann, TERMS)).json()["plan"] == "custom"
    ended = await agree(operator, ann, ENDED)
    assert (ended.json()["plan"], ended.json()["monthlyAllowance"]) == ("free", None)
    assert (await ann.browser.get(path)).json()["plan"] == "free"
    rows = await live.service.database.fetch(
        "SELECT event, actor, metadata FROM audit_log WHERE event LIKE 'subscription.%' ORDER BY id"
    )
    assert [(row["event"], row["actor"]) for row in rows] == [
        ("subscription.contracted", operator.user_id),
        ("subscription.contract_ended", operator.user_id),
    ]
    assert json.loads(rows[1]["metadata"])["reason"] == "They left"


@pytest.mark.parametrize(
    "wrong",
    [
        {**TERMS, "plan": "pro"},
        {**TERMS, "monthlyAllowance": -1},
        {**TERMS, "dailyBonus": 10**18},
        {**TERMS, "monthlyAllowance": 1.5},
        {**TERMS, "reason": " "},
        {name: value for name, value in TERMS.items() if name != "dailyBonus"},
        {**TERMS, "plan": "free"},
    ],
)
async def test_terms_that_make_no_contract_are_refused(
    ann: Person, operator: Person, wrong: dict[str, Any]
) -> None:
    answer = await agree(operator, ann, wrong)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_only_an_administrator_agrees_to_anything(
    live: Running, ann: Person, operator: Person
) -> None:
    assert (await agree(ann, ann, TERMS)).status_code == 403
    ann.browser.cookies.clear()
    assert (await agree(ann, ann, TERMS)).status_code == 401
    row = await live.service.database.fetchrow("SELECT count(*) AS n FROM contracts")
    assert row is not None
    assert row["n"] == 0
    nobody = Person(operator.browser, "usr_0", "org_0", "nobody@example.com")
    assert (await agree(operator, nobody, TERMS)).status_code == 404
