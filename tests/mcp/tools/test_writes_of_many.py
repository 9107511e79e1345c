"""Many changes in one plan: shown before, made one by one, told each, stopped, resumed and undone."""

import asyncio
import json
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from tests.mcp.tools.shop import ANNS, ITEM, Counter, opened
from tests.mcp.tools.two_stores import TwoStores, refused, result
from tests.timing import until
from tolsey.actors.store.editing import edits
from tolsey.http.answers.operators.operations import OperationAnswer
from tolsey.http.mcp.tools.schemas import answer_schema_of
from tolsey.http.mcp.tools.writes.changes import CHANGES
from tolsey.http.mcp.tools.writes.many import TOOLS, ManyResult, OneOfMany
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import LOCATION_ID, Product, Variant
from tolsey.storage.commerce import agent_operations

pytestmark = pytest.mark.anyio

SCHEMA = answer_schema_of(ManyResult)
PRODUCTS = range(100, 200)
KEY = "key-many-1"


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    counter = await opened(two_stores, platform)
    for id in PRODUCTS:
        product = Product(id, f"Mug {id}", f"mug-{id}", platform.now(), platform.now())
        product.variants = [
            Variant(10 * id, 10 * id + 1, "One", f"M-{id}", 1000, available=5, product=product)
        ]
        platform.shop(ANNS).products[id] = product
    return counter


def change(tool: str, **arguments: Any) -> dict[str, str]:
    return {"tool": tool, "arguments": json.dumps(arguments)}


def priced(id: int, amount: str = "9.50") -> dict[str, str]:
    price = {"amount": amount, "currency": "USD"}
    prices = [{"variant_id": str(10 * id), "price": price}]
    return change("change_price", product_id=str(id), prices=prices)


def mixed(counter: Counter) -> list[dict[str, str]]:
    return [
        priced(100),
        change("set_product_status", product_id="101", status="DRAFT"),
        change("update_product", product_id="102", tags=["sale"]),
        change(
            "adjust_inventory",
            inventory_item_id=str(ITEM),
            location_id=str(LOCATION_ID),
            delta=-2,
        ),
        change("tag_order", order_id=str(counter.order.id), tags=["gift"]),
    ]


def prices(counter: Counter) -> list[int]:
    return [counter.shop.products[id].variants[0].price for id in PRODUCTS]


def told(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found = answer.json()["result"]
    assert "structuredContent" in found, found
    value: dict[str, Any] = found["structuredContent"]
    jsonschema.validate(value, SCHEMA)
    assert bool(found.get("isError")) == (value["status"] in {"rejected", "partly"})
    return value


async def many(counter: Counter, changes: Any, key: str = KEY, **more: Any) -> httpx.Response:
    return await counter.agent.call("change_many", idempotency_key=key, changes=changes, **more)


async def planned(counter: Counter, changes: Any, key: str = KEY) -> str:
    plan = told(await many(counter, changes, key, dry_run=True))
    assert plan["status"] == "planned", plan
    token: str = plan["plan_token"]
    return token


async def steered(counter: Counter, id: str, action: str, **more: Any) -> httpx.Response:
    return await counter.agent.call(
        "change_many", idempotency_key=f"key-{action}", operation_id=id, action=action, **more
    )


async def until_over(counter: Counter, id: str) -> dict[str, Any]:
    async def find() -> dict[str, Any] | None:
        found: dict[str, Any] = result(await counter.agent.call("get_operation", operation_id=id))
        return found if found["state"] not in {"running", "stopped"} else None

    return await until(find)


async def until_made(counter: Counter, id: str, changes: int) -> None:
    async def is_done() -> bool:
        found = result(await counter.agent.call("get_operation", operation_id=id))
        return [one["state"] for one in found["items"]].count("applied") == changes

    await until(is_done)


async def test_what_is_many_is_shown_as_it_is_and_would_be_and_made_one_by_one(
    counter: Counter,
) -> None:
    changes = mixed(counter)
    assert "plan_required" in refused(await many(counter, changes))
    plan = told(await many(counter, changes, dry_run=True))
    assert counter.platform.admin.mutations == 0
    assert [(one["before"], one["after"]) for one in plan["items"][1:4]] == [
        ({"status": "ACTIVE"}, {"status": "DRAFT"}),
        ({"tags": []}, {"tags": ["sale"]}),
        ({"available": 10}, {"available": 8}),
    ]
    done = told(await many(counter, changes, plan_token=plan["plan_token"]))
    assert done["status"] == "applied"
    assert [(one["state"], one["after"]) for one in done["items"]] == [
        ("applied", one["after"]) for one in plan["items"]
    ]
    assert counter.platform.admin.mutations == len(changes)
    assert (counter.variant.available, counter.order.tags) == (8, ("gift",))
    again = told(await many(counter, changes, plan_token=plan["plan_token"]))
    assert (again["status"], again["items"]) == ("replayed", done["items"])
    assert counter.platform.admin.mutations == len(changes)
    assert "idempotency_key_reused" in refused(await many(counter, changes[:2]))
    assert "idempotency_key_reused" in refused(await counter.adjusting(KEY, 1))


async def test_a_hundred_prices_have_one_plan_whose_token_a_model_can_repeat(
    counter: Counter,
) -> None:
    token = await planned(counter, [priced(id) for id in PRODUCTS])
    assert len(token) < 1_500
    answer = await many(counter, [priced(id) for id in (*PRODUCTS, 200)], dry_run=True)
    assert "at most 100 items" in refused(answer)
    some = [priced(id) for id in PRODUCTS[:20]]
    assert "plan_invalid" in refused(await many(counter, some, plan_token=token))
    done = told(await many(counter, some, plan_token=await planned(counter, some)))
    await until_over(counter, done["operation_id"])
    assert set(prices(counter)[:20]) == {950}
    assert counter.platform.admin.mutations == len(some)
    rows = await counter.two_stores.database.fetch(
        "SELECT count(*) AS n FROM audit_log WHERE event = 'agent.write'"
    )
    assert rows[0]["n"] == len(some)


async def test_one_that_cannot_be_made_leaves_no_plan_and_says_which(counter: Counter) -> None:
    changes = [priced(100), priced(999), change("tag_order", order_id="1", tags=["x"])]
    plan = told(await many(counter, changes, dry_run=True))
    assert (plan["status"], "plan_token" in plan) == ("rejected", False)
    assert [(one["state"], one.get("code")) for one in plan["items"]] == [
        ("planned", None),
        ("rejected", "not_found"),
        ("rejected", "not_found"),
    ]
    twice = [priced(100), priced(100, "8")]
    assert "same_thing_twice" in refused(await many(counter, twice, dry_run=True))
    odd = [change("tag_order", order_id="1", tags=[], idempotency_key="mine")]
    said = refused(await many(counter, odd, dry_run=True))
    assert "changes.0.arguments.tags:" in said
    assert "changes.0.arguments.idempotency_key: it is said once" in said
    for wrong in ({}, {"changes": changes, "action": "stop", "operation_id": "op_1"}):
        answer = await counter.agent.call("change_many", idempotency_key=KEY, **wrong)
        assert "send either changes, or operation_id with action" in refused(answer)


async def test_what_a_person_changed_since_the_plan_stays_and_the_others_are_made(
    counter: Counter,
) -> None:
    changes = [priced(id) for id in (100, 101, 102)]
    token = await planned(counter, changes)
    counter.shop.products[101].variants[0].price = 7777
    done = told(await many(counter, changes, plan_token=token))
    assert done["status"] == "partly"
    assert [(one["state"], one.get("code")) for one in done["items"]] == [
        ("applied", None),
        ("rejected", "version_changed"),
        ("applied", None),
    ]
    assert ["after" in one for one in done["items"]] == [True, False, True]
    assert prices(counter)[:3] == [950, 7777, 950]


async def test_a_plan_is_stopped_between_two_changes_and_resumed(counter: Counter) -> None:
    changes = [priced(id) for id in (100, 101, 102)]
    token = await planned(counter, changes)
    release = counter.platform.faults.hold(on="mutation")
    changing = asyncio.create_task(many(counter, changes, plan_token=token))
    await until(lambda: counter.platform.faults.happened != 0)
    id = told(await many(counter, changes, "key-other", dry_run=True))["operation_id"]
    assert "not_found" in refused(await steered(counter, id, "stop"))
    rows = await counter.two_stores.database.fetch(
        "SELECT DISTINCT change_set FROM agent_operations"
    )
    id = rows[0]["change_set"]
    stopped = told(await steered(counter, id, "stop"))
    assert stopped["status"] == "stopped"
    assert told(await changing)["status"] == "stopped"
    release.set()
    await until_made(counter, id, 1)
    shown = result(await counter.agent.call("get_operation", operation_id=id))
    assert [one["state"] for one in shown["items"]][1:] == ["stopped", "stopped"]
    other = await counter.two_stores.agent(counter.two_stores.bob)
    answer = await other.call("change_many", idempotency_key=KEY, operation_id=id, action="resume")
    assert "not_found" in refused(answer)
    assert told(await steered(counter, id, "resume"))["status"] == "running"
    assert (await until_over(counter, id))["state"] == "applied"
    assert prices(counter)[:3] == [950] * 3
    assert counter.platform.admin.mutations == 3


async def test_a_platform_that_is_away_stops_the_plan_until_it_is_resumed(counter: Counter) -> None:
    changes = [priced(id) for id in (100, 101, 102)]
    token = await planned(counter, changes)
    counter.shop.scopes = tuple(one for one in counter.shop.scopes if one != "write_products")
    done = told(await many(counter, changes, plan_token=token))
    assert done["status"] == "stopped"
    assert {one["code"] for one in done["items"]} == {"platform_denied"}
    counter.shop.scopes = (*counter.shop.scopes, "write_products")
    await steered(counter, done["operation_id"], "resume")
    assert (await until_over(counter, done["operation_id"]))["state"] == "applied"
    assert prices(counter)[:3] == [950] * 3


async def test_each_change_wants_its_own_scope(counter: Counter) -> None:
    two_stores = counter.two_stores
    agent = await two_stores.agent(two_stores.ann, ["catalog:write", "store:read"])
    answer = await agent.call(
        "change_many", idempotency_key=KEY, changes=mixed(counter), dry_run=True
    )
    assert answer.status_code == 403
    needed = answer.json()["error"]["data"]["needed"]
    assert needed == ["orders:write", "inventory:write"]


def test_every_change_of_the_shop_but_a_refund_may_be_one_of_many() -> None:
    assert OneOfMany.model_json_schema()["properties"]["tool"]["enum"] == [
        one.name for one in CHANGES if not edits.wants_person(one.name)
    ]
    assert set(TOOLS) == {one.name for one in CHANGES}


async def test_what_many_made_is_undone_in_one_plan_unless_somebody_changed_it_since(
    counter: Counter,
) -> None:
    changes = mixed(counter)
    done = told(await many(counter, changes, plan_token=await planned(counter, changes)))
    kept = await agent_operations.of_change_set(counter.two_stores.database, done["operation_id"])
    shown = OperationAnswer.of_many(kept)
    assert (shown.state, [one.state for one in shown.changes or ()]) == ("done", ["done"] * 5)
    undo = (shown.result or {})["undo"]
    arguments = undo["arguments"]
    # Nothing takes a tag of an order away again.
    assert [one["tool"] for one in arguments["changes"]] == [one["tool"] for one in changes[3::-1]]
    again = {**arguments, "key": "key-undo-1"}
    counter.shop.products[100].variants[0].price = 7777
    plan = told(await many(counter, **again, dry_run=True))
    assert (plan["status"], plan["items"][3]["code"]) == ("rejected", "version_changed")
    counter.shop.products[100].variants[0].price = 950
    token = told(await many(counter, **again, dry_run=True))["plan_token"]
    assert told(await many(counter, **again, plan_token=token))["status"] == "applied"
    assert (prices(counter)[0], counter.variant.available) == (1000, 10)
    assert counter.shop.products[101].status == "ACTIVE"


async def test_a_person_stops_what_an_agent_planned_and_only_a_person_resumes_it(
    counter: Counter,
) -> None:
    ann, bob = counter.two_stores.ann, counter.two_stores.bob
    changes = [priced(id) for id in (100, 101, 102)]
    token = await planned(counter, changes)
    release = counter.platform.faults.hold(on="mutation")
    changing = asyncio.create_task(many(counter, changes, plan_token=token))
    async with (
        asyncio.timeout(60),
        await counter.two_stores.person(ann.user_id) as browser,
        await counter.two_stores.person(bob.user_id) as stranger,
    ):
        while counter.platform.faults.happened == 0:
            await asyncio.sleep(0.01)
        api, page = f"/api/stores/{ann.store_id}/change-sets", f"/stores/{ann.store_id}/change-sets"
        (listed,) = (await browser.get(api)).json()["items"]
        assert [one["state"] for one in listed["changes"]] == ["running"] * 3
        id = listed["id"]
        # Who may stop them sees what each would do before its turn comes.
        text = (await browser.get(f"{page}/{id}")).text
        for shown in ("1020: price: USD 10.00", "1020: price: USD 9.50"):
            assert shown in text, text
        for path in (api, f"{api}/{id}"):
            assert (await stranger.get(path)).status_code == 404
        assert (await stranger.post(f"{api}/{id}/stop")).status_code == 404
        assert (await browser.post(f"{api}/op_unknown/stop")).status_code == 404
        assert (await browser.post(f"{page}/{id}/stop")).status_code == 303
        release.set()
        assert told(await changing)["status"] == "stopped"
        assert "stopped_by_person" in refused(await steered(counter, id, "resume"))
        await until_made(counter, id, 1)
        text = (await browser.get(f"{page}/{id}")).text
        assert "1 of 3 changes made" in text
        assert "1000: price: USD 10.00" in text, text
        assert f"{page}/{id}/resume" in text
        resumed = (await browser.post(f"{api}/{id}/resume")).json()["operation"]
        assert (resumed["state"], resumed["result"]["status"]) == ("running", "running")
        await until_over(counter, id)
        assert "3 of 3" in (await browser.get(page)).text
        done = (await browser.get(f"/api/operations/{id}")).json()["operation"]
    assert (done["state"], done["result"]["status"]) == ("done", "applied")
    assert prices(counter)[:3] == [950] * 3
    assert counter.platform.admin.mutations == 3
