"""What `tolsey sandbox` sets up around the service is what its settings name."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tolsey import settings
from tolsey.actors.organization import plans
from tolsey.demo.catalogue import INTERVALS
from tolsey.demo.standins import Ports, StandIns, standing_in
from tolsey.settings import Settings


@pytest.fixture
async def others() -> AsyncIterator[StandIns]:
    async with standing_in(Ports(1, 0, 0, 0), orders=1) as others:
        others.processor.webhooks.pause()  # nobody listens at the service's port
        yield others


def read(others: StandIns) -> Settings:
    return settings.read(_env_file=None, **others.settings)


async def test_every_offer_has_its_price_at_the_processor(others: StandIns) -> None:
    found = read(others).sold_prices
    for offer in plans.OFFERS:
        price = others.processor.platform.books.get("price", plans.price_id(offer, found))
        assert price["unit_amount"] == offer.price.cents
        assert price["currency"] == "usd"
        assert price["tax_behavior"] == "exclusive"
        assert price["recurring"]["interval"] == INTERVALS[offer.cadence]
    assert len(list(others.processor.platform.books.each("product"))) == 3


async def test_the_two_endpoints_hear_what_is_theirs(others: StandIns) -> None:
    processor = others.processor
    platform, connect = processor.platform.books.each("webhook_endpoint")

    assert (platform["connect"], connect["connect"]) == (False, True)
    assert set(connect["enabled_events"]) == {"account.updated", "payout.failed"}
    assert len(platform["enabled_events"]) == 13
    assert platform["url"] == connect["url"] == "http://127.0.0.1:1/api/webhooks/payments"
    known = (read(others).payments_webhook_secret or "").split(",")
    reported = [processor.platform.endpoints[one["id"]].secrets for one in (platform, connect)]
    assert [[one] for one in known] == reported
    assert known[0] != known[1]


async def test_another_run_gives_other_ids(others: StandIns) -> None:
    async with standing_in(Ports(1, 0, 0, 0), orders=1) as again:
        mine, theirs = read(others).sold_prices, read(again).sold_prices

    assert not {*mine.values()} & {*theirs.values()}


async def test_the_model_answers_with_the_key_of_the_settings(others: StandIns) -> None:
    given = read(others)
    body = {"model": given.llm_model, "messages": [{"role": "user", "content": "?"}]}
    async with httpx.AsyncClient(base_url=given.llm_base_url or "", trust_env=False) as client:
        refused = await client.post("chat/completions", json=body)
        key = {"Authorization": f"Bearer {given.llm_api_key}"}
        answered = await client.post("chat/completions", json=body, headers=key)

    assert refused.status_code == 401
    assert answered.status_code == 200
    assert answered.text.endswith("data: [DONE]\n\n")


async def test_a_port_that_is_taken_is_named(others: StandIns) -> None:
    port = int(others.processor.url.rpartition(":")[2])

    assert Ports(0, 0, port, 0).taken() == [port]


async def test_the_escrow_provider_does_what_a_person_wants_and_tells_only_who_has_its_key(
    others: StandIns,
) -> None:
    given = read(others)
    url, login, key = given.escrow_api_url, given.escrow_api_login, given.escrow_api_key
    async with httpx.AsyncClient(base_url=url or "", trust_env=False) as person:
        opened = await person.post("/control/open", json={"amount": "10.00", "currency": "usd"})
        path = f"/transaction/{opened.json()['id']}"
        assert (await person.post("/control/fund", json={"id": "none"})).status_code == 422
        assert (await person.post("/control/steal")).json()["acts"] == ["fund", "open", "release"]
        assert (await person.get(path)).status_code == 401
        assert (await person.get(path, auth=(login or "", "another key"))).status_code == 401
        found = (await person.get(path, auth=(login or "", key or ""))).json()

    assert found["items"][0]["schedule"][0]["status"]["secured"] is False
