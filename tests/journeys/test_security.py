"""Strangers and colleagues try what they must not do, through the real interface."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.http.people import Person, add_member
from tests.http.test_tenants import address_of, routes_of, things_of
from tests.journeys.conftest import CRON_SECRET, Seller
from tests.journeys.strangers import (
    ABSENT,
    LISTINGS,
    asked,
    browsing,
    digest,
    edge_of,
    listing_of,
    person,
    same,
)
from tolsey.http.web.access import Access
from tolsey.service import Running

LEAST_ROLES = {
    "GET /api/organizations/<organization_id>": "member",
    "GET /api/organizations/<organization_id>/memory/metrics": "member",
    "PUT /api/organizations/<organization_id>": "admin",
    "PUT /api/organizations/<organization_id>/rules": "admin",
    "POST /api/organizations/<organization_id>/members": "owner",  # the body makes an owner
    "DELETE /api/organizations/<organization_id>/members/<user_id>": "owner",  # of the owner
    "GET /api/organizations/<organization_id>/invitations": "admin",
    "DELETE /api/organizations/<organization_id>/invitations/<invitation_id>": "admin",
    "GET /api/credits": "member",
    "GET /api/credits/ledger": "member",
    "POST /api/affiliate/redeem": "admin",
    "GET /api/stores/<store_id>": "member",
    "GET /api/stores/<store_id>/integrations/<provider>": "member",
    "GET /api/stores/<store_id>/export": "admin",
    "GET /api/stores/<store_id>/exports": "admin",
    "POST /api/stores/<store_id>/exports": "admin",
    "DELETE /api/stores/<store_id>": "admin",
    "POST /api/stores": "admin",
    "POST /api/integrations/commerce/custom-app": "admin",
    "DELETE /api/integrations/commerce/custom-app": "admin",
    "POST /api/sell/listings": "admin",
    "GET /api/sell/listings/<listing_id>": "member",
    "PATCH /api/sell/listings/<listing_id>": "admin",
    "DELETE /api/sell/listings/<listing_id>": "admin",
    "POST /api/sell/listings/<listing_id>/submit": "admin",
    "POST /api/sell/listings/<listing_id>/publish": "admin",
    "POST /api/sell/listings/<listing_id>/pause": "admin",
    "POST /api/sell/listings/<listing_id>/withdraw": "admin",
    "POST /api/sell/listings/<listing_id>/verify/commerce": "admin",
    "POST /api/sell/listings/<listing_id>/verify/payments": "admin",
    "POST /api/sell/listings/<listing_id>/verify/refresh": "member",
    "DELETE /api/sell/listings/<listing_id>/verify": "admin",
}


@pytest.fixture
async def owner(browser: httpx.AsyncClient) -> Person:
    return await person(browser, "owner@example.com")


@pytest.fixture
async def stranger(live: Running) -> AsyncIterator[Person]:
    async with browsing(live) as client:
        yield await person(client, "stranger@example.com")


async def test_a_foreign_thing_and_an_absent_one_are_one_answer_on_every_route(
    live: Running, owner: Person, stranger: Person
) -> None:
    foreign = await things_of(owner)
    before = await digest(live)
    tried = 0
    for method, rule, access in routes_of(edge_of(live)):
        if access is not Access.SESSION or f"{method} {rule}" not in LEAST_ROLES:
            continue
        seen = await asked(stranger.browser, method, rule, foreign)
        unseen = await asked(stranger.browser, method, rule, {**foreign, **ABSENT})
        assert seen.status_code == 404, f"{method} {rule}: {seen.text}"
        assert same(seen, unseen), f"{method} {rule}: {seen.text} / {unseen.text}"
        tried += 1

    assert tried == len(LEAST_ROLES)
    assert await digest(live) == before


async def test_a_foreign_thing_named_beside_ones_own_is_an_absent_one(
    owner: Person, stranger: Person
) -> None:
    foreign = await things_of(owner)
    own = {"organizationId": stranger.organization_id, "title": "Mine"}
    headers = {"X-Request-Id": "the-same"}
    answers = [
        await stranger.browser.post(LISTINGS, json={**own, "storeId": id}, headers=headers)
        for id in (foreign["store_id"], ABSENT["store_id"])
    ]
    assert answers[0].status_code == 404
    assert same(*answers)
    for path in ("/api/stores", LISTINGS, "/api/plans"):
        answers = [
            await stranger.browser.get(path, params={"organizationId": id}, headers=headers)
            for id in (owner.organization_id, ABSENT["organization_id"])
        ]
        assert answers[0].status_code == 404
        assert same(*answers)
    members = f"/api/organizations/{stranger.organization_id}/members"
    answers = [
        await stranger.browser.delete(f"{members}/{id}", headers=headers)
        for id in (owner.user_id, ABSENT["user_id"])
    ]
    assert answers[0].status_code == 404
    assert same(*answers)


async def test_every_route_asks_for_its_role(
    live: Running, owner: Person, stranger: Person
) -> None:
    assert stranger.email == "stranger@example.com"  # whom the walk's body makes an owner
    things, database = await things_of(owner), live.service.database
    ranks = {"nobody": 0, "member": 1, "admin": 2}
    for role, rank in ranks.items():
        async with browsing(live, address="192.0.2.7") as client:
            colleague = await person(client, f"{role}@example.com")
            if rank:
                await add_member(database, owner.organization_id, colleague.email, role)
            for call, least in LEAST_ROLES.items():
                method, rule = call.split(" ")
                if rank >= {"member": 1, "admin": 2, "owner": 3}[least]:
                    continue
                answer = await asked(client, method, rule, things)
                expected = 403 if rank else 404
                assert answer.status_code == expected, f"{role} {call}: {answer.text}"
                assert answer.json()["code"] == ("forbidden" if rank else "not_found")


async def test_a_colleague_who_was_removed_is_a_stranger_at_once(
    live: Running, owner: Person
) -> None:
    things = await things_of(owner)
    members = f"/api/organizations/{owner.organization_id}/members"
    async with browsing(live) as client:
        colleague = await person(client, "colleague@example.com")
        await add_member(live.service.database, owner.organization_id, colleague.email, "admin")
        store = f"/api/stores/{things['store_id']}"
        assert (await client.get(store)).status_code == 200
        assert (await owner.browser.delete(f"{members}/{colleague.user_id}")).status_code == 204

        assert (await client.get(store)).status_code == 404
        assert (await client.delete(f"{LISTINGS}/{things['listing_id']}")).status_code == 404


async def test_an_admin_makes_no_owner_and_unmakes_none(live: Running, owner: Person) -> None:
    members = f"/api/organizations/{owner.organization_id}/members"
    async with browsing(live) as client:
        admin = await person(client, "admin@example.com")
        await add_member(live.service.database, owner.organization_id, admin.email, "admin")
        for body in (
            {"email": admin.email, "role": "owner"},
            {"email": owner.email, "role": "member"},
        ):
            assert (await client.post(members, json=body)).status_code == 403, body
        assert (await client.delete(f"{members}/{owner.user_id}")).status_code == 403
    shown = (await owner.browser.get(f"/api/organizations/{owner.organization_id}")).json()
    assert {member["email"]: member["role"] for member in shown["members"]} == {
        owner.email: "owner",
        admin.email: "admin",
    }


async def test_strangers_reach_no_operators_route(live: Running, seller: Seller) -> None:
    listing = await listing_of(seller)
    things = {
        **ABSENT,
        "kind": "store",
        "id": seller.store_id,
        "name": "retention-sweep",
        "slot": "7",
        "listing_id": listing["id"],
        "slug": listing["slug"],
        "provider": "commerce",
        "event_id": "evt_1",
        "request_id": "request_1",
        "step": "commerce-history",
        "fingerprint": "0" * 16,
        "incident_id": "inc_1",
    }
    async with browsing(live) as nobody:
        for method, rule, access in routes_of(edge_of(live)):
            if access not in {Access.ADMINISTRATOR, Access.CRON}:
                continue
            for who in (nobody, seller.browser):
                answer = await asked(who, method, rule, things)
                assert answer.status_code in {401, 403}, f"{method} {rule}"
            # neither the cron secret nor a made-up header makes an operator of anyone
            headers = {
                "Authorization": f"Bearer {CRON_SECRET}x",
                "X-Cron-Secret": CRON_SECRET,
                "X-Forwarded-For": "127.0.0.1",
                "X-Original-URL": "/api/health",
                "X-HTTP-Method-Override": "GET",
            }
            answer = await nobody.request(method, address_of(rule, things), headers=headers)
            assert answer.status_code in {401, 403}, f"{method} {rule}"
    rows = await live.service.database.fetch("SELECT 1 FROM cron_executions")
    assert rows == []


@pytest.mark.parametrize(
    ("peer", "forwarded"),
    [
        ("203.0.113.9", None),
        ("203.0.113.9", "127.0.0.1"),
        ("203.0.113.9", "::1"),
        ("127.0.0.1", "203.0.113.9"),
        ("127.0.0.1", "127.0.0.1, 203.0.113.9"),
        ("127.0.0.1", "203.0.113.9:50123"),
        ("127.0.0.1", "unknown"),
        ("127.0.0.1", ""),
    ],
)
async def test_metrics_are_this_machines_only(
    live: Running, peer: str, forwarded: str | None
) -> None:
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    async with browsing(live, peer) as client:
        answer = await client.get("/metrics", headers=headers)
    assert answer.status_code == 401, answer.text
