"""Discount codes that an agent drafts: each once, and none that works by itself."""

from typing import Any

import pytest

from tests.mcp.tools.shop import Counter, answered, opened
from tests.mcp.tools.two_stores import TwoStores, refused
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.discounts import Discount

pytestmark = pytest.mark.anyio

SPRING = {"code": "SPRING", "title": "Spring sale", "percentage": 15}
USD = {"amount": "5.00", "currency": "USD"}


@pytest.fixture
async def counter(two_stores: TwoStores, platform: Platform) -> Counter:
    return await opened(two_stores, platform)


async def drafted(counter: Counter, key: str, **more: Any) -> dict[str, Any]:
    return answered(await counter.agent.call("create_discount", idempotency_key=key, **more))


def the_discount(counter: Counter) -> Discount:
    (found,) = counter.shop.discounts.values()
    return found


async def test_a_drafted_code_waits_for_a_person_to_set_its_start(counter: Counter) -> None:
    plan = await drafted(counter, "key-00001", **SPRING, dry_run=True)
    assert plan["before"] == {"discount": None}
    assert counter.shop.discounts == {}
    done = await drafted(counter, "key-00001", **SPRING, plan_token=plan["plan_token"])
    found = the_discount(counter)
    assert done["after"]["discount"] == {**plan["after"]["discount"], "id": str(found.id)}
    assert done["after"]["discount"]["status"] == "SCHEDULED"
    assert found.starts_at.year == 2099
    assert found.asked["customerGets"]["value"] == {"percentage": 0.15}


async def test_an_amount_off_from_a_subtotal_on_is_in_the_shops_currency(counter: Counter) -> None:
    wanted = {"code": "FIVE", "title": "Five off", "amount": USD, "minimum_subtotal": USD}
    await drafted(counter, "key-00001", **wanted)
    asked = the_discount(counter).asked
    assert asked["customerGets"]["value"]["discountAmount"]["amount"] == "5.00"
    assert asked["minimumRequirement"]["subtotal"] == {"greaterThanOrEqualToSubtotal": "5.00"}
    other = {**wanted, "code": "SIX", "amount": {"amount": "5", "currency": "EUR"}}
    told = await drafted(counter, "key-00002", **other)
    assert (told["status"], told["code"]) == ("rejected", "other_currency")


async def test_a_code_is_never_somebody_elses(counter: Counter) -> None:
    await drafted(counter, "key-00001", **SPRING)
    told = await drafted(counter, "key-00002", **{**SPRING, "code": "spring", "percentage": 99})
    assert (told["status"], told["code"]) == ("rejected", "code_taken")
    assert the_discount(counter).asked["customerGets"]["value"] == {"percentage": 0.15}


async def test_a_code_that_a_person_takes_meanwhile_is_refused_by_the_platform(
    counter: Counter,
) -> None:
    mine = Discount(1, "SPRING", "Mine", counter.platform.now(), {})
    told = await counter.overtaken(
        counter.agent.call("create_discount", idempotency_key="key-00001", **SPRING),
        lambda: counter.shop.discounts.update(spring=mine),
    )
    assert (told["status"], told["code"]) == ("rejected", "commerce_rejected")
    assert the_discount(counter) is mine


async def test_a_draft_whose_answer_was_lost_is_found(counter: Counter) -> None:
    counter.platform.faults.lose()
    told = await drafted(counter, "key-00001", **SPRING)
    assert (told["status"], counter.platform.admin.mutations) == ("applied", 1)


async def test_a_code_takes_a_part_or_an_amount_off(counter: Counter) -> None:
    for more in ({"percentage": 15, "amount": USD}, {}, {"percentage": 0}, {"percentage": 101}):
        answer = await counter.agent.call(
            "create_discount", idempotency_key="key-00001", code="SPRING", title="x", **more
        )
        assert "arguments are invalid" in refused(answer)
