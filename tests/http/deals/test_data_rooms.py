"""The data room of a deal: what opens when and to whom, and who looked."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from tests.http.deals.table import MARKET, PRICE, Table, signed
from tests.http.deals.test_figures_of_documents import proven
from tests.http.files.emptied import is_emptied
from tests.http.people import Clock, Person, made_operator
from tolsey.http.app import create_app
from tolsey.http.clients.objects import Objects
from tolsey.http.deals import offers, signing_routes, threads
from tolsey.http.deals.room import routes as data_rooms
from tolsey.http.files import routes as files
from tolsey.http.files.keeping import FileKeeper
from tolsey.http.people import account, auth, organizations
from tolsey.http.selling import public, reviews, sell
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Database

PDF = b"%PDF-1.7\n" + b"x" * 3_000_000 + b"\n%%EOF"


@pytest.fixture
def service(service: Service, database: Database, tmp_path: Path) -> Service:
    keeper = FileKeeper(
        Objects.in_folder(tmp_path),
        database,
        service.vault,
        service.settings.base_url,
        service.clock,
    )
    return replace(service, files=keeper)


@pytest.fixture
def edge(service: Service) -> Edge:
    parts = (auth, organizations, account, stores, sell, public, reviews, threads, offers)
    rooms = (signing_routes, data_rooms, files)
    return create_app(service, [part.routes for part in (*parts, *rooms)], {})


async def put(who: Person, deal_id: str, content: bytes = PDF, /, **query: Any) -> httpx.Response:
    said = {"name": "books.pdf", "kind": "profit_and_loss", "level": "1", **query}
    return await who.browser.post(
        f"{MARKET}/deals/{deal_id}/files",
        params=said,
        content=content,
        headers={"Content-Type": "application/pdf"},
    )


async def opened(who: Person, deal_id: str, file_id: str) -> httpx.Response:
    return await who.browser.get(f"{MARKET}/deals/{deal_id}/files/{file_id}")


async def test_a_file_is_read_by_whom_its_level_is_open_to_and_every_look_is_written_down(
    table: Table, database: Database
) -> None:
    asked = (await table.access(table.ben)).json()
    basic = (await put(table.ann, asked["id"])).json()
    full = (await put(table.ann, asked["id"], level="2", name="tax.pdf")).json()
    assert (basic["sha256"], basic["size"]) == (hashlib.sha256(PDF).hexdigest(), len(PDF))
    before = await opened(table.ben, asked["id"], basic["id"])
    assert (before.status_code, before.json()["code"]) == (403, "forbidden")

    await table.advance(table.ann, asked, "access.approve")
    deal = await table.deal(table.ben, asked["id"])
    for who in (table.ben, table.ann):
        await table.sign(who, deal["signatureId"])

    listed = (await table.ben.browser.get(f"{MARKET}/deals/{deal['id']}/files")).json()["items"]
    assert [(one["open"], one["name"]) for one in listed] == [(False, None), (True, "books.pdf")]
    assert (await opened(table.ben, deal["id"], full["id"])).status_code == 404
    assert (await opened(table.eve, deal["id"], basic["id"])).status_code == 404
    found = (await opened(table.ben, deal["id"], basic["id"])).json()
    address = urlsplit(found["url"])
    given = await table.eve.browser.get(f"{address.path}?{address.query}")
    assert given.content == PDF
    assert given.headers["content-disposition"] == 'attachment; filename="books.pdf"'
    looked = (await table.ann.browser.get(f"{MARKET}/deals/{deal['id']}/views")).json()["items"]
    assert [(one["role"], one["userId"], one["what"]) for one in looked] == [
        ("buyer", table.ben.user_id, basic["id"])
    ]

    lines = (await table.ben.browser.get(f"{MARKET}/deals/{deal['id']}/events")).json()["items"]
    added = [orjson.loads(one["body"])["facts"] for one in lines if one["event"] == "file.added"]
    assert [one["sha256"] for one in added] == [basic["sha256"], full["sha256"]]
    checked = (await table.ben.browser.get(f"{MARKET}/deals/{deal['id']}/verify")).json()
    assert checked["valid"]
    operator = await made_operator(database, table.eve)
    assert (await opened(operator, deal["id"], full["id"])).status_code == 200


async def test_a_deals_file_is_read_and_deleted_nowhere_but_in_its_deal(
    table: Table, database: Database
) -> None:
    deal = await signed(table, table.ben)
    made = (await put(table.ann, deal["id"])).json()
    path = f"/api/files/{made['id']}"

    assert (await table.ann.browser.get(path)).status_code == 404
    refused = await table.ann.browser.delete(path)
    assert (refused.status_code, refused.json()["code"]) == (409, "file_of_deal")
    for other in (table.ben, table.eve):
        assert (await other.browser.delete(path)).status_code == 404
    assert len(await database.fetch("SELECT FROM files WHERE id = $1", made["id"])) == 1
    for party in (table.ann, table.ben):
        assert (await opened(party, deal["id"], made["id"])).status_code == 200


async def test_an_address_expires_and_opens_nothing_else(table: Table, clock: Any) -> None:
    deal = await signed(table, table.ben)
    made = (await put(table.ann, deal["id"])).json()
    other = (await put(table.ann, deal["id"], name="other.pdf")).json()
    address = urlsplit((await opened(table.ben, deal["id"], made["id"])).json()["url"])
    elsewhere = address.path.replace(made["id"], other["id"])
    assert (await table.ben.browser.get(f"{elsewhere}?{address.query}")).status_code == 404
    clock.advance(timedelta(seconds=61))
    assert (await table.ben.browser.get(f"{address.path}?{address.query}")).status_code == 404


async def test_what_is_private_in_a_listing_opens_with_the_nda_and_closes_with_the_deal(
    table: Table,
) -> None:
    said = {"private": {"businessName": "Secret Corner GmbH"}, "domain": "corner.example"}
    await table.ann.browser.patch(f"/api/sell/listings/{table.listing_id}", json=said)
    asked = (await table.access(table.ben)).json()
    path = f"{MARKET}/deals/{asked['id']}/listing"
    early = await table.ben.browser.get(path)
    assert (early.status_code, "Secret" in early.text) == (403, False)
    await table.advance(table.ben, asked, "withdraw")

    deal = await signed(table, table.ben)
    path = f"{MARKET}/deals/{deal['id']}/listing"
    found = (await table.ben.browser.get(path)).json()
    assert found["private"]["businessName"] == "Secret Corner GmbH"
    assert (found["domain"], found["level"]) == ("corner.example", 1)
    assert (await table.eve.browser.get(path)).status_code == 404
    await table.advance(table.ben, deal, "withdraw")
    assert (await table.ben.browser.get(path)).status_code == 403
    late = await put(table.ann, deal["id"])
    assert (late.status_code, late.json()["code"]) == (409, "invalid_transition")


async def test_due_diligence_waits_for_the_documents_that_the_listing_names(
    table: Table, database: Database, clock: Clock
) -> None:
    await proven(database, table.listing_id, clock, 850_000)
    hidden = {"visibility": {"revenue30d": "hidden"}}
    listed = f"/api/sell/listings/{table.listing_id}"
    assert (await table.ann.browser.patch(listed, json=hidden)).status_code == 200
    await table.ann.browser.patch(
        f"/api/sell/listings/{table.listing_id}",
        json={"requiredDocuments": ["tax_return", "profit_and_loss"]},
    )
    deal = await signed(table, table.ben)
    path = f"{MARKET}/deals/{deal['id']}/offers"
    offer = (await table.ben.browser.post(path, json={"amount": PRICE})).json()["offer"]
    await table.ann.browser.post(f"{MARKET}/offers/{offer['id']}/accept")
    wants = f"/api/vendor/marketplace/deals/{deal['id']}/request-signature"
    letter = (await table.ann.browser.post(wants, json={"documentType": "LOI"})).json()
    for who in (table.ann, table.ben):
        await table.sign(who, letter["id"])
    deal = await table.deal(table.ann, deal["id"])
    await put(table.ann, deal["id"], kind="tax_return")
    # What the buyer brings is not what the seller has to show.
    assert (await put(table.ben, deal["id"], kind="profit_and_loss")).status_code == 201
    early = await table.advance(table.ann, deal, "diligence.open")
    assert (early.status_code, early.json()["code"]) == (409, "guard_failed")
    assert early.json()["missing"] == ["profit_and_loss"]
    await put(table.ann, deal["id"], kind="profit_and_loss")
    room = f"{MARKET}/deals/{deal['id']}/listing"
    before = await table.ben.browser.get(room)
    assert (before.json()["figures"], "850000" in before.text) == (None, False)
    assert (await table.advance(table.ann, deal, "diligence.open")).status_code == 200
    # From here on the verified figures are live and exact to the buyer, whatever the public is shown.
    found = (await table.ben.browser.get(room)).json()
    assert found["figures"]["revenue30d"] == 850_000
    assert "850000" not in orjson.dumps(found["listing"]).decode()


async def test_what_is_refused_leaves_nothing(
    table: Table, database: Database, tmp_path: Path
) -> None:
    deal = await signed(table, table.ben)
    refused = [
        await put(table.ann, deal["id"], b"MZ" + PDF),
        await put(table.ann, deal["id"], PDF + b"/JavaScript"),
        await put(table.ann, deal["id"], name="books.exe"),
        await put(table.ann, deal["id"], name="../books.pdf"),
    ]
    assert [one.status_code for one in refused] == [422] * 4
    assert {one.json()["code"] for one in refused[:3]} == {"file_refused"}
    assert (await put(table.eve, deal["id"])).status_code == 404
    assert await database.fetch("SELECT FROM deal_files") == []
    assert await database.fetch("SELECT FROM files") == []
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


async def test_an_upload_that_is_cut_midway_leaves_no_file_no_bytes_and_no_line(
    table: Table, edge: Edge, database: Database, tmp_path: Path
) -> None:
    asked = (await table.access(table.ben)).json()
    lines = (await table.deal(table.ann, asked["id"]))["events"]
    cookies = "; ".join(f"{one.name}={one.value}" for one in table.ann.browser.cookies.jar)
    parts = iter([PDF[:1_000_000], PDF[1_000_000:2_000_000]])

    async def receive() -> dict[str, Any]:
        part = next(parts, None)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": True}

    async def send(message: dict[str, Any]) -> None:
        answered.append(message)

    answered: list[dict[str, Any]] = []
    base = str(table.ann.browser.base_url)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": f"{MARKET}/deals/{asked['id']}/files",
        "raw_path": f"{MARKET}/deals/{asked['id']}/files".encode(),
        "root_path": "",
        "query_string": b"name=books.pdf&kind=profit_and_loss&level=1",
        "headers": [
            (b"host", urlsplit(base).netloc.encode()),
            (b"origin", base.encode()),
            (b"cookie", cookies.encode()),
            (b"content-type", b"application/pdf"),
            (b"content-length", str(len(PDF)).encode()),
        ],
        "client": ("127.0.0.1", 1234),
        "server": ("127.0.0.1", 80),
    }
    await edge(scope, receive, send)  # type: ignore[arg-type]

    assert next(parts, None) is None, "nothing of it was read"
    assert not [one for one in answered if one.get("status", 500) < 400]
    assert await database.fetch("SELECT FROM deal_files UNION ALL SELECT FROM files") == []
    await is_emptied(tmp_path)
    assert (await table.deal(table.ann, asked["id"]))["events"] == lines
    assert (await put(table.ann, asked["id"])).status_code == 201
