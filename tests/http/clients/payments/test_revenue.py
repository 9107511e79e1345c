"""A seller's account is read over real HTTP with a key that may only read."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tests.actors.listing.payments import charge
from tests.http.account_books import ACCOUNT, RESTRICTED_KEY, Account, price_of
from tolsey.actors.listing.verification import account as rules
from tolsey.actors.listing.verification.accounts import (
    AccountError,
    AccountUnreachable,
    KeyRefused,
    ReadDenied,
    SellerAccount,
    TooMuch,
)
from tolsey.http.clients.payments.revenue import RestrictedAccounts
from tolsey.sandbox.payments.processor import Processor
from tolsey.storage.records.selling.revenue import PulledCharge

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
YEAR = timedelta(days=365)


@pytest.fixture
async def account() -> AsyncIterator[Account]:
    processor = Processor(now=NOW, frozen_clock=True)
    async with processor.serve():
        yield Account(processor)


@pytest.fixture
async def accounts(account: Account) -> AsyncIterator[RestrictedAccounts]:
    reader = RestrictedAccounts(account.processor.url)
    yield reader
    await reader.close()


async def charges(accounts: RestrictedAccounts, since: timedelta = YEAR) -> list[PulledCharge]:
    return [each async for each in accounts.charges(RESTRICTED_KEY, NOW - since)]


async def test_a_restricted_key_says_whose_account_it_is(
    account: Account, accounts: RestrictedAccounts
) -> None:
    await accounts.probe(RESTRICTED_KEY)
    assert await accounts.account(RESTRICTED_KEY) == SellerAccount(
        account_id=ACCOUNT, currency="USD", is_live=True
    )

    account.answer_next("/v1/account", account.own(charges_enabled=False))
    found = await accounts.account(RESTRICTED_KEY)
    assert (found.is_live, found.domain) == (False, "www.corner.example")


async def test_a_key_that_may_not_read_the_account_is_known_by_its_refusal(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.allow("charge_read", "subscription_read")
    assert await accounts.account(RESTRICTED_KEY) == SellerAccount(
        account_id=ACCOUNT, currency="USD", is_live=True
    )
    await accounts.probe(RESTRICTED_KEY)
    account.allow("subscription_read")
    with pytest.raises(ReadDenied) as denied:
        await accounts.account(RESTRICTED_KEY)
    assert (denied.value.read, denied.value.permission) == ("charges", "charge_read")


async def test_every_payment_comes_once_however_many_pages_there_are(
    account: Account, accounts: RestrictedAccounts
) -> None:
    made = [account.pay(f"cus_{n}", n + 1, days_ago=n % 300)["id"] for n in range(250)]
    account.pay("cus_old", 5, days_ago=400)

    found = await charges(accounts)
    assert sorted(each.charge_id for each in found) == sorted(made)
    assert "example.com" not in repr(found)
    assert "print_" not in repr(found)


async def test_an_account_that_is_too_large_is_told_so(account: Account) -> None:
    for n in range(101):
        account.pay(f"cus_{n}", 100)
    reader = RestrictedAccounts(account.processor.url, most_pages=1)
    with pytest.raises(TooMuch):
        await charges(reader)
    await reader.close()


async def test_the_golden_path_from_the_wire_to_the_numbers(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.pay("cus_a", 1_000)
    account.pay("cus_a", 1_000, days_ago=45)
    account.pay("cus_b", 12_000, days_ago=300)
    account.pay("cus_c", 700, livemode=False)
    account.subscribe("cus_a")
    account.subscribe("cus_b", price_of(12_000, "year"))
    account.subscribe("cus_c")
    account.subscribe("cus_a", status="canceled")

    subscriptions = await accounts.subscriptions(RESTRICTED_KEY)
    pulled = await charges(accounts, rules.reach(subscriptions, NOW))
    measure = rules.measure(pulled, subscriptions, NOW)
    assert [(each.currency, each.mrr, each.revenue30d) for each in measure.figures] == [
        ("USD", 2_000, 1_000)
    ]
    assert {each.reason: each.orders for each in measure.skipped} == {"test": 1, "never_paid": 1}


async def test_a_subscription_in_another_currency_than_its_price_is_excluded(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.pay("cus_1", 2_000, days_ago=3)
    account.subscribe("cus_1", price_of(27_000, currency="krw"))
    account.pay("cus_2", 3_000, days_ago=3, currency="jpy")
    account.subscribe("cus_2", price_of(2_000), currency="jpy")

    subscriptions = await accounts.subscriptions(RESTRICTED_KEY)
    pulled = await charges(accounts, rules.reach(subscriptions, NOW))
    measure = rules.measure(pulled, subscriptions, NOW)
    assert [(each.currency, each.mrr, each.revenue30d) for each in measure.figures] == [
        ("JPY", 0, 3_000),
        ("USD", 0, 2_000),
    ]
    assert {each.reason: each.orders for each in measure.skipped} == {
        "price_currency_unreadable": 2
    }
    assert measure.flags == ("multiple_currencies", "price_currency_unreadable")


async def test_a_disputed_payment_counts_only_when_the_key_may_read_that_it_was_won(
    account: Account, accounts: RestrictedAccounts
) -> None:
    won, lost, unknown = (account.pay("cus_a", 100 + n, disputed=True)["id"] for n in range(3))
    for charge_id, status in ((won, "won"), (lost, "lost")):
        account.merchant.new("dispute", "du", charge=charge_id, status=status)
    blind = {each.charge_id: each.dispute for each in await charges(accounts)}
    account.allow("charge_read", "dispute_read")
    seen = {each.charge_id: each.dispute for each in await charges(accounts)}

    assert set(blind.values()) == {"open"}
    assert seen == {won: "won", lost: "lost", unknown: "open"}


async def test_tiers_that_a_list_does_not_show_are_asked_for_once_a_price(
    account: Account, accounts: RestrictedAccounts
) -> None:
    tiered = price_of(None, billing_scheme="tiered", tiers_mode="volume", id="price_tiered")
    subs = [account.subscribe("cus_a", tiered) for _ in range(2)]
    shown = [
        {**each, "price": {**each["price"], "tiers": [{"up_to": None, "unit_amount": 900}]}}
        for each in subs[-1]["items"]["data"]
    ]
    body = {"object": "list", "data": shown, "has_more": False, "url": "/v1/subscription_items"}
    account.answer_next("/v1/subscription_items", body)

    found = await accounts.subscriptions(RESTRICTED_KEY)
    for each in found:
        tiers = each.items[0].price.tiers
        assert tiers is not None
        assert tiers[0].unit_amount == Decimal(900)


async def test_tiers_that_cannot_be_read_are_unknown(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.subscribe("cus_a", price_of(None, billing_scheme="tiered", tiers_mode="graduated"))

    found = await accounts.subscriptions(RESTRICTED_KEY)
    assert [each.items[0].price.tiers for each in found] == [None]


async def test_a_key_that_may_not_read_coupons_still_reads_subscriptions(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.subscribe("cus_a", discounts=["di_1"])
    account.subscribe("cus_b")
    words = "Having the 'rak_coupon_read' permission would allow this request to continue."
    account.answer_next("/v1/subscriptions", {"error": {"message": words}}, 403)

    found = {each.customer: each for each in await accounts.subscriptions(RESTRICTED_KEY)}
    measure = rules.measure(
        [charge(who, created_at=NOW - timedelta(days=1)) for who in found], found.values(), NOW
    )
    assert [each.mrr for each in measure.figures] == [1_000]
    assert measure.flags == ("discount_unreadable",)


async def test_a_key_that_may_not_read_subscriptions_does_not_read_less_of_them(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.allow("accounts_kyc_basic_read", "charge_read")
    with pytest.raises(ReadDenied):
        await accounts.subscriptions(RESTRICTED_KEY)


async def test_whether_there_was_a_payment_before_is_found_beyond_the_window(
    account: Account, accounts: RestrictedAccounts
) -> None:
    before = NOW - timedelta(days=30)
    account.pay("cus_a", 100, days_ago=29)
    account.pay("cus_a", 100, days_ago=700, status="failed")
    account.pay("cus_a", 100, days_ago=800, livemode=False)
    assert not await accounts.was_paid_before(RESTRICTED_KEY, before)

    account.pay("cus_a", 100, days_ago=900)
    assert await accounts.was_paid_before(RESTRICTED_KEY, before)


@pytest.mark.parametrize(
    ("allowed", "read", "permission"),
    [
        (("subscription_read",), "charges", "charge_read"),
        (("accounts_kyc_basic_read", "subscription_read"), "charges", "charge_read"),
        (("accounts_kyc_basic_read", "charge_read"), "subscriptions", "subscription_read"),
    ],
)
async def test_a_missing_permission_is_named(
    account: Account,
    accounts: RestrictedAccounts,
    allowed: tuple[str, ...],
    read: str,
    permission: str,
) -> None:
    account.allow(*allowed)
    reading = accounts.account if read == "account" else accounts.probe
    with pytest.raises(ReadDenied) as denied:
        await reading(RESTRICTED_KEY)

    assert (denied.value.read, denied.value.permission) == (read, permission)
    assert ACCOUNT in denied.value.message


async def test_a_key_that_is_not_honoured_is_refused_in_the_processors_words(
    account: Account, accounts: RestrictedAccounts
) -> None:
    with pytest.raises(KeyRefused) as unknown:
        await accounts.account("rk_live_nobody")
    assert "Invalid API Key provided" in unknown.value.message
    assert unknown.value.code == "key_refused"

    account.merchant.keys[RESTRICTED_KEY].expired = True
    with pytest.raises(KeyRefused) as expired:
        await charges(accounts)
    assert expired.value.code == "api_key_expired"

    account.merchant.keys[RESTRICTED_KEY].expired = False
    account.merchant.keys[RESTRICTED_KEY].ip_refused = True
    with pytest.raises(KeyRefused) as elsewhere:
        await accounts.account(RESTRICTED_KEY)
    assert "IP address" in elsewhere.value.message


async def test_words_that_repeat_the_key_are_shown_without_it(
    account: Account, accounts: RestrictedAccounts
) -> None:
    error = {"error": {"type": "invalid_request_error", "message": f"No: {RESTRICTED_KEY}."}}
    for status in (401, 403, 400):
        account.answer_next("/v1/account", error, status)
        with pytest.raises(AccountError) as refused:
            await accounts.account(RESTRICTED_KEY)
        assert RESTRICTED_KEY not in refused.value.message
        assert RESTRICTED_KEY not in repr(refused.value.__cause__)
        assert refused.value.__suppress_context__


async def test_a_processor_that_is_away_is_told_from_one_that_refuses(
    account: Account, accounts: RestrictedAccounts
) -> None:
    account.processor.faults.rate_limit()
    with pytest.raises(AccountUnreachable):
        await accounts.account(RESTRICTED_KEY)
    account.answer_next("/v1/account", {"object": "account"})
    with pytest.raises(AccountUnreachable):
        await accounts.account(RESTRICTED_KEY)
    account.answer_next("/v1/charges", {"object": "list", "data": [{"id": "ch_1"}]})
    with pytest.raises(AccountUnreachable):
        await charges(accounts)
