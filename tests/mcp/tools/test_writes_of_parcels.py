"""Orders that an agent sends out and tracks: what the plan showed, once, and never more than is left."""

from typing import Any

import pytest

from tests.mcp.tools.shop import ANNS, Counter, answered, opened
from tests.mcp.tools.two_stores import TwoStores, refused
from tolsey.http.answers.operators.operations import OperationAnswer
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.platform import Platform
from tolsey.storage.commerce import agent_operations

pytestmark = pytest.mark.anyio

POST = {
    "tracking_company": "Post",
    "tracking_number": "T1",
    "tracking_url": "https://post.example/T1",
}
ALL_OF = {"company": "Post", "number": "T1", "url": "https://post.example/T1"}


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    counter = await opened(two_stores, platform)
    counter.order = platform.place_order(ANNS, (Item(quantity=3), Item(quantity=2)))
    return counter


async def fulfilling(counter: Counter, key: str, **more: Any) -> Any:
    order_id = str(counter.order.id)
    return await counter.agent.call("fulfil_order", idempotency_key=key, order_id=order_id, **more)


async def fulfilled(counter: Counter, key: str, **more: Any) -> dict[str, Any]:
    """Plan it, and do as planned."""
    plan = answered(await fulfilling(counter, key, dry_run=True, **more))
    if plan["status"] == "rejected":
        return plan
    return answered(await fulfilling(counter, key, plan_token=plan["plan_token"], **more))


def left(counter: Counter) -> list[int]:
    return [counter.order.unsent(line) for line in counter.order.lines]


async def test_an_order_is_sent_in_parts_each_with_its_tracking(counter: Counter) -> None:
    first, second = (str(line.id) for line in counter.order.lines)
    assert "plan_required" in refused(await fulfilling(counter, "key-00001"))
    some = {"lines": [{"line_id": first, "quantity": 2}], **POST, "notify_customer": True}
    plan = answered(await fulfilling(counter, "key-00001", dry_run=True, **some))
    assert plan["before"] == {"left": {first: 3, second: 2}, "fulfilments": []}
    assert plan["after"] == {
        "left": {first: 1, second: 2},
        "fulfilments": [{"id": None, **ALL_OF}],
    }
    assert left(counter) == [3, 2]
    done = answered(await fulfilling(counter, "key-00001", plan_token=plan["plan_token"], **some))
    (sent,) = counter.order.fulfilments
    assert done["after"]["fulfilments"] == [{"id": str(sent.id), **ALL_OF}]
    assert (left(counter), sent.told) == ([1, 2], 1)
    rest = await fulfilled(counter, "key-00002")
    assert (rest["status"], left(counter)) == ("applied", [0, 0])
    none = await fulfilled(counter, "key-00003")
    assert (none["status"], none["code"]) == ("rejected", "nothing_to_fulfil")


async def test_an_order_with_more_parcels_than_are_read_is_left_to_people(counter: Counter) -> None:
    counter.order = counter.platform.place_order(ANNS, (Item(quantity=52),))
    for _ in range(49):
        counter.platform.fulfil_order(ANNS, counter.order.id, 1)
    line = [{"line_id": str(counter.order.lines[0].id), "quantity": 1}]
    told = await fulfilled(counter, "key-00001", lines=line)
    assert (told["status"], told.get("code")) == ("applied", None)
    told = await fulfilled(counter, "key-00002", lines=line)
    assert (told["status"], told["code"]) == ("rejected", "too_large")
    assert left(counter) == [2]


async def test_no_more_is_sent_than_is_left(counter: Counter) -> None:
    line = str(counter.order.lines[0].id)
    told = await fulfilled(counter, "key-00001", lines=[{"line_id": line, "quantity": 4}])
    assert (told["status"], told["code"]) == ("rejected", "too_many")
    assert counter.platform.admin.mutations == 0


async def test_what_a_person_sent_since_the_plan_is_not_sent_again(counter: Counter) -> None:
    plan = answered(await fulfilling(counter, "key-00001", dry_run=True))
    counter.platform.fulfil_order(ANNS, counter.order.id, 1)
    told = answered(await fulfilling(counter, "key-00001", plan_token=plan["plan_token"]))
    assert (told["status"], told["code"]) == ("rejected", "version_changed")
    assert left(counter) == [2, 2]


async def test_what_a_person_sends_while_it_is_on_its_way_is_refused_by_the_platform(
    counter: Counter,
) -> None:
    plan = answered(await fulfilling(counter, "key-00001", dry_run=True))
    told = await counter.overtaken(
        fulfilling(counter, "key-00001", plan_token=plan["plan_token"]),
        lambda: counter.platform.fulfil_order(ANNS, counter.order.id, 1),
    )
    assert (told["status"], told["code"]) == ("rejected", "commerce_rejected")
    assert left(counter) == [2, 2]


async def test_a_parcel_is_tracked_anew_and_that_is_undone(counter: Counter) -> None:
    await fulfilled(counter, "key-00001", **POST)
    (sent,) = counter.order.fulfilments
    told = answered(
        await counter.agent.call(
            "track_fulfilment",
            idempotency_key="key-00002",
            fulfillment_id=f"gid://shopify/Fulfillment/{sent.id}",
            tracking_number="T2",
        )
    )
    assert told["before"] == {"tracking": ALL_OF}
    assert (sent.company, sent.number, sent.url, sent.told) == (
        *("Post", "T2", "https://post.example/T1"),
        0,
    )
    kept = await agent_operations.asked_for(
        counter.two_stores.database, told["operation_id"], counter.two_stores.service.clock()
    )
    assert kept is not None
    undo = (OperationAnswer.of_edit(kept).result or {})["undo"]
    await counter.agent.call(undo["tool"], idempotency_key="key-00003", **undo["arguments"])
    assert sent.number == "T1"


async def test_sending_wants_a_scope_of_its_own(counter: Counter) -> None:
    narrow = await counter.two_stores.agent(
        counter.two_stores.ann, ["orders:write", "catalog:write"]
    )
    answer = await narrow.call("fulfil_order", idempotency_key="key-00001", order_id="1")
    assert answer.status_code == 403
    assert "fulfillments:write" in answer.headers["www-authenticate"]
