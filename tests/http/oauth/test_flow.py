from datetime import timedelta
from typing import Any

import pytest

from tests.http.oauth.client import BASE, CALLBACK, boxes
from tests.http.oauth.conftest import Connect
from tests.http.people import Browser, Clock, SignUp, add_member
from tolsey.http.oauth.scopes import ON_REQUEST, SCOPES
from tolsey.storage.database import Database
from tolsey.storage.oauth import clients

pytestmark = pytest.mark.anyio

READS = (
    "store:read orders:read catalog:read inventory:read customers:read memory:read launch:read billing:read"
    " intelligence:read compliance:read audit:read"
)
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"


async def test_an_agent_registers_is_allowed_and_works(connect: Connect) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann)
    for reported in (
        "Robo",
        "Corner shop",
        "agent.example",
        "See orders and sales",
        "ann@example.com",
    ):
        assert reported in page.text
    answered = await client.decided(ann)
    assert (answered["state"], answered["iss"]) == ("s1", BASE)
    answer = await client.redeem(answered["code"])
    assert answer.headers["cache-control"] == "no-store"
    tokens = answer.json()
    assert tokens["token_type"] == "Bearer"
    assert (tokens["expires_in"], tokens["scope"]) == (3600, "store:read orders:read")
    assert (await client.call(tokens["access_token"])).status_code == 200


async def test_who_is_not_signed_in_signs_in_and_comes_back(
    connect: Connect, browser: Browser
) -> None:
    client, _ = await connect()
    visitor = browser()
    answer = await visitor.get(client.asked())
    consent = answer.headers["location"]
    answer = await visitor.get(consent)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=/oauth/consent/")
    assert "agent.example" not in answer.headers["location"]


async def test_a_user_who_says_no_is_heard(connect: Connect) -> None:
    client, ann = await connect()
    answered = await client.decided(ann, decision="deny")
    assert (answered["error"], answered["state"], answered["iss"]) == ("access_denied", "s1", BASE)


async def test_the_metadata_leads_from_a_refused_call_to_the_server(connect: Connect) -> None:
    client, _ = await connect()
    refused = await client.call("nothing")
    assert refused.status_code == 401
    challenge = refused.headers["www-authenticate"]
    described = f"{BASE}/.well-known/oauth-protected-resource/api/mcp/v1/{client.store_id}"
    assert f'resource_metadata="{described}"' in challenge
    assert f'scope="{READS}"' in challenge
    resource = (await client.web.get(described)).json()
    assert resource["resource"] == client.resource
    assert resource["authorization_servers"] == [BASE]
    assert resource["scopes_supported"] == READS.split()
    server = (await client.web.get("/.well-known/oauth-authorization-server")).json()
    assert server["issuer"] == BASE
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["authorization_response_iss_parameter_supported"]
    assert server["client_id_metadata_document_supported"]
    assert "none" in server["token_endpoint_auth_methods_supported"]
    assert "none" in server["revocation_endpoint_auth_methods_supported"]
    assert "none" not in server["introspection_endpoint_auth_methods_supported"]


async def test_each_form_of_the_address_is_a_resource_of_its_own(connect: Connect) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    older = f"/api/mcp/{client.store_id}"
    assert (await client.call(tokens["access_token"], older)).status_code == 401
    described = await client.web.get(f"/.well-known/oauth-protected-resource{older}")
    assert described.json()["resource"] == f"{BASE}{older}"


async def test_a_client_that_names_no_scope_is_let_into_all_that_can_be_read(
    connect: Connect,
) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann, scope=None)
    assert tokens["scope"] == READS


async def test_a_page_has_a_box_for_each_scope_and_ticks_what_reads_or_was_asked_for(
    connect: Connect,
) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann, scope="store:read orders:write")
    reads, reported = set(READS.split()), boxes(page.text)
    assert reported.keys() == SCOPES.keys() - ON_REQUEST
    assert {name for name, is_ticked in reported.items() if is_ticked} == {*reads, "orders:write"}
    assert page.text.index("Add notes and tags to orders") < page.text.index("See orders and sales")


async def test_the_person_at_the_boxes_decides_and_the_token_says_what_they_allowed(
    connect: Connect,
) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann, scope="store:read orders:read")
    reported = await client.answered(ann, page, "allow", ["store:read", "inventory:write"])
    tokens = (await client.redeem(reported["code"])).json()
    assert tokens["scope"] == "store:read inventory:read inventory:write"
    agents = await ann.browser.get("/account/agents")
    assert "Change stock" in agents.text
    assert "See orders and sales" not in agents.text


async def test_a_client_may_leave_out_the_resource_where_it_has_just_one(
    connect: Connect,
) -> None:
    client, ann = await connect()
    assert (await client.decided(ann, resource=None))["error"] == "invalid_target"
    code = (await client.decided(ann))["code"]
    first = (await client.redeem(code, resource=None)).json()
    second = await client.refresh(first["refresh_token"], resource=None)
    assert second.status_code == 200, second.text
    again = (await client.decided(ann, resource=None))["code"]
    third = (await client.redeem(again, resource=None)).json()
    assert (await client.call(third["access_token"])).status_code == 200
    older = f"{BASE}/api/mcp/{client.store_id}"
    code = (await client.decided(ann, resource=older))["code"]
    assert (await client.redeem(code, resource=None)).status_code == 200
    assert (await client.decided(ann, resource=None))["error"] == "invalid_target"


async def test_a_hosted_agent_registers_a_client_for_each_of_two_hundred_merchants(
    connect: Connect,
) -> None:
    client, ann = await connect()
    made = [await client.register() for _ in range(200)]
    assert {answer.status_code for answer in made} == {201}
    client.client_id = made[0].json()["client_id"]
    assert (await client.tokens(ann))["scope"] == "store:read orders:read"


async def test_of_clients_that_were_never_used_the_oldest_go_first(
    connect: Connect, database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MOST_UNUSED", 3)
    client, ann = await connect()
    clock.advance(timedelta(seconds=1))
    await client.tokens(ann)
    used, unused = client.client_id, []
    for _ in range(5):
        clock.advance(timedelta(seconds=1))
        await client.register()
        unused.append(client.client_id)
    rows = await database.fetch("SELECT id FROM oauth_clients")
    assert {row["id"] for row in rows} == {used, *unused[2:]}


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
async def test_each_name_of_this_machine_is_the_same_service(connect: Connect, name: str) -> None:
    client, ann = await connect()
    here = f"http://{name}:8000/api/mcp/v1/{client.store_id}"
    refused = await client.call("nothing", here)
    described = refused.headers["www-authenticate"].partition('resource_metadata="')[2]
    answer = await client.web.get(described.partition('"')[0])
    assert answer.json()["resource"] == here
    code = (await client.decided(ann, resource=here))["code"]
    tokens = (await client.redeem(code, resource=here)).json()
    for address in (here, client.resource):
        assert (await client.call(tokens["access_token"], address)).status_code == 200


async def test_a_client_may_ask_for_whatever_there_is_however_it_registered(
    connect: Connect,
) -> None:
    client, ann = await connect()
    answers = [await client.register(), await client.register(scope="store:read offline_access")]
    server = (await client.web.get("/.well-known/oauth-authorization-server")).json()
    for answer in answers:
        assert answer.json()["scope"].split() == server["scopes_supported"]
    tokens = await client.tokens(ann, scope="catalog:write")
    assert tokens["scope"] == "catalog:read catalog:write"


@pytest.mark.parametrize(
    ("asked", "method"),
    [
        ({"grant_types": ["authorization_code", "refresh_token", JWT_BEARER]}, "none"),
        ({"grant_types": ["refresh_token", "authorization_code", DEVICE_CODE]}, "none"),
        ({"response_types": ["code", "token"]}, "none"),
        ({"response_types": ["code id_token", "code"]}, "none"),
        ({"grant_types": [], "response_types": []}, "none"),
        ({"scope": "openid profile email"}, "none"),
        ({"token_endpoint_auth_method": "tls_client_auth"}, "client_secret_basic"),
        ({"token_endpoint_auth_method": None, "grant_types": None}, "client_secret_basic"),
    ],
)
async def test_a_registration_is_narrowed_to_what_the_server_supports(
    connect: Connect, asked: dict[str, Any], method: str
) -> None:
    client, _ = await connect()
    answer = await client.register(**asked)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["grant_types"] == ["authorization_code", "refresh_token"]
    assert made["response_types"] == ["code"]
    assert made["scope"].split() == list(SCOPES)
    assert made["token_endpoint_auth_method"] == method
    # A client that gets another method than it requested also gets the secret that the method needs.
    assert ("client_secret" in made) is (method != "none")


@pytest.mark.parametrize(
    "asked",
    [
        {"grant_types": [JWT_BEARER]},
        {"grant_types": ["client_credentials", DEVICE_CODE]},
        {"response_types": ["token"]},
        {"grant_types": "authorization_code"},
        {"grant_types": [7]},
        {"token_endpoint_auth_method": 7},
    ],
)
async def test_a_registration_of_which_nothing_is_supported_is_refused(
    connect: Connect, asked: dict[str, Any]
) -> None:
    client, _ = await connect()
    answer = await client.register(**asked)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    (field,) = asked
    assert field in answer.json()["error_description"]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("openid store:read orders:read offline_access", "store:read orders:read"),
        ("openid profile email", READS),
        ("store:read,orders:read", READS),
    ],
)
async def test_scopes_that_the_server_does_not_know_are_passed_over(
    connect: Connect, asked: str, given: str
) -> None:
    client, ann = await connect()
    page = await client.consent_page(ann, scope=asked)
    told = await client.answered(ann, page, "allow", given.split())
    tokens = (await client.redeem(told["code"])).json()
    assert tokens["scope"] == given
    # A client that repeats what it asked for gets what it was given (RFC 6749, 6).
    again = await client.refresh(tokens["refresh_token"], scope=asked)
    assert again.json()["scope"] == given


async def test_a_refresh_gives_new_tokens_and_may_narrow_them(connect: Connect) -> None:
    client, ann = await connect()
    first = await client.tokens(ann)
    answer = await client.refresh(first["refresh_token"], scope="store:read")
    second = answer.json()
    assert second["scope"] == "store:read"
    assert second["refresh_token"] != first["refresh_token"]
    third = (await client.refresh(second["refresh_token"])).json()
    assert third["scope"] == "store:read orders:read"


async def test_an_access_token_lives_an_hour(connect: Connect, clock: Clock) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    clock.advance(timedelta(minutes=59))
    assert (await client.call(tokens["access_token"])).status_code == 200
    clock.advance(timedelta(minutes=2))
    assert (await client.call(tokens["access_token"])).status_code == 401
    assert (await client.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_refresh_token_that_rests_for_a_month_is_over(
    connect: Connect, clock: Clock
) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    clock.advance(timedelta(days=31))
    answer = await client.refresh(tokens["refresh_token"])
    assert answer.json()["error"] == "invalid_grant"


async def test_a_user_sees_and_ends_what_they_allowed(connect: Connect) -> None:
    client, ann = await connect()
    tokens = await client.tokens(ann)
    page = await ann.browser.get("/account/agents")
    assert "Robo" in page.text
    action = page.text.partition('action="/account/agents/')[2].partition('"')[0]
    csrf = page.text.partition('name="csrf" value="')[2].partition('"')[0]
    ended = await ann.browser.post(f"/account/agents/{action}", data={"csrf": csrf})
    assert ended.status_code == 303
    assert (await client.call(tokens["access_token"])).status_code == 401
    assert (await client.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert "Robo" not in (await ann.browser.get("/account/agents")).text


async def test_a_client_with_a_secret_proves_itself_and_may_ask_what_its_tokens_are(
    connect: Connect,
) -> None:
    client, ann = await connect(token_endpoint_auth_method="client_secret_post")
    code = (await client.decided(ann))["code"]
    secret = client.secret
    tokens = (await client.redeem(code, client_secret=secret)).json()
    form = {"client_id": client.client_id, "client_secret": secret}
    reported = await client.web.post(
        "/oauth/introspect", data={**form, "token": tokens["access_token"]}
    )
    known = reported.json()
    assert known["active"]
    assert (known["sub"], known["aud"]) == (ann.user_id, client.resource)
    nothing = await client.web.post("/oauth/introspect", data={**form, "token": "nothing"})
    assert nothing.json() == {"active": False}
    revoked = await client.web.post("/oauth/revoke", data={**form, "token": tokens["access_token"]})
    assert revoked.status_code == 200
    assert (await client.call(tokens["access_token"])).status_code == 401


async def test_a_loopback_client_may_listen_where_it_can(connect: Connect) -> None:
    client, ann = await connect()
    client.redirect_uri = "http://127.0.0.1:1/callback"
    await client.register()
    page = await client.consent_page(ann, redirect_uri="http://127.0.0.1:54321/callback")
    assert page.status_code == 200
    assert "a program on your own computer" in page.text


async def test_an_application_with_its_own_scheme_is_taken(connect: Connect) -> None:
    client, ann = await connect()
    client.redirect_uri = "cursor://anysphere.cursor-mcp/oauth/callback"
    assert (await client.register()).status_code == 201
    page = await client.consent_page(ann)
    assert "form-action 'self' cursor:;" in page.headers["content-security-policy"]


async def test_a_member_lets_agents_look_but_not_change(
    connect: Connect, sign_up: SignUp, database: Database
) -> None:
    client, ann = await connect()
    bob = await sign_up("bob@example.com")
    await add_member(database, ann.organization_id, bob.email, "member")
    page = await client.consent_page(bob, scope="orders:write orders:read")
    assert "more than your role in this store allows" in page.text
    reads = set(READS.split())
    assert boxes(page.text).keys() == reads - {"audit:read", "compliance:read"}
    reported = await client.answered(
        bob, page, "allow", ["orders:write", "orders:read", "audit:read"]
    )
    tokens = (await client.redeem(reported["code"])).json()
    assert tokens["scope"] == "orders:read"
    assert client.redirect_uri == CALLBACK
