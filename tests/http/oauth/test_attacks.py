import asyncio
import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.http.oauth.client import BASE, CALLBACK, CSRF, Client, challenge_of, said
from tests.http.oauth.conftest import Connect
from tests.http.people import PASSWORD, Browser, Clock, SignUp
from tolsey.http.web import policies
from tolsey.http.web.context import Service
from tolsey.storage.database import Database
from tolsey.storage.oauth import grants

pytestmark = pytest.mark.anyio


UNREGISTERED = (
    "https://evil.example/callback",
    "https://agent.example/callback/extra",
    "https://agent.example/callback/",
    "https://agent.example/Callback",
    "HTTPS://agent.example/callback",
    "https://Agent.example/callback",
    "https://user@agent.example/callback",
    "https://agent.example/callback#here",
    "https://agent.example:444/callback",
    "https://agent.example//callback",
    "https://agent.example/./callback",
    "https://agent.example/callback?x=1",
    "https://agent.example.evil.example/callback",
    "https://\u0430gent.example/callback",
    "http://agent.example/callback",
    "javascript:alert(1)",
)


async def test_a_browser_is_sent_nowhere_that_was_not_registered(connect: Connect) -> None:
    client, ann = await connect()
    for redirect_uri in UNREGISTERED:
        answer = await ann.browser.get(client.asked(redirect_uri=redirect_uri))
        assert answer.status_code == 400, redirect_uri
        assert "location" not in answer.headers, redirect_uri
        assert "evil.example" not in answer.text, redirect_uri


PORTS = (
    ("http://127.0.0.1:1/cb", "http://127.0.0.1:9/cb", 303),
    ("http://[::1]:1/cb", "http://[::1]:9/cb", 303),
    ("http://127.0.0.1:1/cb", "http://127.0.0.1:9/other", 400),
    ("http://127.0.0.1:1/cb", "http://localhost:1/cb", 400),
    ("http://localhost/cb", "http://localhost:9/cb", 303),
    ("http://localhost:1/cb", "http://localhost:1/other", 400),
    ("http://localhost:1/cb", "http://localhost.evil.example:1/cb", 400),
    ("http://localhost:1/cb", "https://localhost:9/cb", 400),
    ("https://agent.example:1/cb", "https://agent.example:9/cb", 400),
    ("http://127.0.0.1:1/cb", "http://user@127.0.0.1:9/cb", 400),
    ("http://localhost:3000/cb", "http://LOCALHOST:3000/cb", 400),
    ("http://localhost:3000/cb", "http://localhost:/cb", 400),
    ("http://localhost:3000/cb", "http://localhost:0/cb", 400),
    ("http://localhost:3000/cb", "http://localhost:03000/cb", 400),
    ("http://localhost:3000/cb", "http://localhost:65536/cb", 400),
    ("http://localhost:3000/cb", "http://localhost:65535/cb", 303),
    ("http://localhost:3000/cb", "http://localhost:3001/cb?", 400),
    ("http://localhost:3000/cb?a=1", "http://localhost:3001/cb?a=1", 303),
    ("http://localhost:3000/cb?a=1", "http://localhost:3001/cb?a=2", 400),
    ("http://localhost:3000", "http://localhost:3001", 303),
    ("http://localhost:3000", "http://localhost:3001/", 400),
)
"""What was registered, what is asked for, and the answer."""


async def test_only_the_port_of_a_loopback_address_is_free(connect: Connect) -> None:
    client, ann = await connect()
    for registered, asked, status in PORTS:
        client.redirect_uri = registered
        assert (await client.register()).status_code == 201
        answer = await ann.browser.get(client.asked(redirect_uri=asked))
        assert answer.status_code == status, f"{registered}, asked for {asked}"


DANGEROUS: tuple[Any, ...] = (
    ["javascript:alert(1)"],
    ["data:text/html,hi"],
    ["file:///etc/passwd"],
    ["vbscript:x"],
    ["intent://callback#Intent;end"],
    ["jar:https://agent.example/a!/b"],
    ["http://evil.example/cb"],
    ["https://user:word@agent.example/cb"],
    ["https://agent.example/cb#here"],
    ["https:///cb"],
    ["https://agent.example/c b"],
    ["https://agent.example\\@evil.example/cb"],
    ["JavaScript:alert(1)"],
    ["ms-msdt:/id PCWDiagnostic"],
    ["ms-msdt://x"],
    ["ms-officecmd:/x"],
    ["search-ms:/query=x"],
    ["shell:/startup"],
    ["shell://startup"],
    ["feed:javascript:alert(1)"],
    ["feed:/javascript:alert(1)"],
    ["view-source:https://agent.example/"],
    ["itms-services://?action=download"],
    ["ssh://evil.example/"],
    ["cursor:javascript:alert(1)"],
    ["cursor:"],
    ["/callback"],
    [""],
    [],
    [CALLBACK, "data:,"],
    "https://agent.example/cb",
    [7],
)


async def test_a_dangerous_address_cannot_be_registered(connect: Connect) -> None:
    client, _ = await connect()
    for uris in DANGEROUS:
        answer = await client.register(redirect_uris=uris)
        assert answer.status_code == 400, uris
        assert answer.json()["error"] == "invalid_redirect_uri", uris


async def test_registrations_have_a_size_and_a_rate(
    connect: Connect, service: Service, browser: Browser
) -> None:
    client, _ = await connect()
    client.web = browser("203.0.113.7")
    large = await client.web.post("/oauth/register", content=b'{"x": "' + b"a" * 70_000 + b'"}')
    assert large.status_code == 413
    long = [f"https://agent.example/{number}/{'a' * 1_900}" for number in range(5)]
    answer = await client.register(redirect_uris=long)
    assert answer.json()["error"] == "invalid_redirect_uri"
    limit = policies.AGENT_REGISTRATION
    left = limit.limit - 3
    assert (await service.limits.admit((limit,), "address:203.0.113.7", left)).allowed
    statuses = [(await client.register()).status_code for _ in range(2)]
    assert statuses == [201, 429]


@pytest.mark.parametrize(
    "changed",
    [
        {"code_challenge": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"code_challenge": "a" * 44},
    ],
)
async def test_a_request_without_a_proof_key_is_sent_back(
    connect: Connect, changed: dict[str, str | None]
) -> None:
    client, ann = await connect()
    reported = await client.decided(ann, **changed)
    assert (reported["error"], reported["state"], reported["iss"]) == (
        "invalid_request",
        "s1",
        BASE,
    )


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"code_challenge": None}, "invalid_request"),
        ({"resource": None}, "invalid_target"),
    ],
)
async def test_a_stranger_is_sent_nowhere_before_they_sign_in(
    connect: Connect, browser: Browser, changed: dict[str, str | None], error: str
) -> None:
    client, ann = await connect()
    asked = client.asked(**changed)
    assert said((await ann.browser.get(asked)).headers["location"])["error"] == error

    stranger = browser()
    met = await stranger.get(asked, follow_redirects=True)
    assert [step.headers["location"].partition("/c")[0] for step in met.history] == [
        "/oauth",
        "/login?next=/oauth",
    ]
    assert "agent.example" not in met.text
    form = {"email": ann.email, "password": PASSWORD, "next": met.request.url.params["next"]}
    page = await stranger.post("/login", data=form, follow_redirects=True)
    assert page.request.url.path.startswith("/oauth/consent/")
    assert "did not ask for it in a way that can be answered" in page.text
    assert "sign out" not in page.text.partition("<main")[2]

    person = replace(ann, browser=stranger)
    reported = await client.answered(person, page, decision="allow")
    assert (reported["error"], reported["state"], reported["iss"]) == (error, "s1", BASE)
    assert (await stranger.get(page.request.url)).status_code == 404


@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        ("b" * 48, "invalid_grant"),
        ("b" * 42, "invalid_grant"),
        (None, "invalid_request"),
        ("", "invalid_request"),
    ],
)
async def test_a_code_without_its_verifier_is_worth_nothing(
    connect: Connect, verifier: str | None, error: str
) -> None:
    client, ann = await connect()
    code = (await client.decided(ann))["code"]
    answer = await client.redeem(code, code_verifier=verifier)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


async def test_a_code_works_once_and_its_second_use_ends_everything(connect: Connect) -> None:
    client, ann = await connect()
    code = (await client.decided(ann))["code"]
    tokens = (await client.redeem(code)).json()
    assert (await client.call(tokens["access_token"])).status_code == 200
    again = await client.redeem(code)
    assert again.json()["error"] == "invalid_grant"
    assert (await client.call(tokens["access_token"])).status_code == 401


async def test_of_two_who_bring_a_code_at_once_one_gets_tokens(connect: Connect) -> None:
    client, ann = await connect()
    code = (await client.decided(ann))["code"]
    answers = await asyncio.gather(*(client.redeem(code) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400, 400]


async def test_a_code_is_only_its_clients_for_a_minute_at_its_address(
    connect: Connect, clock: Clock
) -> None:
    client, ann = await connect()
    other = Client(client.web, client.store_id, verifier=client.verifier)
    await other.register()
    code = (await client.decided(ann))["code"]
    assert (await other.redeem(code)).json()["error"] == "invalid_grant"
    elsewhere = await client.redeem(code, redirect_uri="https://agent.example/other")
    assert elsewhere.json()["error"] == "invalid_grant"
    clock.advance(timedelta(seconds=61))
    assert (await client.redeem(code)).json()["error"] == "invalid_grant"


async def test_a_refresh_token_that_comes_again_later_ends_the_whole_grant(
    connect: Connect, clock: Clock
) -> None:
    client, ann = await connect()
    first = await client.tokens(ann)
    second = (await client.refresh(first["refresh_token"])).json()
    clock.advance(timedelta(seconds=11))
    assert (await client.call(second["access_token"])).status_code == 200
    assert (await client.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await client.call(second["access_token"])).status_code == 401
    assert (await client.refresh(second["refresh_token"])).json()["error"] == "invalid_grant"


async def test_windows_of_one_agent_that_refresh_at_once_get_the_same_tokens(
    connect: Connect, clock: Clock
) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    token = tokens["refresh_token"]
    answers = await asyncio.gather(*(client.refresh(token) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4
    first = answers[0].json()
    assert [answer.json() for answer in answers] == [first] * 4
    clock.advance(timedelta(seconds=9))
    late = (await client.refresh(token, scope="store:read")).json()
    assert late == {**first, "expires_in": first["expires_in"] - 9}
    assert (await client.call(first["access_token"])).status_code == 200
    assert (await client.refresh(first["refresh_token"])).status_code == 200


async def test_the_moment_of_grace_is_no_way_past_what_a_refresh_must_prove(
    connect: Connect,
) -> None:
    client, ann = await connect()
    other = Client(client.web, client.store_id)
    await other.register()
    token = (await client.tokens(ann))["refresh_token"]
    given = (await client.refresh(token)).json()
    assert (await other.refresh(token)).json()["error"] == "invalid_grant"
    wide = await client.refresh(token, scope="store:read billing:read")
    assert wide.json()["error"] == "invalid_scope"
    moved = await client.refresh(token, resource=f"{BASE}/api/mcp/{client.store_id}")
    assert moved.json()["error"] == "invalid_target"
    revoked = {"client_id": client.client_id, "token": given["access_token"]}
    assert (await client.web.post("/oauth/revoke", data=revoked)).status_code == 200
    assert (await client.refresh(token)).json()["error"] == "invalid_grant"


async def test_a_refresh_never_widens_nor_moves_what_was_allowed(connect: Connect) -> None:
    client, ann = await connect()
    other = Client(client.web, client.store_id)
    await other.register()
    token = (await client.tokens(ann))["refresh_token"]
    wide = await client.refresh(token, scope="store:read billing:read")
    assert wide.json()["error"] == "invalid_scope"
    moved = await client.refresh(token, resource=f"{BASE}/api/mcp/{client.store_id}")
    assert moved.json()["error"] == "invalid_target"
    stolen = await other.refresh(token)
    assert stolen.json()["error"] == "invalid_grant"
    assert (await client.refresh(token)).status_code == 200


@pytest.mark.parametrize(
    "resource",
    [
        None,
        "https://evil.example/api/mcp/v1/{store}",
        "{base}/api/mcp/v1/{store}?x=1",
        "{base}/api/mcp/v1/{store}#x",
        "{base}/api/mcp/v2/{store}",
        "{base}/api/mcp/v1/",
        "{base}",
        "{base}/api/mcp/v1/store_unknown",
    ],
)
async def test_a_resource_that_is_not_a_store_of_the_users_is_refused(
    connect: Connect, resource: str | None
) -> None:
    client, ann = await connect()
    named = resource and resource.format(base=BASE, store=client.store_id)
    assert (await client.decided(ann, resource=named))["error"] == "invalid_target"


async def test_a_strangers_store_is_refused_as_if_it_were_none(
    connect: Connect, sign_up: SignUp
) -> None:
    client, _ = await connect()
    mallory = await sign_up("mallory@example.com")
    reported = await client.decided(mallory)
    unknown = await client.decided(mallory, resource=f"{BASE}/api/mcp/v1/store_unknown")
    assert reported["error"] == unknown["error"] == "invalid_target"
    assert reported["error_description"] == unknown["error_description"]


async def test_a_token_opens_its_own_store_only(connect: Connect) -> None:
    client, ann = await connect()
    other, eve = await connect("eve@example.com")
    mine, theirs = await client.tokens(ann), await other.tokens(eve)
    path = f"/api/mcp/v1/{other.store_id}"
    assert (await client.call(mine["access_token"], path)).status_code == 401
    assert (await client.call(theirs["access_token"])).status_code == 401
    assert (await client.call(mine["refresh_token"])).status_code == 401


async def test_an_unknown_store_is_refused_like_a_known_one(connect: Connect) -> None:
    client, _ = await connect()
    known = await client.call("wrong")
    unknown = await client.call("wrong", "/api/mcp/v1/store_unknown")
    assert (known.status_code, unknown.status_code) == (401, 401)
    assert known.json()["detail"] == unknown.json()["detail"]


async def test_only_a_bearer_token_in_the_header_opens(connect: Connect) -> None:
    client, ann = await connect()
    token = (await client.tokens(ann))["access_token"]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    path = f"/api/mcp/v1/{client.store_id}"
    query = await client.web.post(f"{path}?access_token={token}", json=message)
    cookie = await ann.browser.post(path, json=message)
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    doubled = await client.web.post(path, json=message, headers=twice)
    basic = await client.web.post(path, json=message, headers={"Authorization": f"Basic {token}"})
    key = await client.web.post(path, json=message, headers={"Authorization": "Bearer bei_key"})
    assert [one.status_code for one in (query, cookie, doubled, basic, key)] == [401] * 5


async def test_an_agents_token_opens_no_other_route(connect: Connect) -> None:
    client, ann = await connect()
    token = (await client.tokens(ann))["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    for path in ("/api/auth/session", "/api/stores", "/account/agents"):
        answer = await client.web.get(path, headers=headers)
        assert answer.status_code in {303, 401}


async def test_a_consent_needs_its_own_form(connect: Connect) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    path = page.request.url.path
    csrf = CSRF.search(page.text)
    assert csrf
    allow = {"decision": "allow"}
    bare = await ann.browser.post(path, data=allow)
    foreign = await ann.browser.post(path, data={**allow, "csrf": "0" * 64})
    other = await client.consent_page(ann)
    swapped = await ann.browser.post(other.request.url.path, data={**allow, "csrf": csrf[1]})
    outside = await ann.browser.post(
        path, data={**allow, "csrf": csrf[1]}, headers={"Origin": "https://evil.example"}
    )
    by_get = await ann.browser.get(f"{path}?decision=allow&csrf={csrf[1]}")
    assert [one.status_code for one in (bare, foreign, swapped, outside)] == [403] * 4
    assert by_get.status_code == 200
    assert "location" not in by_get.headers


async def test_a_form_changes_what_is_let_out_and_nothing_else(connect: Connect) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    csrf = CSRF.search(page.text)
    assert csrf
    form = {
        "csrf": csrf[1],
        "decision": "allow",
        "scope": ["billing:read", "orders:read"],
        "redirect_uri": "https://evil.example",
        "resource": f"{BASE}/api/mcp/v1/other",
    }
    answer = await ann.browser.post(page.request.url.path, data=form)
    assert answer.headers["location"].startswith(CALLBACK)
    code = answer.headers["location"].partition("code=")[2].partition("&")[0]
    tokens = (await client.redeem(code)).json()
    assert tokens["scope"] == "orders:read billing:read"


@pytest.mark.parametrize("chosen", [[], ["payouts:read"], ["store:read", "payouts:read"]])
async def test_a_form_with_no_box_ticked_or_one_that_is_not_ours_allows_nothing(
    connect: Connect, chosen: list[str]
) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    reported = await client.answered(ann, page, "allow", chosen)
    assert reported["error"] == "access_denied"


async def test_a_decision_is_made_once(connect: Connect) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    csrf = CSRF.search(page.text)
    assert csrf
    form = {"csrf": csrf[1], "decision": "allow", "scope": "store:read"}
    answers = [await ann.browser.post(page.request.url.path, data=form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 404]


async def test_a_request_waits_ten_minutes(connect: Connect, clock: Clock) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    clock.advance(timedelta(minutes=11))
    assert (await ann.browser.get(page.request.url.path)).status_code == 404


async def test_the_consent_page_cannot_be_framed_cached_or_leaked(connect: Connect) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "script" not in page.text.lower().replace("description", "")
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] in {"no-referrer", "same-origin"}


async def test_no_page_for_people_can_be_framed(connect: Connect, browser: Browser) -> None:
    client, ann = await connect()
    stranger = browser()
    pages = [
        await client.consent_page(ann),
        await ann.browser.get("/account/agents"),
        await ann.browser.get("/oauth/consent/closed"),
        await ann.browser.get(client.asked(client_id="nobody")),
        *[await stranger.get(path) for path in ("/login", "/signup")],
    ]
    assert [page.headers["x-frame-options"] for page in pages] == ["DENY"] * len(pages)
    assert all("frame-ancestors 'none'" in one.headers["content-security-policy"] for one in pages)


async def test_what_a_client_calls_itself_is_only_text(connect: Connect) -> None:
    client, ann = await connect()
    await client.register(client_name="<img src=x onerror=alert(1)>")
    page = await client.consent_page(ann)
    assert "<img" not in page.text
    assert "&lt;img" in page.text


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "resource", "scope"])
async def test_a_parameter_that_is_sent_twice_is_refused(connect: Connect, name: str) -> None:
    client, ann = await connect()
    answer = await ann.browser.get(f"{client.asked()}&{urlencode({name: 'x'})}")
    assert answer.status_code == 400
    form = f"grant_type=refresh_token&{name}=a&{name}=b"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    reported = await client.web.post("/oauth/token", content=form, headers=headers)
    assert reported.json()["error"] == "invalid_request"


async def test_a_client_proves_itself_as_it_registered(connect: Connect) -> None:
    client, _ = await connect(token_endpoint_auth_method="client_secret_basic")
    form = {"grant_type": "refresh_token", "refresh_token": "x", "resource": client.resource}
    right = (client.client_id, client.secret or "")
    public = Client(client.web, client.store_id)
    await public.register()
    named = {**form, "client_id": client.client_id}
    answers = [
        await client.web.post("/oauth/token", data=named),
        await client.web.post("/oauth/token", data={**named, "client_secret": client.secret}),
        await client.web.post("/oauth/token", data=form, auth=(client.client_id, "wrong")),
        await client.web.post("/oauth/token", data={**form, "client_secret": "x"}, auth=right),
        await client.web.post("/oauth/token", data=form, auth=(public.client_id, "x")),
        await client.web.post("/oauth/token", data={**form, "client_id": "client_gone"}),
        await client.web.post("/oauth/token", data=form),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert "www-authenticate" in answer.headers
    known = await client.web.post("/oauth/token", data=form, auth=right)
    assert known.json()["error"] == "invalid_grant"


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke", "/oauth/introspect"])
@pytest.mark.parametrize("sent", ["a\x00b:x", "a%00b:x", "a:x%00", "a:\x00"])
async def test_credentials_with_a_nul_prove_nobody(connect: Connect, path: str, sent: str) -> None:
    client, _ = await connect()
    headers = {"Authorization": f"Basic {base64.b64encode(sent.encode()).decode()}"}
    answer = await client.web.post(path, data={"token": "x"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


async def test_a_client_that_was_let_go_of_is_told_to_register_again(
    connect: Connect, database: Database
) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    await database.execute("DELETE FROM oauth_clients")
    answer = await client.refresh(tokens["refresh_token"])
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert (await ann.browser.get(client.asked())).status_code == 400


async def test_nobody_revokes_or_asks_about_what_is_anothers(connect: Connect) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    other = Client(client.web, client.store_id)
    await other.register(token_endpoint_auth_method="client_secret_post")
    proof = {"client_id": other.client_id, "client_secret": other.secret}
    for token in (tokens["access_token"], tokens["refresh_token"], "nothing"):
        revoked = await client.web.post("/oauth/revoke", data={**proof, "token": token})
        assert revoked.status_code == 200
        reported = await client.web.post("/oauth/introspect", data={**proof, "token": token})
        assert reported.json() == {"active": False}
    assert (await client.call(tokens["access_token"])).status_code == 200
    public = {"client_id": client.client_id, "token": tokens["access_token"]}
    assert (await client.web.post("/oauth/introspect", data=public)).status_code == 401


async def test_a_grant_of_somebody_else_cannot_be_ended(connect: Connect, sign_up: SignUp) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    page = await ann.browser.get("/account/agents")
    action = "/account" + page.text.partition('action="/account')[2].partition('"')[0]
    mallory = await sign_up("mallory@example.com")
    csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    answer = await mallory.browser.post(action, data={"csrf": csrf})
    assert answer.status_code == 403
    assert (await client.call(tokens["access_token"])).status_code == 200


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE users SET banned = true",
        "UPDATE users SET deletion_requested_at = now()",
        "DELETE FROM members",
        "UPDATE stores SET deleted_at = now()",
    ],
)
async def test_who_is_no_longer_welcome_finds_a_closed_door(
    connect: Connect, database: Database, sql: str
) -> None:
    client, ann = await connect()
    token = (await client.tokens(ann))["access_token"]
    await database.execute(sql)
    assert await grants.admitted(database, token, datetime.now(UTC)) is None
    assert (await client.call(token)).status_code == 401


async def test_no_secret_is_kept_as_it_is(connect: Connect, database: Database) -> None:
    client, ann = await connect(token_endpoint_auth_method="client_secret_post")
    page = await client.consent_page(ann)
    request_id = page.request.url.path.rpartition("/")[2]
    code = (await client.decided(ann))["code"]
    tokens = (await client.redeem(code, client_secret=client.secret)).json()
    secrets = [request_id, code, tokens["access_token"], tokens["refresh_token"], client.secret]
    tables = await database.fetch(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    kept = ""
    for table in tables:
        rows = await database.fetch(f'SELECT t::text AS row FROM "{table["relname"]}" t')  # noqa: S608 - a name from the catalogue
        kept += "\n".join(row["row"] for row in rows)
    assert client.client_id in kept
    for secret in secrets:
        assert secret
        assert secret not in kept
    assert challenge_of(client.verifier) in kept


async def test_strangers_are_counted(connect: Connect) -> None:
    client, ann = await connect()
    token = (await client.tokens(ann))["access_token"]
    statuses = [(await client.call("wrong")).status_code for _ in range(101)]
    assert (statuses[0], statuses[-1]) == (401, 429)
    assert (await client.call(token)).status_code == 200


async def test_calls_are_counted_against_the_organizations_plan(connect: Connect) -> None:
    client, ann = await connect()
    token = (await client.tokens(ann))["access_token"]
    answers = [await client.call(token) for _ in range(51)]
    assert "q=50" in answers[0].headers["ratelimit-policy"]
    assert answers[49].status_code == 200
    refused = answers[50]
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    error = refused.json()
    assert error["id"] == 1
    assert error["error"]["data"]["code"] == "too_many_requests"


async def test_pages_of_anywhere_may_use_the_endpoints_that_take_no_cookie(
    connect: Connect, browser: Browser
) -> None:
    client, ann = await connect()
    page = browser(Origin="https://inspector.example")
    answer = await page.options("/oauth/token")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in answer.headers
    for path in ("/.well-known/oauth-authorization-server",):
        assert (await page.get(path)).headers["access-control-allow-origin"] == "*"
    consent = await client.consent_page(ann)
    assert "access-control-allow-origin" not in consent.headers
