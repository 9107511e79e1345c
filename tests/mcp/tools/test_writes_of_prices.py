"""Prices that an agent changes: planned, in the shop's currency, all of a call or none, and undone."""

import asyncio
from typing import Any

import pytest

from tests.mcp.tools.shop import PRODUCT, Counter, answered, opened
from tests.mcp.tools.two_stores import TwoStores, refused
from tests.timing import until
from tolsey.http.answers.operators.operations import OperationAnswer
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.products import Variant
from tolsey.storage.commerce import agent_operations

pytestmark = pytest.mark.anyio

SMALL, LARGE = 770, 771


def usd(amount: str) -> dict[str, str]:
    return {"amount": amount, "currency": "USD"}


LESS = [
    {"variant_id": str(SMALL), "price": usd("17.90"), "compare_at_price": usd("19.90")},
    {"variant_id": f"gid://shopify/ProductVariant/{LARGE}", "price": usd("21")},
]


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    counter = await opened(two_stores, platform)
    large = Variant(LARGE, 7710, "L", "B-L", 2490, compare_at_price=2990, product=counter.product)
    counter.product.variants.append(large)
    return counter


def charged(counter: Counter) -> list[tuple[int, int | None]]:
    return [(one.price, one.compare_at_price) for one in counter.product.variants]


async def priced(counter: Counter, key: str, prices: Any = LESS, **more: Any) -> Any:
    return await counter.agent.call(
        "change_price", idempotency_key=key, product_id=str(PRODUCT), prices=prices, **more
    )


async def planned(counter: Counter, key: str, prices: Any = LESS) -> dict[str, Any]:
    return answered(await priced(counter, key, prices, dry_run=True))


async def test_prices_of_several_variants_are_planned_changed_and_undone(counter: Counter) -> None:
    assert "plan_required" in refused(await priced(counter, "key-00001"))
    plan = await planned(counter, "key-00001")
    assert plan["before"] == {
        "prices": {
            "770": {"price": usd("19.90"), "compare_at_price": None},
            "771": {"price": usd("24.90"), "compare_at_price": usd("29.90")},
        }
    }
    assert charged(counter) == [(1990, None), (2490, 2990)]
    done = answered(await priced(counter, "key-00001", plan_token=plan["plan_token"]))
    assert (done["status"], done["after"]) == ("applied", plan["after"])
    assert charged(counter) == [(1790, 1990), (2100, 2990)]
    assert counter.platform.admin.mutations == 1
    kept = await agent_operations.asked_for(
        counter.two_stores.database, done["operation_id"], counter.two_stores.service.clock()
    )
    assert kept is not None
    undo = (OperationAnswer.of_edit(kept).result or {})["undo"]
    undone = {**undo["arguments"], "idempotency_key": "key-00002"}
    plan = answered(await counter.agent.call(undo["tool"], **undone, dry_run=True))
    await counter.agent.call(undo["tool"], **undone, plan_token=plan["plan_token"])
    assert charged(counter) == [(1990, None), (2490, 2990)]


async def test_one_price_that_cannot_be_changes_none(counter: Counter) -> None:
    for prices, code in (
        ([*LESS, {"variant_id": "772", "price": usd("1")}], "not_found"),
        (
            [{"variant_id": "770", "price": {"amount": "1", "currency": "EUR"}}],
            "other_currency",
        ),
    ):
        plan = await planned(counter, "key-00001", prices)
        assert (plan["status"], plan["code"]) == ("rejected", code)
        assert "plan_token" not in plan
    for amount in ("1.999", "-1", "1e3", "", "01234567890"):
        answer = await priced(counter, "key-00001", [{"variant_id": "770", "price": usd(amount)}])
        assert "arguments are invalid" in refused(answer)
    assert counter.platform.admin.mutations == 0


async def test_a_price_that_a_person_changed_since_the_plan_stays(counter: Counter) -> None:
    plan = await planned(counter, "key-00001")
    counter.product.variants[1].price = 9990
    told = answered(await priced(counter, "key-00001", plan_token=plan["plan_token"]))
    assert (told["status"], told["code"]) == ("rejected", "version_changed")
    assert charged(counter) == [(1990, None), (9990, 2990)]


async def test_of_two_agents_with_a_plan_of_the_same_prices_one_changes_them(
    counter: Counter,
) -> None:
    other = await counter.two_stores.agent(counter.two_stores.ann)
    arguments = {"idempotency_key": "key-00002", "product_id": str(PRODUCT), "prices": LESS}
    theirs = answered(await other.call("change_price", **arguments, dry_run=True))
    plan = await planned(counter, "key-00001")
    done = answered(await priced(counter, "key-00001", plan_token=plan["plan_token"]))
    late = answered(await other.call("change_price", **arguments, plan_token=theirs["plan_token"]))
    assert (done["status"], late["code"]) == ("applied", "version_changed")
    assert counter.platform.admin.mutations == 1


@pytest.mark.parametrize(
    ("moment", "states", "price"),
    [
        ("plans", ["version_changed", "version_changed"], 9990),
        ("looks right before", ["version_changed", "version_changed"], 9990),
        # The time of one request remains, in which nobody can tell (docs/agents.md).
        ("writes", [None, "version_changed"], 1790),
        ("looks right after", ["changed_since", "version_changed"], 9990),
    ],
)
async def test_two_agents_and_a_person_race_for_a_price_and_nobody_is_told_what_is_not_so(
    counter: Counter, moment: str, states: list[str | None], price: int
) -> None:
    other = await counter.two_stores.agent(counter.two_stores.ann)
    calls = []
    for agent, key in ((counter.agent, "key-00001"), (other, "key-00002")):
        given = {"idempotency_key": key, "product_id": str(PRODUCT), "prices": LESS}
        plan = answered(await agent.call("change_price", **given, dry_run=True))
        calls.append(agent.call("change_price", **given, plan_token=plan["plan_token"]))
    faults, requests = counter.platform.faults, ("plans", "looks right before", "writes")
    passes = (*requests, "looks right after").index(moment)
    for _ in range(passes):
        faults.hold().set()
    release, before = faults.hold(), faults.happened
    racing = [asyncio.create_task(one) for one in calls]
    await until(lambda: faults.happened > before + passes)
    counter.product.variants[0].price = 9990
    release.set()
    told = sorted([answered(await one) for one in racing], key=lambda one: one["status"])
    assert [one.get("code") for one in told] == states
    assert charged(counter)[0][0] == price
    assert counter.platform.admin.mutations == len(
        [one for one in states if one != "version_changed"]
    )
    for one in told:
        if one["status"] == "applied":
            assert one["before"]["prices"]["770"]["price"] == usd("19.90")
