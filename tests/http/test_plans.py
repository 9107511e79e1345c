from typing import Any

import pytest

from tests.http.people import Browser, SignUp
from tolsey.http.app import create_app
from tolsey.http.billing import plans
from tolsey.http.people import auth, organizations
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Database

PLANS = "/api/plans"


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [auth.routes, organizations.routes, plans.routes], {})


def usd(amount: int) -> dict[str, Any]:
    return {"amount": amount, "currency": "USD"}


async def test_anyone_reads_the_plans(browser: Browser) -> None:
    answer = await browser().get(PLANS)
    assert answer.status_code == 200
    said = answer.json()
    assert set(said) == {"items", "nextCursor"}
    assert [plan["code"] for plan in said["items"]] == [
        "free",
        "pro",
        "max_5x",
        "max_20x",
        "custom",
    ]
    assert said["items"][1] == {
        "code": "pro",
        "name": "Pro",
        "byContract": False,
        "monthlyPrice": usd(7_900),
        "yearlyPrice": usd(75_000),
        "taxBehavior": "exclusive",
        "monthlyCredits": usd(4_900),
        "dailyBonus": usd(100),
        "storesIncluded": 3,
        "concurrentWorkflows": 5,
        "mcpCalls": {"perMinute": 500, "perDay": 50_000},
    }
    free, custom = said["items"][0], said["items"][-1]
    assert (free["monthlyPrice"], free["monthlyCredits"]) == (None, usd(0))
    assert (custom["byContract"], custom["monthlyPrice"], custom["monthlyCredits"]) == (
        True,
        None,
        None,
    )
    assert (custom["storesIncluded"], custom["dailyBonus"]) == (None, None)
    assert free["dailyBonus"] == usd(0)


async def test_a_member_is_told_from_when_a_year_can_be_paid(
    sign_up: SignUp, database: Database
) -> None:
    ann = await sign_up()
    query = {"organizationId": ann.organization_id}
    young = (await ann.browser.get(PLANS, params=query)).json()
    assert len(young["items"]) == 5
    assert young["organization"]["id"] == ann.organization_id
    assert young["organization"]["plan"] == "free"
    assert young["organization"]["yearlyAvailable"] is False
    await database.execute("UPDATE organizations SET created_at = created_at - interval '31 days'")
    older = (await ann.browser.get(PLANS, params=query)).json()
    assert older["organization"]["yearlyAvailable"] is True
    assert older["organization"]["yearlyFrom"] < young["organization"]["yearlyFrom"]


async def test_strangers_learn_nothing_of_an_organization(
    sign_up: SignUp, browser: Browser
) -> None:
    owner, stranger = await sign_up("owner@example.com"), await sign_up("stranger@example.com")
    headers = {"X-Request-Id": "same"}
    foreign = {"organizationId": owner.organization_id}
    absent = {"organizationId": owner.organization_id + "0"}
    seen = await stranger.browser.get(PLANS, params=foreign, headers=headers)
    unseen = await stranger.browser.get(PLANS, params=absent, headers=headers)
    assert seen.status_code == 404
    assert seen.content == unseen.content
    anonymous = await browser().get(PLANS, params=foreign)
    assert (anonymous.status_code, anonymous.json()["code"]) == (401, "unauthorized")
    misshapen = await stranger.browser.get(PLANS, params={"organizationId": "../x"})
    assert misshapen.status_code == 422
