"""A service with listings and their deals."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from tests.http.deals.table import PRICE, Table
from tests.http.people import Clock, SignUp
from tolsey.actors.listing.actor import ListingActor
from tolsey.actors.listing.deals.messages import LookForOwner, SealDocument
from tolsey.actors.mail import TellPeople
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.http.app import create_app
from tolsey.http.deals import offers, papers, signing_routes, threads
from tolsey.http.deals.evidence import routes as deal_evidence
from tolsey.http.deals.pages import certificate
from tolsey.http.deals.pages import room as deal_rooms
from tolsey.http.home import pages as home
from tolsey.http.people import account, auth, organizations
from tolsey.http.selling import public, reviews, sell
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.runtime.clock import Time
from tolsey.runtime.messages import Call
from tolsey.runtime.registry import Runtime
from tolsey.settings import Settings
from tolsey.storage.database import Database
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.journal import Journal
from tolsey.storage.runtime.outbox import Outbox


@pytest.fixture
def told() -> list[TellPeople]:
    """What people are written about."""
    return []


@pytest.fixture
def calls(told: list[TellPeople]) -> dict[type[Call[Any]], Any]:
    """Who performs what follows a move; a PDF is made by tests of PDFs alone."""

    async def tell_people(call: TellPeople) -> None:
        told.append(call)

    async def leave_unsealed(call: SealDocument) -> None:
        del call

    async def look_for_owner(call: LookForOwner) -> None:
        del call

    return {
        TellPeople: tell_people,
        SealDocument: leave_unsealed,
        LookForOwner: look_for_owner,
    }


@pytest.fixture
async def runtime(
    database: Database, settings: Settings, clock: Clock, calls: dict[type[Call[Any]], Any]
) -> AsyncIterator[Runtime]:
    journal = Journal(database)
    async with Runtime(
        [
            OrganizationActor(database),
            ListingActor(database, partial(papers.nda_writer, database, settings.base_url)),
        ],
        journal,
        Outbox(database),
        partial(slots.versions, database),
        epochs=await slots.claim(database, "test"),
        handlers=calls,
        time=Time(clock),
        poll_seconds=0.05,
    ) as running:
        yield running
    await journal.close()


@pytest.fixture
def edge(service: Service) -> Edge:
    parts = (
        auth,
        organizations,
        account,
        stores,
        sell,
        public,
        reviews,
        threads,
        offers,
        signing_routes,
        home,
        deal_evidence,
        deal_rooms,
        certificate,
    )
    return create_app(service, [part.routes for part in parts], {})


@pytest.fixture
async def table(sign_up: SignUp) -> Table:
    ann, ben = await sign_up("ann@example.com"), await sign_up("ben@example.com")
    cleo, eve = await sign_up("cleo@example.com"), await sign_up("eve@example.com")
    store_id = (await ann.store()).json()["id"]
    body = {
        "organizationId": ann.organization_id,
        "storeId": store_id,
        "title": "Corner shop",
        "askingPrice": PRICE,
    }
    made = await ann.browser.post("/api/sell/listings", json=body)
    assert made.status_code == 201, made.text
    id = made.json()["id"]
    shown = await ann.browser.post(f"/api/sell/listings/{id}/publish")
    assert shown.json()["status"] == "ACTIVE", shown.text
    return Table(ann, ben, cleo, eve, store_id, id)
