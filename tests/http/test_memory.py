"""What a store remembers, told and forgotten by people: by routes and on its page."""

import pytest

from tests.http.people import SignUp, add_member
from tolsey.http.app import create_app
from tolsey.http.memory import pages as memory_pages
from tolsey.http.memory import routes as memories
from tolsey.http.people import auth, organizations
from tolsey.http.stores import exports
from tolsey.http.stores import routes as stores
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.storage.database import Database

pytestmark = pytest.mark.anyio


@pytest.fixture
def edge(service: Service) -> Edge:
    blueprints = (auth, organizations, stores, exports, memories, memory_pages)
    return create_app(service, [one.routes for one in blueprints], {})


async def test_people_tell_correct_find_and_forget(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    store_id = (await ann.store("Corner shop")).json()["id"]
    path, web = f"/api/stores/{store_id}/memory", ann.browser
    told = await web.put(f"{path}/facts/brand.voice", json={"value": "Dry and kind"})
    assert told.status_code == 200, told.text
    fact = told.json()
    assert (fact["key"], fact["value"], fact["source"]) == (
        "brand.voice",
        "Dry and kind",
        "merchant",
    )
    again = (await web.put(f"{path}/facts/brand.voice", json={"value": "Dry"})).json()
    assert (again["id"], again["createdAt"]) == (fact["id"], fact["createdAt"])
    assert (await web.get(f"{path}/facts")).json() == {"items": [again], "nextCursor": None}
    odd = await web.put(f"{path}/facts/two words", json={"value": "Dry"})
    assert (odd.status_code, odd.json()["errors"][0]["field"]) == (422, "key")
    said = {"text": "Parcels leave on Mondays."}
    message = (await web.post(f"{path}/messages", json=said)).json()
    mended = {"text": "Parcels leave daily."}
    await web.put(f"{path}/messages/{message['id']}", json=mended)
    (found,) = (await web.get(f"{path}/search", params={"query": "When do parcels leave?"})).json()[
        "items"
    ]
    assert (found["kind"], found["id"], found["text"]) == (
        "message",
        message["id"],
        mended["text"],
    )
    exported = (await web.get(f"/api/stores/{store_id}/export")).json()
    assert exported["facts"][0]["value"] == "Dry"
    assert exported["messages"][0]["text"] == mended["text"]
    for gone in (f"{path}/facts/brand.voice", f"{path}/messages/{message['id']}"):
        assert (await web.delete(gone)).status_code == 204
        assert (await web.delete(gone)).status_code == 404
    late = await web.put(f"{path}/messages/{message['id']}", json=said)
    assert late.status_code == 404, "a late correction brings nothing back"
    left = await database.fetch(
        "SELECT name || value::text AS kept FROM facts UNION ALL SELECT text FROM messages"
    )
    assert sorted(row["kept"] for row in left) == ["", f"{fact['id']}null"]


async def test_members_read_and_strangers_find_nothing(sign_up: SignUp, database: Database) -> None:
    ann, bob = await sign_up("ann@example.com"), await sign_up("bob@example.com")
    store_id = (await ann.store("Corner shop")).json()["id"]
    path = f"/api/stores/{store_id}/memory"
    await ann.browser.put(f"{path}/facts/brand.voice", json={"value": "Dry"})
    assert (await bob.browser.get(f"{path}/facts")).status_code == 404
    await add_member(database, ann.organization_id, "bob@example.com", "member")
    assert len((await bob.browser.get(f"{path}/facts")).json()["items"]) == 1
    refused = await bob.browser.put(f"{path}/facts/brand.voice", json={"value": "Rude"})
    assert refused.status_code == 403
    page = await bob.browser.get(f"/stores/{store_id}/memory")
    assert "brand.voice" in page.text
    assert "Tell a fact" not in page.text


async def test_a_deleted_store_remembers_nothing(sign_up: SignUp, database: Database) -> None:
    ann = await sign_up()
    store_id = (await ann.store("Corner shop")).json()["id"]
    path = f"/api/stores/{store_id}/memory"
    await ann.browser.put(f"{path}/facts/brand.voice", json={"value": "Dry"})
    await ann.browser.post(f"{path}/messages", json={"text": "We ship on Mondays."})
    assert (await ann.browser.delete(f"/api/stores/{store_id}")).status_code == 204
    left = await database.fetch(
        "SELECT value::text AS kept FROM facts UNION ALL SELECT text FROM messages"
    )
    assert sorted(row["kept"] for row in left) == ["", "null"]


async def test_the_page_tells_corrects_finds_and_forgets_without_a_script(sign_up: SignUp) -> None:
    ann = await sign_up()
    store_id = (await ann.store("Corner shop")).json()["id"]
    path, web = f"/stores/{store_id}/memory", ann.browser
    wrong = await web.post(f"{path}/facts", data={"key": "two words", "value": "x"})
    assert wrong.status_code == 422
    assert "Use letters, digits" in wrong.text
    told = await web.post(f"{path}/facts", data={"key": "brand.voice", "value": "<b>Dry</b>"})
    assert (told.status_code, told.headers["Location"]) == (303, f"{path}?done=kept")
    await web.post(f"{path}/messages", data={"text": "Parcels leave on Mondays."})
    page = (await web.get(f"{path}?query=parcels")).text
    assert "&lt;b&gt;Dry&lt;/b&gt;" in page
    assert page.count("Parcels leave on Mondays.") == 3, "found, listed, and in its form"
    gone = await web.post(f"{path}/facts/brand.voice/forget")
    assert gone.headers["Location"] == f"{path}?done=forgotten"
    assert "brand.voice</bdi>" not in (await web.get(path)).text
