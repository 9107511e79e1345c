"""Every route with each credential missing in turn, and with each kind of wrong one: rules/service#settings.

Run by `make test-slow`: each walk asks several hundred routes.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.http.people import Person, made_operator
from tests.http.test_tenants import QUERIES, REFUSALS, address_of, body_of, routes_of, things_of
from tests.journeys.conftest import CRON_SECRET
from tests.journeys.strangers import browsing, edge_of, person
from tolsey.http.web.access import Access
from tolsey.service import Running, running
from tolsey.settings import Settings

METRICS_TOKEN = "m" * 32
NOBODY = "http://127.0.0.1:9"
WHOLE: dict[str, Any] = {
    "base_url": "https://tolsey.example",
    "cron_secret": CRON_SECRET,
    "metrics_token": METRICS_TOKEN,
    "commerce_client_id": "app",
    "commerce_client_secret": "shpss_platform",
    "payments_secret_key": "sk_test_nobody",
    "payments_webhook_secret": "whsec_payments",
    **{
        f"payments_price_{plan}_{cadence}": f"price_{plan}_{cadence}"
        for plan in ("pro", "max5", "max20")
        for cadence in ("monthly", "yearly")
    },
    "mail_url": "smtp://127.0.0.1:9",
    "mail_from": "no-reply@tolsey.example",
    "mail_webhook_secret": "mail",
    "code_host_webhook_secret": "code",
    "messaging_webhook_secret": "messages",
    "esign_webhook_secret": "esign",
    "esign_api_url": NOBODY,
    "esign_api_key": "esign",
    "escrow_api_url": NOBODY,
    "escrow_api_login": "escrow",
    "escrow_api_key": "escrow",
    "llm_base_url": NOBODY,
    "llm_model": "none",
    "queue_url": NOBODY,
    "queue_token": "token",
    "queue_signing_key": "key",
}
"""Each credential is set; nobody is where they lead."""
LEFT_OUT = ("pause, resume, passivate", "/launch/events", "/api/admin/live")
"""The first would silence the store for all that is asked of it afterwards; the others go on until they are left."""
LAST = ("/account", "/api/account", "/api/auth/", "/logout")
"""What ends who asks, or what they ask for, in this order."""


NEEDED = {
    **dict.fromkeys(("GET /api/cron/<name>", "POST /api/cron/<name>"), "CRON_SECRET"),
    "GET /metrics": "METRICS_TOKEN",
    **dict.fromkeys(
        (
            "POST /api/credits/purchase",
            "POST /api/payments/checkout",
            "POST /api/payments/change",
            "POST /api/payments/cancel",
            "POST /api/payments/portal",
            "GET /api/payments/portal",
            "POST /api/sponsor/checkout",
            "POST /api/admin/refunds",
            "POST /api/payouts/account",
            "POST /api/affiliate/codes",
        ),
        "PAYMENTS_SECRET_KEY",
    ),
    "POST /api/organizations/<organization_id>/members": "MAIL_URL",
    "POST /api/chat": "LLM_BASE_URL",
    **dict.fromkeys(
        (
            f"POST /api/webhooks/commerce/{name}"
            for name in ("redact", "data-request", "customer-redact")
        ),
        "COMMERCE_CLIENT_SECRET",
    ),
    "POST /api/webhooks/payments": "PAYMENTS_WEBHOOK_SECRET",
    "POST /api/webhooks/mail": "MAIL_WEBHOOK_SECRET",
    "POST /api/webhooks/code-host": "CODE_HOST_WEBHOOK_SECRET",
    "POST /api/webhooks/messaging": "MESSAGING_WEBHOOK_SECRET",
    "POST /api/webhooks/esign": "ESIGN_API_URL",
    "POST /api/webhooks/escrow": "ESCROW_API_LOGIN",
}
"""Which routes name which variable when none is set."""


@asynccontextmanager
async def serving(settings: Settings, *missing: str) -> AsyncIterator[Running]:
    given = settings.model_copy(update={**WHOLE, **dict.fromkeys(missing)})
    async with running(given, timers=False, poll_seconds=0.1) as live:
        yield live


def turn_of(method: str, rule: str) -> int:
    ends = [place for place, beginning in enumerate(LAST, 2) if rule.startswith(beginning)]
    return ends[0] if ends else method == "DELETE"


def headers_of(access: Access) -> dict[str, str]:
    secret = {Access.CRON: CRON_SECRET, Access.METRICS: METRICS_TOKEN}.get(access)
    return {"Authorization": f"Bearer {secret}"} if secret else {}


def said_by(answer: httpx.Response) -> str:
    """Name the variable that an answer wants, or else the answer's status."""
    if answer.status_code != 503 or "json" not in answer.headers["content-type"]:
        return str(answer.status_code)
    said = answer.json()
    if said["code"] != "missing_credential":
        return str(said["code"])
    assert said["variable"] in said["detail"]
    return str(said["variable"])


async def answers_to(live: Running, who: Person, only: Collection[str] = ()) -> dict[str, str]:
    """Ask for all that is served, or only for some of it, as its owner, an operator and whoever else may ask."""
    things, found = await things_of(who), dict[str, str]()
    asked = sorted(routes_of(edge_of(live)), key=lambda one: turn_of(*one[:2]))
    for method, rule, access in asked:
        if any(one in rule for one in LEFT_OUT) or (only and f"{method} {rule}" not in only):
            continue
        body = None if method in {"GET", "DELETE"} else body_of(rule, things)
        sent: dict[str, Any] = {"data" if access is Access.PAGE else "json": body}
        if (method, rule) in QUERIES:
            sent["params"] = QUERIES[method, rule]
        path, headers = address_of(rule, things), headers_of(access)
        answer = await who.browser.request(method, path, headers=headers, **sent)
        found[f"{method} {rule}"] = said_by(answer)
    for path in edge_of(live).receivers:
        if only and f"POST {path}" not in only:
            continue
        found[f"POST {path}"] = said_by(await who.browser.post(path, content=b"{}"))
    return found


async def asked_without(
    settings: Settings, *missing: str, place: int, only: Collection[str] = ()
) -> dict[str, str]:
    async with (
        serving(settings, *missing) as live,
        browsing(live, f"192.0.2.{place}", Origin=WHOLE["base_url"]) as client,
    ):
        who = await person(client, f"operator{place}@example.com")
        return await answers_to(live, await made_operator(live.service.database, who), only)


@pytest.mark.timeout(1_800)
async def test_without_its_credential_a_route_names_it_and_the_rest_works(
    settings: Settings,
) -> None:
    credentials = [name for name in WHOLE if name != "base_url"]
    bare = await asked_without(settings, *credentials, place=1)
    named = {called: said for called, said in bare.items() if said.isupper()}
    assert named == NEEDED
    # What goes on without any of them goes on without each.
    assert [called for called, said in bare.items() if said == "500"] == []


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("missing", sorted(set(NEEDED.values())))
async def test_a_credential_that_is_missing_alone_is_named_by_its_routes_and_no_other(
    settings: Settings, missing: str
) -> None:
    found = await asked_without(settings, missing.lower(), place=1, only=NEEDED)
    named = {called: said for called, said in found.items() if said.isupper()}
    assert named == {called: missing for called, said in NEEDED.items() if said == missing}


WRONG: dict[str, dict[str, str]] = {
    "a session that nobody has": {"Cookie": f"__Host-session={'a' * 43}"},
    "a session that cannot be one": {"Cookie": "__Host-session=\x7f; __Host-session=b"},
    "a bearer token that nobody has": {"Authorization": "Bearer not-a-secret-of-anybody"},
    "a key that nobody has": {"X-Api-Key": "bei_" + "a" * 43},
    "a name and a password": {"Authorization": "Basic b3BlcmF0b3I6cGFzc3dvcmQ="},
    "an empty scheme": {"Authorization": "Bearer "},
}
BOT = {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}


@pytest.mark.timeout(1_800)
async def test_each_kind_of_wrong_credential_is_answered_as_none_is_and_bots_by_403(
    settings: Settings,
) -> None:
    """401 without a session, 403 for bots where people sign in, and never anything of who owns it (rules/requests#errors)."""
    async with (
        serving(settings) as live,
        browsing(live, "192.0.2.1", Origin=WHOLE["base_url"]) as owner,
        browsing(live, "192.0.2.2", Origin=WHOLE["base_url"]) as stranger,
    ):
        things = await things_of(await person(owner, "owner@example.com"))
        wrong: list[tuple[str, str, int]] = []
        for method, rule, access in routes_of(edge_of(live)):
            if access is Access.PUBLIC:
                continue
            body = None if method in {"GET", "DELETE"} else body_of(rule, things)
            sent: dict[str, Any] = {"data" if access is Access.PAGE else "json": body}
            path = address_of(rule, things)
            for kind, headers in WRONG.items():
                answer = await stranger.request(method, path, headers=headers, **sent)
                if answer.status_code not in REFUSALS[access][0]:
                    wrong.append((kind, f"{method} {rule}", answer.status_code))
            if access in {Access.SESSION, Access.PAGE, Access.ADMINISTRATOR}:
                answer = await stranger.request(method, path, headers=BOT, **sent)
                if answer.status_code != 403:
                    wrong.append(("a bot", f"{method} {rule}", answer.status_code))
        assert wrong == []
