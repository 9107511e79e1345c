"""A person deletes their account, and may take it back for thirty days."""

from datetime import UTC, datetime

import pytest

from tests.http.people import PASSWORD, Browser, SignUp, add_member
from tolsey.http.app import create_app
from tolsey.http.people import account, auth, organizations
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Database
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus
from tolsey.storage.tables import table_of

LISTINGS = table_of(ListingRecord)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.fixture
def edge(service: Service) -> Edge:
    blueprints = [auth.routes, organizations.routes, stores.routes, account.routes]
    return create_app(service, blueprints, {})


async def test_a_deleted_account_is_shut_and_opens_again_when_it_is_restored(
    sign_up: SignUp, browser: Browser
) -> None:
    ann = await sign_up()
    gone = await ann.browser.delete("/api/account")
    assert gone.status_code == 202
    assert gone.json()["goneAt"].startswith("2036-07-15T12:00:00.")
    # Nobody is told of evidence of deals who had none.
    names = [name for one in gone.json()["kept"] for name in one["names"]]
    assert "auditTrail" in names
    assert not any("deal" in name for name in names)
    assert (await ann.browser.get("/api/auth/session")).status_code == 401
    again, pair = browser(), {"email": ann.email, "password": PASSWORD}
    shut = await again.post("/api/auth/login", json=pair)
    assert (shut.status_code, shut.json()["code"]) == (403, "account_deleted")
    wrong = await again.post("/api/account/restore", json={**pair, "password": "x" * 12})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "invalid_credentials")
    assert (await again.post("/api/account/restore", json=pair)).status_code == 204
    assert (await again.post("/api/auth/login", json=pair)).status_code == 200
    twice = await again.post("/api/account/restore", json=pair)
    assert (twice.status_code, twice.json()["code"]) == (409, "not_in_deletion")


async def test_who_alone_owns_what_others_are_in_stays(sign_up: SignUp, database: Database) -> None:
    ann, bob = await sign_up(), await sign_up("bob@example.com")
    await add_member(database, ann.organization_id, bob.email, "admin")
    refused = await ann.browser.delete("/api/account")
    assert (refused.status_code, refused.json()["code"]) == (409, "owns_shared_organization")
    assert refused.json()["organizations"] == [ann.organization_id]
    await database.execute("UPDATE members SET role = 'owner' WHERE user_id = $1", bob.user_id)
    assert (await ann.browser.delete("/api/account")).status_code == 202


async def test_who_sells_to_somebody_stays(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    sold = ListingRecord(
        id="l",
        organization_id=ann.organization_id,
        slug="l",
        status=ListingStatus.UNDER_OFFER,
        created_by=ann.user_id,
        created_at=NOON,
        seller_active_at=NOON,
    )
    await database.execute(LISTINGS.insert, *LISTINGS.values_of(sold))
    refused = await ann.browser.delete("/api/account")
    assert (refused.status_code, refused.json()["code"]) == (409, "open_deals")


async def test_an_account_of_nobody_is_not_deleted(browser: Browser) -> None:
    assert (await browser().delete("/api/account")).status_code == 401
