"""Every route of the whole application, tried by no one and by a stranger."""

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.http.people import PASSWORD, Browser, Person, SignUp, settings_of
from tolsey.http.web.access import Access, access_of
from tolsey.http.web.edge import Edge
from tolsey.service import running

PARAMETER = re.compile(r"<(?:(?:any\(([^,)]+)[^)]*\)|[a-z]+):)?([a-z_]+)>")
REFUSALS = {
    Access.SESSION: ({401}, {403, 404}),
    Access.PAGE: ({303}, {403, 404}),
    Access.ADMINISTRATOR: ({401}, {403}),
    Access.CRON: ({401}, {401}),
    Access.METRICS: ({401}, {401}),
    Access.API_KEY: ({401}, {401}),
    Access.INTERNAL: ({404}, {404}),
}
OWN = {
    ("GET", "/api/auth/session"),
    ("GET", "/api/auth/sessions"),
    ("POST", "/api/auth/password"),
    ("GET", "/api/organizations"),
    ("GET", "/api/account/api-keys"),
    ("GET", "/api/account/export"),
    ("DELETE", "/api/account"),
    ("POST", "/api/organizations"),
    ("GET", "/api/stores"),
    ("GET", "/api/sell/listings"),
    ("GET", "/api/vendor/marketplace/deals"),
    ("GET", "/api/marketplace/watched"),
    ("GET", "/market/watched"),
    ("GET", "/deals"),
    ("GET", "/api/payouts/account"),
    ("GET", "/api/affiliate/codes"),
    ("GET", "/account/agents"),
    ("GET", "/account/keys"),
    ("GET", "/account/sessions"),
    ("POST", "/account/sessions/end-others"),
    ("GET", "/account"),
    ("GET", "/account/delete"),
    ("POST", "/account/delete"),
    ("GET", "/account/mails"),
    ("POST", "/account/mails"),
    ("POST", "/inbox/seen"),
    ("POST", "/account/password"),
}
"""Routes that name no one's thing: a stranger gets what is the stranger's own."""
UNSET = {
    ("POST", "/api/payouts/account"),
    ("POST", "/api/affiliate/codes"),
    ("POST", "/selling/payout-account"),
}
"""Routes of one's own that want a credential which is not set here."""

ENDING = {"/api/account": 1, "/account/delete": 2}
"""What deletes an account, in the order in which it is tried."""

QUERIES = {("POST", "/api/marketplace/deals/<deal_id>/files"): {"name": "books.pdf"}}
"""What a route wants to be told beside its path, whoever calls."""

OF_ORGANIZATION = {
    *("/api/credits", "/api/credits/ledger"),
    *("/api/payments/subscription", "/api/payments/portal"),
    *("/billing", "/billing/change", "/billing/cancel"),
    *("/people", "/people/<user_id>", "/stores", "/selling"),
    *("/stores/new", "/selling/new"),
    "/api/sell/account",
}
"""Routes that a query tells whose thing is asked for."""

PRICE = {"amount": 1_000_000, "currency": "USD"}
CREDENTIALS = {
    "shopDomain": "corner.myshopify.com",
    "clientId": "corner-app",
    "clientSecret": "shpss_corner",
}


@pytest.fixture
async def edge(database_url: str, redis_url: str) -> AsyncIterator[Any]:
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        cron_secret="c" * 32,
        metrics_token="m" * 32,
        llm_base_url="http://127.0.0.1:9",  # a stranger is refused before any model is asked
        llm_model="none",
    )
    async with running(settings, timers=False) as started:
        yield started.app


def routes_of(edge: Edge) -> Iterator[tuple[str, str, Access]]:
    """Every method of every route, with who may call it; those that end a caller's session are last."""
    app: Any = edge.application
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: ENDING.get(rule.rule, 0)):
        access = access_of(app.view_functions[rule.endpoint])
        assert access is not None, f"{rule.rule} does not say who may call it"
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
            yield method, rule.rule, access


async def things_of(owner: Person) -> dict[str, str]:
    """Name one thing of the owner for every parameter that a path of the application has."""
    store = (await owner.store()).json()
    body = {"organizationId": owner.organization_id, "storeId": store["id"], "title": "Corner"}
    made = await owner.browser.post("/api/sell/listings", json=body)
    assert made.status_code == 201, made.text
    return {
        "organization_id": owner.organization_id,
        "user_id": owner.user_id,
        "invitation_id": "inv_1",
        "key_id": "key_1",
        "domain": "shop.example",
        "scan_id": "scan_1",
        "store_id": store["id"],
        "provider": "commerce",
        "listing_id": made.json()["id"],
        "event_id": "evt_1",
        "event": "withdraw",
        "operation_id": "op_1",
        "change_set": "op_1",
        "resource": f"api/mcp/v1/{store['id']}",
        "request_id": "nobody-asked",
        "mail_id": "mail_1",
        "message_id": "message_1",
        "key": "brand.voice",
        "file_id": "file_1",
        "session_id": "0" * 32,
        "token": "of-no-one",
        "grant_id": "grant_1",
        "slug": "corner",
        "kind": "store",
        "id": store["id"],
        "name": "sync-verified-revenue",
        "slot": "7",
        "step": "commerce-history",
        "deal_id": "deal_1",
        "offer_id": "offer_1",
        "signature_id": "sig_1",
        "item": "asset-1",
        "question": "name",
        "milestone": "brand.kit",
        "fingerprint": "0" * 16,
        "incident_id": "inc_1",
        "group": "selling",
        "operation": "create_listing",
    }


def body_of(rule: str, things: dict[str, str]) -> dict[str, Any]:
    """Write a body that the route would accept from the owner."""
    foreign = {"organizationId": things["organization_id"]}
    bodies: dict[str, dict[str, Any]] = {
        "/api/stores": {**foreign, "name": "Theirs"},
        "/account/keys": {**foreign, "scope": "intelligence:read", "lifetimeDays": "90"},
        "/account/password": {"current": PASSWORD, "password": PASSWORD},
        "/api/auth/password": {"current": PASSWORD, "password": PASSWORD},
        "/api/account/api-keys": {**foreign, "scopes": ["intelligence:read"]},
        "/api/organizations": {"name": "Theirs"},
        "/api/organizations/<organization_id>": {"name": "Theirs"},
        "/api/organizations/<organization_id>/rules": {"open": True},
        "/api/organizations/<organization_id>/members": {
            "email": "stranger@example.com",
            "role": "owner",
        },
        "/api/integrations/commerce/custom-app": {"storeId": things["store_id"], **CREDENTIALS},
        "/api/sell/listings": {**foreign, "title": "Theirs"},
        "/api/sell/listings/<listing_id>": {"title": "Theirs"},
        "/api/sell/listings/<listing_id>/verify/commerce": CREDENTIALS,
        "/api/sell/listings/<listing_id>/verify/payments": {"restrictedKey": "rk_test_canary"},
        "/api/marketplace/listings/<listing_id>/access": foreign,
        "/api/marketplace/deals/<deal_id>/advance": {
            "event": "access.approve",
            "expectedStage": "INQUIRY",
        },
        "/api/marketplace/deals/<deal_id>/offers": {"amount": PRICE},
        "/api/marketplace/deals/<deal_id>/transfer-items/<item>": {"verdict": "accepted"},
        "/api/marketplace/offers/<offer_id>/counter": {"amount": PRICE},
        "/api/vendor/marketplace/deals/<deal_id>/request-signature": {"documentType": "NDA"},
        "/api/marketplace/signatures/<signature_id>": {
            "typedName": "A Stranger",
            "consent": True,
            "consentVersion": "esign-consent-2026-01",
            "documentSha256": "0" * 64,
        },
        "/api/marketplace/signatures/<signature_id>/decline": {"reason": "No."},
        "/api/marketplace/signatures/<signature_id>/void": {"reason": "No."},
        "/api/affiliate/redeem": {**foreign, "code": "BCDFGHJKLM"},
        "/api/payments/checkout": {**foreign, "plan": "pro", "cadence": "monthly"},
        "/api/payments/change": {**foreign, "plan": "pro", "cadence": "monthly"},
        "/api/payments/cancel": foreign,
        "/api/payments/portal": foreign,
        "/api/sponsor/checkout": foreign,
        "/stores/new": {**foreign, "name": "Theirs"},
        "/stores/<store_id>/connect": CREDENTIALS,
        "/api/stores/<store_id>/memory/facts/<key>": {"value": "Theirs"},
        "/api/wizard/store/launch": {
            "storeId": things["store_id"],
            "spec": {"businessName": "Theirs", "country": "US"},
        },
        "/api/wizard/skill/run": {"storeId": things["store_id"], "skill": "brand-kit"},
        "/api/wizard/store/checkpoint": {
            "storeId": things["store_id"],
            "milestone": "brand.approve",
            "action": "done",
        },
        "/api/wizard/store/<store_id>": {"spec": {"businessName": "Theirs", "country": "US"}},
        "/api/wizard/store/provision": {"storeId": things["store_id"]},
        "/api/wizard/store/transfer": {
            "storeId": things["store_id"],
            "email": "eve@example.com",
        },
        "/api/stores/<store_id>/privacy": {"email": "buyer@example.com", "action": "erase"},
        "/api/stores/<store_id>/memory/messages": {"text": "Theirs"},
        "/api/stores/<store_id>/competitors": {"domain": "shop.example"},
        "/stores/<store_id>/competitors": {"domain": "shop.example"},
        "/api/sell/listings/<listing_id>/verify/calibration": {"agreed": True},
        "/api/stores/<store_id>/memory/messages/<message_id>": {"text": "Theirs"},
        "/selling/new": {**foreign, "title": "Theirs", "price": "1", "currency": "USD"},
        "/selling/<listing_id>/prove/<any(shop, processor):source>": {
            **CREDENTIALS,
            "restrictedKey": "rk_test_canary",
        },
        "/api/chat": {
            "storeId": things["store_id"],
            "messages": [{"role": "user", "content": "Hello"}],
        },
        "/api/chat/plans": {
            "storeId": things["store_id"],
            "plan": "sealed",
            "decision": "confirm",
        },
        "/api/credits/purchase": {**foreign, "amount": {"amount": 500, "currency": "USD"}},
        "/api/admin/refunds": {**foreign, "paymentRef": "pi_1", "reason": "none"},
        "/api/admin/credits/adjust": {**foreign, "amount": 1_000_000, "reason": "none"},
        "/api/admin/shards/<int:slot>/move": {"to": None, "reason": "none"},
    }
    if rule.startswith(("/billing/", "/people/")):
        return {**foreign, "plan": "pro", "cadence": "monthly", "amount": "50"}
    return bodies.get(rule, {"reason": "none"})


def address_of(rule: str, things: dict[str, str]) -> str:
    """Fill a path with the owner's things; one that no one can name fails the walk."""
    names = {name for choice, name in PARAMETER.findall(rule) if not choice}
    assert names <= set(things), f"{rule}: say in things_of what {names - set(things)} is"
    path = PARAMETER.sub(lambda match: match[1] or things[match[2]], rule)
    assert "<" not in path, f"{rule}: a parameter this walk cannot read"
    if rule in OF_ORGANIZATION:
        return f"{path}?organizationId={things['organization_id']}"
    if rule.endswith("/memory/search"):
        return f"{path}?query=voice"
    return f"{path}?storeId={things['store_id']}" if rule.endswith("/custom-app") else path


async def test_no_route_lets_a_stranger_in(edge: Edge, sign_up: SignUp, browser: Browser) -> None:
    owner = await sign_up("owner@example.com")
    stranger = await sign_up("stranger@example.com")
    things = await things_of(owner)
    tried = 0
    for method, rule, access in routes_of(edge):
        called = f"{method} {rule}"
        path = address_of(rule, things)
        body = None if method in {"GET", "DELETE"} else body_of(rule, things)
        sent: dict[str, Any] = {"data" if access is Access.PAGE else "json": body}
        if (method, rule) in QUERIES:
            sent["params"] = QUERIES[method, rule]
        answer = await browser().request(method, path, **sent)
        if access is Access.PUBLIC:
            assert answer.status_code < 500, called
            continue
        anonymous, foreign = REFUSALS[access]
        assert answer.status_code in anonymous, f"{called} let no one in: {answer.text}"
        answer = await stranger.browser.request(method, path, **sent)
        if (method, rule) in OWN:
            assert answer.status_code in {200, 201, 202, 204, 303}, called
        elif (method, rule) in UNSET:
            assert answer.status_code == 503, called
        else:
            assert answer.status_code in foreign, f"{called} let a stranger in: {answer.text}"
            kind = "text/html" if access is Access.PAGE else "application/problem+json"
            assert answer.headers["content-type"].startswith(kind)
        shown = [value for name, value in things.items() if name.endswith("_id")]
        assert not [thing for thing in shown if thing in answer.text], f"{called} shows a thing"
        tried += 1
    assert tried > 40


async def test_an_api_key_is_nobody_on_every_other_route(
    edge: Edge, sign_up: SignUp, browser: Browser
) -> None:
    owner = await sign_up("owner@example.com")
    things = await things_of(owner)
    body = {
        "organizationId": owner.organization_id,
        "scopes": ["intelligence:read", "intelligence:write"],
    }
    made = await owner.browser.post("/api/account/api-keys", json=body)
    key = made.json()["value"]
    program = browser(Authorization=f"Bearer {key}"), browser(**{"X-Api-Key": key})
    for client in program:
        del client.headers["Origin"]
        for method, rule, access in routes_of(edge):
            if access in {Access.PUBLIC, Access.API_KEY}:
                continue
            sent: dict[str, Any] = {"data" if access is Access.PAGE else "json": None}
            if method not in {"GET", "DELETE"}:
                sent = dict.fromkeys(sent, body_of(rule, things))
            answer = await client.request(method, address_of(rule, things), **sent)
            assert answer.status_code in REFUSALS[access][0], f"a key opens {method} {rule}"
        for path in (f"/api/mcp/v1/{things['store_id']}", f"/api/mcp/{things['store_id']}"):
            assert (await client.post(path, json={})).status_code == 401
    assert (await owner.browser.get(f"/api/stores/{things['store_id']}")).status_code == 200


@pytest.mark.parametrize("kind", ["organizations", "stores", "sell/listings"])
async def test_what_is_foreign_and_what_is_absent_look_the_same(sign_up: SignUp, kind: str) -> None:
    owner, stranger = await sign_up("owner@example.com"), await sign_up("stranger@example.com")
    things = await things_of(owner)
    foreign = {
        "organizations": things["organization_id"],
        "stores": things["store_id"],
        "sell/listings": things["listing_id"],
    }[kind]
    absent = foreign + "0"
    headers = {"X-Request-Id": "same"}
    first = await stranger.browser.get(f"/api/{kind}/{foreign}", headers=headers)
    second = await stranger.browser.get(f"/api/{kind}/{absent}", headers=headers)
    assert first.status_code == second.status_code == 404
    assert first.content == second.content
    assert dict(first.headers) == dict(second.headers)
