"""What a person takes out of the service is all that is kept of them."""

import pytest

from tests.http.people import Browser, SignUp, add_member
from tolsey.http.app import create_app
from tolsey.http.people import account, auth, organizations
from tolsey.http.stores import exports as export_routes
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import exports
from tolsey.storage.owners import RowOwner


@pytest.fixture
def edge(service: Service) -> Edge:
    blueprints = [auth.routes, organizations.routes, stores.routes, export_routes.routes]
    return create_app(service, [*blueprints, account.routes], {})


def names(owner: RowOwner) -> set[str]:
    return {table.export for table, _ in exports.sections(owner)}


async def test_an_account_is_exported_with_its_organizations_and_their_stores(
    sign_up: SignUp, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    store_id = (await ann.store()).json()["id"]
    await add_member(database, ann.organization_id, bob.email, "member")
    await database.execute(
        "INSERT INTO mail_refusals VALUES ('ann@example.com', 'reports', now()),"
        " ('bob@example.com', 'reports', now())"
    )

    answer = await ann.browser.get("/api/account/export")
    assert answer.status_code == 200
    answered = answer.json()
    assert answered["user"].keys() == {"id"} | names(RowOwner.USER)
    (user,) = answered["user"]["users"]
    assert (user["email"], answered["user"]["id"]) == (ann.email, ann.user_id)
    assert "passwordHash" not in user
    assert [one["recipient"] for one in answered["user"]["mailRefusals"]] == [ann.email]
    (organization,) = answered["organizations"]
    assert organization.keys() == {"id"} | names(RowOwner.ORGANIZATION)
    assert {one["userId"] for one in organization["memberships"]} == {ann.user_id, bob.user_id}
    (shown,) = answered["stores"]
    sections = names(RowOwner.STORE) | names(RowOwner.SHOP)
    assert shown.keys() == {"store", "integrations", "connections"} | sections
    assert shown["store"]["id"] == store_id


async def test_what_a_person_does_not_own_is_not_in_their_export(
    sign_up: SignUp, database: Database
) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    await ann.store()
    await add_member(database, ann.organization_id, bob.email, "admin")
    answered = (await bob.browser.get("/api/account/export")).json()
    assert [one["id"] for one in answered["organizations"]] == [bob.organization_id]
    assert answered["stores"] == []
    assert ann.email not in str(answered)


async def test_an_account_of_nobody_has_no_export(browser: Browser) -> None:
    assert (await browser().get("/api/account/export")).status_code == 401
