"""A seller proves revenue by the payment processor, alone or beside the shop."""

import json
from datetime import timedelta

import anyio
import httpx
import pytest

from tests.http.account_books import ACCOUNT, READS, RESTRICTED_KEY, Account, price_of
from tests.http.listings.seller_side import CREDENTIALS, DAY, VERIFICATION, Seller, check, listed
from tests.http.people import Browser, Clock, SignUp, add_member
from tolsey.actors.listing.messages import SyncDue, listing
from tolsey.runtime.registry import Runtime
from tolsey.storage.database import Database
from tolsey.storage.people import administrators

KEY = {"restrictedKey": RESTRICTED_KEY}


@pytest.fixture
async def boss(browser: Browser, database: Database) -> httpx.AsyncClient:
    """An administrator who is signed in."""
    client = browser()
    pair = {"email": "boss@example.com", "password": "correct horse battery"}
    await administrators.create_administrator(database, pair["email"], pair["password"])
    assert (await client.post("/api/auth/login", json=pair)).status_code == 200
    return client


async def everything(database: Database) -> str:
    """All that is kept, in every table."""
    tables = await database.fetch(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    rows = [await database.fetch(f'SELECT * FROM "{row[0]}"') for row in tables]  # noqa: S608
    return json.dumps([[dict(row) for row in each] for each in rows], default=str)


async def test_a_restricted_key_turns_the_badge_green(paid: Seller, database: Database) -> None:
    proof = (await paid.public("/verification")).json()
    assert set(proof) == {*VERIFICATION, "commitment", "signature"}
    shown = {name: proof[name] for name in ("state", "source", "definition", "currency", "flags")}
    assert shown == {
        "state": "verified",
        "source": "payments",
        "definition": "rv2",
        "currency": "USD",
        "flags": [],
    }
    assert (proof["mrr"], proof["arr"], proof["mrrAtRisk"]) == (1_000, 12_000, 0)
    assert (proof["revenue30d"], proof["annualised"]) == (15_000, 180_000)
    assert (proof["subscribers"], proof["meteredItems"], proof["taxIncluded"]) == (1, 0, "unknown")
    assert proof["corroboration"] is None
    assert "USD 150.00 in 30 days" in (await paid.public("/badge.svg")).text
    history = (await paid.public("/history")).json()["items"]
    assert [(day["source"], day["revenue30d"]) for day in history] == [("payments", 15_000)]

    found = (await paid.read())["connections"]
    assert [(each["source"], each["account"]) for each in found] == [("payments", ACCOUNT)]
    assert ACCOUNT not in json.dumps(proof)
    audit = await database.fetch("SELECT event FROM audit_log WHERE event LIKE 'verification.%'")
    assert [row["event"] for row in audit] == ["verification.connected"]


async def test_nothing_kept_says_who_the_customers_are_or_what_the_key_is(
    paid: Seller, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = await everything(database)

    assert ACCOUNT in kept
    for secret in (RESTRICTED_KEY, "cus_a", "print_cus_a", "Eve Smith"):
        assert secret not in kept
        assert secret not in json.dumps(await paid.read())
    assert RESTRICTED_KEY not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "code"),
    [
        ("rk_test_51CornerSecretabcd", "test_mode_key"),
        ("sk_test_51CornerSecretabcd", "test_mode_key"),
        ("sk_live_51CornerSecretabcd", "secret_key_refused"),
        ("pk_live_51CornerSecretabcd", "publishable_key"),
        ("pk_test_51CornerSecretabcd", "publishable_key"),
        ("correct horse battery", "not_a_restricted_key"),
        ("rk_live_x", "not_a_restricted_key"),
        ("rk_live_abcd\u00e9fgh", "not_a_restricted_key"),
    ],
)
async def test_a_key_of_the_wrong_kind_never_reaches_the_processor(
    seller: Seller, account: Account, key: str, code: str
) -> None:
    account.processor.faults.reset(times=100)
    answer = await seller.post("verify/payments", {"restrictedKey": key})

    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert key not in answer.text
    assert "rak_charge_read" in answer.json()["createKeyUrl"]
    assert account.processor.faults.happened == 0
    assert (await seller.read())["verification"]["state"] == "none"


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        ("charge_read", "charges"),
        ("subscription_read", "subscriptions"),
    ],
)
async def test_a_key_that_cannot_be_synced_with_is_refused_at_once(
    seller: Seller, account: Account, database: Database, missing: str, name: str
) -> None:
    account.allow(*(each for each in READS if each != missing))
    answer = await seller.post("verify/payments", KEY)

    assert (answer.status_code, answer.json()["code"]) == (422, f"missing_permission:{name}")
    assert answer.json()["permission"] == missing
    assert f"rak_{missing}" in answer.json()["detail"]
    assert not await database.fetch("SELECT FROM revenue_sources")


async def test_the_processors_own_words_are_shown_without_the_key(
    seller: Seller, account: Account, database: Database
) -> None:
    stranger = await seller.post("verify/payments", {"restrictedKey": "rk_live_nobodyknows"})
    assert (stranger.status_code, stranger.json()["code"]) == (422, "processor_rejected")
    assert "Invalid API Key provided" in stranger.json()["detail"]
    assert "nobodyknows" not in stranger.text

    account.merchant.keys[RESTRICTED_KEY].expired = True
    expired = await seller.post("verify/payments", KEY)
    assert expired.json()["processorCode"] == "api_key_expired"
    account.merchant.keys[RESTRICTED_KEY].expired = False

    account.answer_next("/v1/account", account.own(details_submitted=False))
    closed = await seller.post("verify/payments", KEY)
    assert (closed.status_code, closed.json()["code"]) == (422, "account_not_live")

    account.processor.faults.rate_limit()
    away = await seller.post("verify/payments", KEY)
    assert (away.status_code, away.json()["code"]) == (502, "processor_unreachable")
    assert not await database.fetch("SELECT FROM revenue_sources")


async def test_one_account_backs_one_listing(paid: Seller, sign_up: SignUp) -> None:
    other = await listed(await sign_up("bob@example.com"))
    taken = await other.post("verify/payments", KEY)
    assert (taken.status_code, taken.json()["code"]) == (409, "source_in_use")

    assert (await paid.browser.delete(f"{paid.path}/verify")).status_code == 200
    assert (await other.post("verify/payments", KEY)).status_code == 200


async def test_two_listings_that_take_an_account_at_once_are_told_apart(
    sign_up: SignUp, account: Account
) -> None:
    ann = await sign_up("ann@example.com")
    sellers = [await listed(ann), await listed(ann)]
    answers: list[httpx.Response] = []

    async def connect(one: Seller) -> None:
        answers.append(await one.post("verify/payments", KEY))

    async with anyio.create_task_group() as tasks:
        for each in sellers:
            tasks.start_soon(connect, each)

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    for each in sellers:
        await each.synced()


async def test_strangers_and_mere_members_may_not_give_a_key(
    seller: Seller, account: Account, sign_up: SignUp, browser: Browser, database: Database
) -> None:
    path = f"{seller.path}/verify/payments"
    eve = await sign_up("eve@example.com")
    assert (await browser().post(path, json=KEY)).status_code == 401
    assert (await eve.browser.post(path, json=KEY)).status_code == 404

    await add_member(database, seller.organization_id, eve.email, "member")
    assert (await eve.browser.post(path, json=KEY)).status_code == 403


async def test_a_domain_that_the_account_does_not_name_is_not_verified(
    seller: Seller, account: Account
) -> None:
    await seller.post("publish")
    await seller.post("verify/payments", KEY)
    await seller.synced()

    assert (await seller.public("/verification")).json()["flags"] == ["domain_mismatch"]
    assert "domain not verified" in (await seller.public("/badge.svg")).text


async def test_two_sources_stand_side_by_side_and_are_never_added(
    verified: Seller, account: Account
) -> None:
    account.answer_next("/v1/account", account.own())
    account.answer_next("/v1/account", account.own())
    assert (await verified.post("verify/payments", KEY)).status_code == 200
    await verified.synced()

    proof = (await verified.public("/verification")).json()
    assert (proof["source"], proof["revenue30d"], proof["mrr"]) == ("commerce", 14_345, 0)
    assert proof["corroboration"] == {
        "source": "payments",
        "state": "verified",
        "currency": "USD",
        "mrr": 1_000,
        "revenue30d": 15_000,
        "syncedAt": proof["syncedAt"],
        "differencePercent": "4.6",
        "flags": [],
        "ranges": {},
    }
    check(proof, (await verified.browser.get("/.well-known/verification-keys.json")).json())
    assert "A second source says USD 150.00" in (await verified.public("/embed")).text
    assert len((await verified.public("/history")).json()["items"]) == 1

    gone = await verified.browser.delete(f"{verified.path}/verify", params={"source": "commerce"})
    assert gone.json()["verification"]["source"] == "payments"
    proof = (await verified.public("/verification")).json()
    assert (proof["source"], proof["revenue30d"], proof["corroboration"]) == (
        "payments",
        15_000,
        None,
    )


async def test_a_source_that_fails_leaves_the_badge_to_the_other(
    verified: Seller,
    account: Account,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await verified.post("verify/payments", KEY)
    await verified.synced()
    account.merchant.keys.clear()
    for _ in range(2):
        await verified.post("verify/refresh")
        await verified.synced()

    proof = (await verified.public("/verification")).json()
    assert (proof["state"], proof["source"]) == ("verified", "commerce")
    assert proof["corroboration"]["state"] == "token_unavailable"
    answered = capsys.readouterr().out + caplog.text
    assert answered.count("refresh_rejected") == 1
    assert RESTRICTED_KEY not in answered


async def test_a_permission_taken_back_is_named_and_the_key_kept(
    paid: Seller, account: Account, database: Database
) -> None:
    account.allow("accounts_kyc_basic_read", "subscription_read")
    await paid.post("verify/refresh")
    found = (await paid.synced())["connections"][0]

    assert (found["state"], found["missingPermission"]) == ("needs_permission", "charges")
    assert "last verified" in (await paid.public("/badge.svg")).text
    account.allow(*READS)
    await paid.post("verify/refresh")
    assert (await paid.synced())["verification"]["state"] == "verified"


async def test_a_key_of_another_account_in_the_same_place_is_not_believed(
    paid: Seller, account: Account
) -> None:
    account.answer_next("/v1/account", account.own(id="acct_other"))
    await paid.post("verify/refresh")
    found = (await paid.synced())["connections"][0]

    assert (found["state"], found["lastError"]) == ("token_unavailable", "another_account")


async def test_a_processor_that_is_away_costs_no_numbers(
    paid: Seller, account: Account, clock: Clock, runtime: Runtime
) -> None:
    before = (await paid.read())["verification"]
    account.processor.faults.rate_limit(times=50)
    asked_at = clock.now
    clock.advance(timedelta(minutes=3))
    await runtime.ask(listing(paid.made["id"]), SyncDue(asked_at))
    found = await paid.synced()

    assert found["verification"] == before
    assert found["connections"][0]["lastError"] == "processor_unreachable"


async def test_the_hour_reads_both_sources(
    verified: Seller, account: Account, clock: Clock, runtime: Runtime, database: Database
) -> None:
    await verified.post("verify/payments", KEY)
    await verified.synced()
    clock.advance(timedelta(hours=1))
    await runtime.ask(listing(verified.made["id"]), SyncDue(clock.now))
    await verified.synced()

    rows = await database.fetch(
        "SELECT source, count(*) AS syncs FROM revenue_snapshots GROUP BY source ORDER BY source"
    )
    assert [tuple(row) for row in rows] == [("commerce", 2), ("payments", 2)]


async def test_a_young_account_has_numbers_for_its_seller_and_no_badge(
    seller: Seller, account: Account
) -> None:
    charges = account.merchant.books
    for each in list(charges.each("charge")):
        if each["created"] < account.at(30):
            charges.drop("charge", each["id"])
    await seller.post("publish")
    await seller.post("verify/payments", KEY)
    found = (await seller.synced())["verification"]

    assert (found["state"], found["revenue30d"]) == ("verified_new", 15_000)
    assert (await seller.public("/verification")).json()["revenue30d"] is None
    assert (await seller.public("/badge.svg")).status_code == 404


async def test_a_red_flag_leaves_the_number_and_says_so(
    paid: Seller, account: Account, clock: Clock, boss: httpx.AsyncClient
) -> None:
    queue = "/api/admin/listings/flagged"
    assert (await boss.get(queue)).json()["items"] == []
    clock.advance(timedelta(minutes=1))
    account.pay("cus_a", 90_000, amount_refunded=60_000)
    account.answer_next("/v1/account", account.own())
    await paid.post("verify/refresh")
    await paid.synced()

    proof = (await paid.public("/verification")).json()
    assert proof["flags"] == ["refund_rate", "revenue_spike"]
    badge = (await paid.public("/badge.svg")).text
    assert "Verified revenue, in review" in badge
    assert "USD 450.00 in 30 days" in badge
    assert "More than a fifth was refunded" in (await paid.public("/embed")).text
    waiting = (await boss.get(queue)).json()["items"]
    assert [each["id"] for each in waiting] == [paid.made["id"]]
    assert waiting[0]["verification"]["flags"] == proof["flags"]
    assert (await paid.browser.get(queue)).status_code == 403


async def test_a_subscription_whose_price_is_in_another_currency_is_named_and_not_counted(
    paid: Seller, account: Account, clock: Clock, boss: httpx.AsyncClient
) -> None:
    clock.advance(timedelta(minutes=1))
    account.subscribe("cus_a", price_of(27_000, currency="krw"))
    account.answer_next("/v1/account", account.own())
    await paid.post("verify/refresh")
    (source,) = (await paid.synced())["connections"]

    assert source["notCounted"] == {"price_currency_unreadable": 1}
    proof = (await paid.public("/verification")).json()
    assert (proof["mrr"], proof["flags"]) == (1_000, ["price_currency_unreadable"])
    embed = (await paid.public("/embed")).text
    assert "excludes subscriptions whose price is in another currency" in embed
    assert "in review" not in (await paid.public("/badge.svg")).text
    assert (await boss.get("/api/admin/listings/flagged")).json()["items"] == []


async def test_a_rise_made_by_new_prices_is_told_two_weeks_later(
    paid: Seller, account: Account, clock: Clock
) -> None:
    for _ in range(2):
        clock.advance(7 * DAY)
        await paid.read()  # who does nothing for 14 days is signed out
    account.subscribe("cus_a", {**price_of(9_000), "created": int(clock.now.timestamp()) - 60})
    assert (await paid.post("verify/payments", KEY)).status_code == 200
    found = (await paid.synced())["verification"]

    assert found["mrr"] == 10_000
    assert "price_rise" in found["flags"]


async def test_a_suspended_listing_is_not_saved_by_another_source(
    verified: Seller, account: Account, boss: httpx.AsyncClient
) -> None:
    review = f"/api/admin/listings/{verified.made['id']}/verification"
    assert (await boss.post(f"{review}/flag", json={"reason": "odd"})).status_code == 200

    refused = await verified.post("verify/payments", KEY)
    assert (refused.status_code, refused.json()["code"]) == (409, "invalid_transition")
    assert (await verified.public("/badge.svg")).status_code == 404
    assert (await boss.post(f"{review}/clear", json={"reason": "fine"})).status_code == 200
    await verified.synced()
    assert (await verified.post("verify/payments", KEY)).status_code == 200
    await verified.synced()

    assert (await boss.post(f"{review}/flag", json={"reason": "odd"})).status_code == 200
    found = (await verified.read())["connections"]
    assert [each["state"] for each in found] == ["suspended", "suspended"]
    assert (await verified.public("/verification")).json()["corroboration"] is None


async def test_rejected_numbers_are_not_shown_again_by_a_source_that_had_failed_before(
    verified: Seller, account: Account, clock: Clock, boss: httpx.AsyncClient
) -> None:
    clock.advance(8 * DAY)
    account.pay("cus_a", 14_000, days_ago=20)
    assert (await verified.post("verify/payments", KEY)).status_code == 200
    found = await verified.synced()
    assert [each["state"] for each in found["connections"]] == ["failed", "verified"]

    review = f"/api/admin/listings/{verified.made['id']}/verification"
    for verdict in ("flag", "reject"):
        answer = await boss.post(f"{review}/{verdict}", json={"reason": "forged"})
        assert answer.status_code == 200, answer.text
        assert (await verified.public("/history")).json()["items"] == []
    found = await verified.read()
    assert [each["state"] for each in found["connections"]] == ["failed", "failed"]


async def test_another_account_starts_without_the_badge_of_the_first(
    paid: Seller, account: Account, clock: Clock
) -> None:
    clock.advance(timedelta(minutes=1))
    small = Account(account.processor, "acct_1Small", "rk_live_51SmallSecretefgh")
    small.pay("cus_z", 100, days_ago=3)
    answer = await paid.post("verify/payments", {"restrictedKey": small.key})
    assert answer.status_code == 200, answer.text
    found = (await paid.synced())["verification"]

    assert (found["state"], found["revenue30d"]) == ("verified_new", 100)
    assert (await paid.public("/badge.svg")).status_code == 404


async def test_withdrawing_erases_both_credentials(
    verified: Seller, account: Account, database: Database
) -> None:
    await verified.post("verify/payments", KEY)
    await verified.synced()
    await verified.post("withdraw")

    rows = await database.fetch("SELECT client_id, sealed_secret FROM revenue_sources")
    assert [tuple(row) for row in rows] == [("", None), ("", None)]
    again = await verified.post("verify/commerce", CREDENTIALS)
    assert again.status_code == 409
