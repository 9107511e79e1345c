"""The limits are those of rules/limits#windows, and callers are told where they stand."""

import pytest

from tests.http.people import PASSWORD, Browser
from tolsey.actors.organization import plans
from tolsey.http.web import policies
from tolsey.storage.limits import Policy


@pytest.mark.parametrize(
    ("policy", "limit", "seconds"),
    [
        (policies.REVENUE_REFRESH, 20, 3_600),
        (policies.CHAT, 60, 60),
        (policies.CREDIT_PURCHASE, 10, 3_600),
        (policies.AFFILIATE_REDEEM, 3, 3_600),
        (policies.ACCOUNT_CREATION, 5, 86_400),
        (policies.MCP_FLOOD, 100, 60),
    ],
)
def test_a_window_is_the_promised_one(policy: Policy, limit: int, seconds: int) -> None:
    assert (policy.limit, policy.window_seconds) == (limit, seconds)


@pytest.mark.parametrize(
    ("code", "bounds"),
    [
        ("free", [("mcp-min", 50, 60), ("mcp-day", 2_000, 86_400)]),
        ("pro", [("mcp-min", 500, 60), ("mcp-day", 50_000, 86_400)]),
        ("max_5x", [("mcp-min", 1_000, 60), ("mcp-day", 100_000, 86_400)]),
        ("max_20x", [("mcp-min", 5_000, 60)]),
        ("custom", []),
    ],
)
def test_mcp_calls_are_limited_by_the_plan(code: str, bounds: list[tuple[str, int, int]]) -> None:
    found = policies.mcp(plans.BY_CODE[code])
    assert found == tuple(Policy(*bound) for bound in bounds)


def test_every_policy_has_a_name_of_its_own() -> None:
    names = [policy.name for policy in (*policies.CATALOGUE, *policies.mcp(plans.FREE))]
    assert len(set(names)) == len(names)


async def test_a_caller_is_told_of_every_policy_a_call_counts_against(browser: Browser) -> None:
    body = {"email": "nobody@example.com", "password": PASSWORD}
    answer = await browser("203.0.113.9").post("/api/auth/login", json=body)
    assert answer.status_code == 401
    answered = answer.headers["ratelimit-policy"]
    assert answered == '"logins";q=60;w=60, "logins-per-account";q=20;w=900'
    logins, account = answer.headers["ratelimit"].split(", ")
    assert logins.startswith('"logins";r=59;t=')
    assert account.startswith('"logins-per-account";r=19;t=')
    assert "retry-after" not in answer.headers


async def test_a_refusal_names_the_policies_that_refuse_and_when_they_will_not(
    browser: Browser,
) -> None:
    body = {"email": "nobody@example.com", "password": PASSWORD}
    client = browser("203.0.113.9")
    answers = [await client.post("/api/auth/login", json=body) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [401] * 20 + [429]
    refused = answers[-1]
    said = refused.json()
    assert refused.headers["content-type"] == "application/problem+json"
    assert said["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert (said["status"], said["code"]) == (429, "too_many_requests")
    assert said["violated-policies"] == ["logins-per-account"]
    assert 0 < said["retryAfter"] <= 900
    assert refused.headers["retry-after"] == str(said["retryAfter"])
    assert f'"logins-per-account";r=0;t={said["retryAfter"]}' in refused.headers["ratelimit"]


async def test_a_route_without_a_limit_tells_of_none(browser: Browser) -> None:
    answer = await browser().get("/api/auth/session")
    assert "ratelimit" not in answer.headers
    assert "ratelimit-policy" not in answer.headers
