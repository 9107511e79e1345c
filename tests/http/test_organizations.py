import asyncio

from tests.http.people import SignUp, add_member
from tolsey.storage.database import Database

ORGANIZATIONS = "/api/organizations"


async def test_an_organization_is_made_renamed_and_listed(sign_up: SignUp) -> None:
    ann = await sign_up()
    made = await ann.browser.post(ORGANIZATIONS, json={"name": "Second"})
    assert made.status_code == 201
    assert made.json()["role"] == "owner"
    path = f"{ORGANIZATIONS}/{made.json()['id']}"
    renamed = await ann.browser.put(path, json={"name": "Renamed"})
    assert renamed.json()["name"] == "Renamed"
    first = (await ann.browser.get(f"{ORGANIZATIONS}?limit=1")).json()
    assert [item["id"] for item in first["items"]] == [ann.organization_id]
    second = (
        await ann.browser.get(ORGANIZATIONS, params={"limit": 1, "cursor": first["nextCursor"]})
    ).json()
    assert [item["name"] for item in second["items"]] == ["Renamed"]
    assert second["nextCursor"] is None
    events = (await ann.browser.get(path)).json()["members"]
    assert [(member["id"], member["role"]) for member in events] == [(ann.user_id, "owner")]


async def test_bad_pages_are_refused(sign_up: SignUp) -> None:
    ann = await sign_up()
    for query in ("limit=0", "limit=201", "limit=x", "unknown=1"):
        response = await ann.browser.get(f"{ORGANIZATIONS}?{query}")
        assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
    response = await ann.browser.get(f"{ORGANIZATIONS}?cursor=%21%21")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_cursor")


async def test_rules_are_kept_whole(sign_up: SignUp) -> None:
    ann = await sign_up()
    rules = {"snake_case": 1, "nested": {"list": [1, None, "ü"]}}
    path = f"{ORGANIZATIONS}/{ann.organization_id}"
    assert (await ann.browser.put(f"{path}/rules", json=rules)).json() == rules
    assert (await ann.browser.get(path)).json()["rules"] == rules
    response = await ann.browser.put(f"{path}/rules", json=[1])
    assert response.status_code == 422


async def test_what_one_organization_keeps_breaks_no_ones_pages(
    sign_up: SignUp, database: Database
) -> None:
    ann = await sign_up()
    bob = await sign_up("bob@example.com")
    path = f"{ORGANIZATIONS}/{ann.organization_id}"
    await add_member(database, ann.organization_id, bob.email, "member")

    refused = await ann.browser.put(f"{path}/rules", json={"a": 1e308})
    assert (refused.status_code, refused.json()["code"]) == (400, "malformed_json")
    assert "out of range" in refused.json()["detail"]

    # One that was kept before numbers were bounded.
    rules = '{"a": 1e308}'
    await database.execute(
        "UPDATE organizations SET rules = $2::jsonb WHERE id = $1", ann.organization_id, rules
    )
    session = (await bob.browser.get("/api/auth/session")).json()
    assert len(session["organizations"]) == 2
    listed = (await bob.browser.get(ORGANIZATIONS)).json()["items"]
    assert [float(item["rules"]["a"]) for item in listed if item["rules"]] == [1e308]


async def test_memory_is_counted(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    store_id = (await ann.store()).json()["id"]
    await database.execute(
        "INSERT INTO vectors (namespace, id, embedding) VALUES ($1, 'v', '[1,2,3]')",
        f"messages:{store_id}",
    )
    await database.execute(
        "INSERT INTO facts (id, organization_id, name, value) VALUES ('f', $1, 'brand.name', '1')",
        ann.organization_id,
    )
    path = f"{ORGANIZATIONS}/{ann.organization_id}/memory/metrics"
    assert (await ann.browser.get(path)).json() == {
        "facts": 1,
        "messages": 0,
        "vectors": 1,
        "namespaces": [store_id, f"messages:{store_id}", f"facts:store:{store_id}"],
    }


async def test_members_come_by_invitation_with_a_role_and_go(
    sign_up: SignUp, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    path = f"{ORGANIZATIONS}/{ann.organization_id}"
    assert (await bob.browser.get(path)).status_code == 404
    await add_member(database, ann.organization_id, bob.email, "member")
    assert (await bob.browser.get(path)).json()["role"] == "member"
    forbidden = await bob.browser.put(path, json={"name": "Mine"})
    assert (forbidden.status_code, forbidden.json()["code"]) == (403, "forbidden")
    gone = await ann.browser.delete(f"{path}/members/{bob.user_id}")
    assert gone.status_code == 204
    assert (await bob.browser.get(path)).status_code == 404
    assert (await ann.browser.delete(f"{path}/members/{bob.user_id}")).status_code == 404


async def test_a_member_gets_another_role_at_once(sign_up: SignUp, database: Database) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    path = f"{ORGANIZATIONS}/{ann.organization_id}"
    await add_member(database, ann.organization_id, bob.email, "member")
    body = {"email": "Bob@example.com", "role": "admin"}
    risen = await ann.browser.post(f"{path}/members", json=body)
    assert (risen.status_code, risen.json()["role"]) == (200, "admin")
    assert (await bob.browser.get(path)).json()["role"] == "admin"
    assert not await database.fetch("SELECT FROM invitations")


async def test_the_last_owner_stays(sign_up: SignUp) -> None:
    ann = await sign_up()
    path = f"{ORGANIZATIONS}/{ann.organization_id}/members"
    response = await ann.browser.delete(f"{path}/{ann.user_id}")
    assert (response.status_code, response.json()["code"]) == (409, "last_owner")
    demoted = await ann.browser.post(path, json={"email": ann.email, "role": "member"})
    assert (demoted.status_code, demoted.json()["code"]) == (409, "last_owner")


async def test_two_owners_who_remove_each_other_leave_one(
    sign_up: SignUp, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    path = f"{ORGANIZATIONS}/{ann.organization_id}/members"
    await add_member(database, ann.organization_id, bob.email, "owner")
    answers = await asyncio.gather(
        ann.browser.delete(f"{path}/{bob.user_id}"), bob.browser.delete(f"{path}/{ann.user_id}")
    )
    first, second = sorted(answer.status_code for answer in answers)
    assert first == 204
    assert second in {404, 409}


async def test_an_admin_makes_no_owner_and_removes_none(
    sign_up: SignUp, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    path = f"{ORGANIZATIONS}/{ann.organization_id}/members"
    await add_member(database, ann.organization_id, bob.email, "admin")
    for email, role in ((bob.email, "owner"), (ann.email, "member"), ("eve@example.com", "owner")):
        answer = await bob.browser.post(path, json={"email": email, "role": role})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), email
    assert (await bob.browser.delete(f"{path}/{ann.user_id}")).status_code == 403
