"""A seller connects the shop, and its revenue is read."""

import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from xml.etree import ElementTree as ET

import anyio
import anyio.lowlevel
import httpx
import pytest

from tests.http.listings.seller_side import CREDENTIALS, SECRET, SHOP, VERIFICATION, Seller, listed
from tests.http.people import Clock, SignUp
from tolsey.actors.job.effects import Upkeep
from tolsey.actors.listing.messages import SourceRevoked, SyncDue, listing
from tolsey.runtime.decision import Tell
from tolsey.runtime.registry import Runtime
from tolsey.runtime.throttle import Throttle
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ShopSpec
from tolsey.storage.database import Database
from tolsey.storage.lifecycle import retention
from tolsey.storage.selling import listings


async def test_a_connected_shop_turns_the_badge_green(verified: Seller, database: Database) -> None:
    proof = (await verified.public("/verification")).json()
    assert set(proof) == {*VERIFICATION, "commitment", "signature"}
    assert (proof["state"], proof["source"], proof["definition"]) == ("verified", "commerce", "rv2")
    assert (proof["currency"], proof["revenue30d"], proof["mrr"]) == ("USD", 14_345, 0)
    assert proof["annualised"] == 12 * 14_345
    assert proof["flags"] == []

    badge = await verified.public("/badge.svg")
    assert badge.headers["content-type"].startswith("image/svg+xml")
    assert badge.headers["cache-control"] == "public, max-age=300"
    assert "USD 143.45 in 30 days, synced just now" in badge.text
    ET.fromstring(badge.text)  # noqa: S314 - we drew it

    history = (await verified.public("/history?days=30")).json()["items"]
    assert [day["revenue30d"] for day in history] == [14_345]
    assert (await verified.public()).json()["multiples"]["annualisedRevenue"] == 29.05

    rows = await database.fetch("SELECT * FROM revenue_sources")
    kept = json.dumps([dict(row) for row in rows], default=str)
    assert SECRET not in kept
    assert "shpat" not in kept


async def test_credentials_that_do_not_work_leave_nothing_behind(
    seller: Seller, platform: Platform, database: Database
) -> None:
    wrong = await seller.post("verify/commerce", {**CREDENTIALS, "clientSecret": "guess"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "commerce_rejected")
    assert wrong.json()["detail"]

    elsewhere = {**CREDENTIALS, "shopDomain": "https://corner.example"}
    assert (await seller.post("verify/commerce", elsewhere)).status_code == 422

    platform.faults.status(503, times=50, on="token")
    away = await seller.post("verify/commerce", CREDENTIALS)
    assert (away.status_code, away.json()["code"]) == (502, "commerce_unreachable")
    platform.faults.waiting.clear()

    platform.update_shop(SHOP, partner_development=True)
    toy = await seller.post("verify/commerce", CREDENTIALS)
    assert (toy.status_code, toy.json()["code"]) == (422, "development_store")

    assert not await database.fetch("SELECT FROM revenue_sources")
    assert (await seller.read())["verification"]["state"] == "none"


async def test_one_shop_backs_one_listing(verified: Seller, sign_up: SignUp) -> None:
    other = await listed(await sign_up("bob@example.com"))
    taken = await other.post("verify/commerce", CREDENTIALS)
    assert (taken.status_code, taken.json()["code"]) == (409, "source_in_use")

    assert (await verified.browser.delete(f"{verified.path}/verify")).status_code == 200
    assert (await other.post("verify/commerce", CREDENTIALS)).status_code == 200


async def test_two_listings_that_take_a_shop_at_once_are_told_apart(sign_up: SignUp) -> None:
    ann = await sign_up("ann@example.com")
    sellers = [await listed(ann), await listed(ann)]
    answers: list[httpx.Response] = []

    async def connect(one: Seller) -> None:
        answers.append(await one.post("verify/commerce", CREDENTIALS))

    async with anyio.create_task_group() as tasks:
        for each in sellers:
            tasks.start_soon(connect, each)

    assert sorted(answer.status_code for answer in answers) == [200, 409]


async def test_a_young_shop_has_numbers_for_its_seller_and_no_badge(
    seller: Seller, platform: Platform
) -> None:
    await seller.post("publish")
    orders = platform.shop(SHOP).orders
    del orders[min(orders)]
    await seller.post("verify/commerce", CREDENTIALS)
    found = await seller.synced()

    assert (found["verification"]["state"], found["verification"]["revenue30d"]) == (
        "verified_new",
        14_345,
    )
    assert (await seller.public("/verification")).json()["revenue30d"] is None
    assert (await seller.public("/badge.svg")).status_code == 404
    assert (await seller.public("/history")).json()["items"] == []


async def test_a_missing_permission_is_named_to_the_seller(
    verified: Seller, platform: Platform
) -> None:
    platform.shop(SHOP).scopes = ("read_products",)
    assert (await verified.post("verify/refresh")).status_code == 202
    found = await verified.synced()

    assert found["verification"]["state"] == "needs_permission"
    assert found["connections"][0]["missingPermission"] == "read_orders"
    assert "last verified" in (await verified.public("/badge.svg")).text


async def test_a_rotated_secret_is_told_once_and_credentials_given_anew_mend_it(
    verified: Seller,
    platform: Platform,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    platform.rotate_secret(SHOP, "shpss_new")
    for _ in range(2):
        await verified.post("verify/refresh")
        found = await verified.synced()
    assert found["verification"]["state"] == "token_unavailable"
    answered = capsys.readouterr().out + caplog.text
    assert answered.count("refresh_rejected") == 1

    anew = {**CREDENTIALS, "clientSecret": "shpss_new"}
    assert (await verified.post("verify/commerce", anew)).status_code == 200
    assert (await verified.synced())["verification"]["state"] == "verified"


async def test_a_token_that_dies_under_a_sync_is_minted_anew_once(
    verified: Seller, platform: Platform
) -> None:
    for dead, state in ((1, "verified"), (9, "token_unavailable")):
        granted = platform.grants
        platform.faults.status(401, times=dead)
        await verified.post("verify/refresh")
        assert (await verified.synced())["verification"]["state"] == state
        assert platform.grants == granted + 2
    platform.faults.clear()


async def test_a_platform_that_is_away_costs_no_numbers(
    verified: Seller, platform: Platform, clock: Clock, runtime: Runtime
) -> None:
    before = (await verified.read())["verification"]
    platform.faults.status(503, times=1000, on="token")
    asked_at = clock.now
    clock.advance(timedelta(minutes=3))
    await runtime.ask(listing(verified.made["id"]), SyncDue(asked_at))
    found = await verified.synced()

    assert found["verification"] == before
    assert found["connections"][0]["lastError"] == "commerce_unreachable"


async def test_a_sync_that_comes_late_is_tried_as_often_as_any_other(
    verified: Seller, platform: Platform, clock: Clock, runtime: Runtime
) -> None:
    due_at = clock.now
    clock.advance(timedelta(minutes=10))
    tries = runtime.telemetry.counters["effects_failed"]
    platform.faults.status(503, times=12, on="token")
    await runtime.ask(listing(verified.made["id"]), SyncDue(due_at))
    found = await verified.synced()

    assert found["connections"][0]["lastError"] is None
    assert found["verification"]["syncedAt"] is not None
    assert runtime.telemetry.counters["effects_failed"] > tries


async def test_a_refresh_is_for_twenty_times_an_hour(verified: Seller) -> None:
    statuses = [(await verified.post("verify/refresh")).status_code for _ in range(21)]

    assert statuses == [202] * 20 + [429]
    await verified.synced()


async def test_an_uninstalled_app_ends_the_verification(
    verified: Seller, runtime: Runtime, database: Database, clock: Clock
) -> None:
    found = await listings.listings_of_shop(database, verified.organization_id, SHOP)
    assert found == [verified.made["id"]]
    clock.advance(timedelta(minutes=1))
    for _ in range(2):
        await runtime.ask(listing(found[0]), SourceRevoked(clock.now, "app/uninstalled"))

    assert (await verified.read())["verification"]["state"] == "revoked"
    assert (await verified.public("/badge.svg")).status_code == 404
    row = await database.fetchrow("SELECT client_id, sealed_secret FROM revenue_sources")
    assert row is not None
    assert tuple(row) == ("", None)
    assert (await verified.post("verify/refresh")).status_code == 409


async def test_the_hourly_job_finds_what_wants_to_be_read(
    verified: Seller, database: Database
) -> None:
    id = verified.made["id"]

    assert await listings.due_for_sync(database) == {id: False}
    assert 0 <= listings.jitter(id).total_seconds() < 3000
    await verified.browser.delete(f"{verified.path}/verify")
    assert await listings.due_for_sync(database) == {}


async def test_what_another_definition_measured_is_measured_anew_first(
    verified: Seller, database: Database, clock: Clock
) -> None:
    await database.execute("UPDATE revenue_snapshots SET definition = 'rv1'")
    posted: list[Tell] = []

    async def post(tells: Sequence[Tell]) -> int:
        posted.extend(tells)
        return len(tells)

    async def no_files(_: int) -> int:
        return 0

    throttle = Throttle(partial(retention.commit, database))
    job = Upkeep(database, post, throttle, no_files).work()["sync-verified-revenue"]
    assert await job(clock.now, lambda _: None) == {"listings": 1, "scheduled": 1, "redefined": 1}
    (answered,) = posted
    assert answered.due_at == clock.now + listings.jitter(verified.made["id"]) / 10
    assert answered.message == SyncDue(answered.due_at)

    clock.advance(timedelta(minutes=5))
    await verified.post("verify/refresh")
    await verified.synced()
    assert (await job(clock.now, lambda _: None))["redefined"] == 0
    assert posted[-1].due_at == clock.now + listings.jitter(verified.made["id"])


async def test_a_shop_that_turns_into_a_development_store_loses_its_badge_at_that_sync(
    verified: Seller, platform: Platform, clock: Clock
) -> None:
    platform.update_shop(SHOP, plan="Plus", partner_development=True)
    assert (await verified.post("verify/refresh")).status_code == 202
    found = await verified.synced()

    assert found["verification"]["state"] == "suspended"
    assert found["connections"][0]["suspendedFor"] == "development_store"
    assert (await verified.public("/badge.svg")).status_code == 404
    assert (await verified.public("/verification")).json()["revenue30d"] is None
    assert (await verified.public("/history")).json()["items"] == []
    again = await verified.post("verify/commerce", CREDENTIALS)
    assert (again.status_code, again.json()["code"]) == (422, "development_store")

    clock.advance(timedelta(hours=1))
    platform.advance(3600)
    platform.update_shop(SHOP, plan="Basic", partner_development=False)
    assert (await verified.post("verify/refresh")).status_code == 202
    assert (await verified.synced())["verification"]["state"] == "verified"
    assert (await verified.public("/badge.svg")).status_code == 200


@pytest.mark.parametrize("plan", ["Trial", "Paused", "Plus Trial", "Staff", "Development"])
async def test_a_plan_that_does_not_sell_is_refused(
    seller: Seller, platform: Platform, plan: str
) -> None:
    platform.update_shop(SHOP, plan=plan)
    answer = await seller.post("verify/commerce", CREDENTIALS)

    assert (answer.status_code, answer.json()["code"]) == (422, "development_store")


async def test_a_sync_that_another_shop_answers_is_refused(
    verified: Seller, platform: Platform
) -> None:
    other = ShopSpec(domain="rich.myshopify.com", client_id="corner-app", client_secret=SECRET)
    platform.add_shop(other)
    platform.shops[SHOP] = platform.shop("rich.myshopify.com")
    await verified.post("verify/refresh")
    found = await verified.synced()

    assert found["verification"]["state"] == "token_unavailable"
    assert found["connections"][0]["lastError"] == "another_shop"
    assert found["verification"]["revenue30d"] == 14_345


async def test_the_owner_is_told_what_a_new_definition_made_of_the_numbers(
    verified: Seller, database: Database, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"USD": {"revenue30d": 99_000, "mrr": 0, "annualised": 1_188_000, "orders": 9}}
    await database.execute(
        "UPDATE revenue_snapshots SET definition = 'rv1', figures = $1::jsonb", json.dumps(figures)
    )
    assert (await verified.public("/verification")).json()["definition"] == "rv1"
    assert "Measured by definition rv1." in (await verified.public("/embed")).text
    clock.advance(timedelta(minutes=5))
    await verified.post("verify/refresh")
    found = await verified.synced()

    change = found["connections"][0]["definitionChange"]
    assert (change["from"], change["to"]) == ("rv1", "rv2")
    assert change["before"]["USD"]["revenue30d"] == 99_000
    assert change["after"]["USD"]["revenue30d"] == found["verification"]["revenue30d"] == 14_345
    assert "gift cards" in change["why"].lower()
    assert capsys.readouterr().out.count("revenue_redefined") == 1
    proof = (await verified.public("/verification")).json()
    assert (proof["definition"], proof["flags"]) == ("rv2", [])
    assert "rv2" in (await verified.public("/embed")).text
    said = await database.fetch("SELECT event FROM audit_log WHERE event LIKE '%redefined'")
    assert len(said) == 1

    clock.advance(timedelta(minutes=5))
    await verified.post("verify/refresh")
    await verified.synced()
    assert "revenue_redefined" not in capsys.readouterr().out


async def test_a_seller_is_told_which_payments_prove_nothing(
    seller: Seller, platform: Platform
) -> None:
    platform.write_order(SHOP, gateway="stripe_like", source_name="web")
    await seller.post("verify/commerce", CREDENTIALS)
    (answered,) = (await seller.synced())["connections"]

    assert answered["notCounted"] == {"unproven_payment": 1}
    assert answered["unprovenPayments"] == [
        {"gateway": "stripe_like", "source": "580111", "orders": 1}
    ]


@pytest.mark.parametrize("commerce", ["2026-04"], indirect=True)
async def test_an_api_version_without_the_measured_fields_verifies_nothing(seller: Seller) -> None:
    answer = await seller.post("verify/commerce", CREDENTIALS)

    assert (answer.status_code, answer.json()["code"]) == (422, "api_version_too_old")
    assert "from 2026-07 on" in answer.text
