import asyncio
from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import STRIPE, Opener, Shop, client_of, close, error_of
from tests.timing import until

pytestmark = STRIPE

UNKNOWN: Any = {"nmae": "A"}


async def test_an_unknown_parameter_is_refused_by_name(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await shop.client.v1.customers.create_async(UNKNOWN)
    assert refused.value.code == "parameter_unknown"
    assert refused.value.param == "nmae"
    assert "Received unknown parameter: nmae" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "param", "code"),
    [
        (
            {"tax_id_collection": {"required": "never"}},
            "tax_id_collection[enabled]",
            "parameter_missing",
        ),
        ({"mode": "subscribe"}, "mode", None),
        (
            {"line_items": [{"quantity": "two"}]},
            "line_items[0][quantity]",
            "parameter_invalid_integer",
        ),
        ({"line_items": [{"prise": "p"}]}, "line_items[0][prise]", "parameter_unknown"),
        ({"customer_update": {"name": "yes"}}, "customer_update[name]", None),
        ({"automatic_tax": {"enabled": "maybe"}}, "automatic_tax[enabled]", None),
    ],
)
async def test_a_session_is_checked_by_the_packages_types(
    shop: Shop, given: dict[str, Any], param: str, code: str | None
) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await shop.session(**given)
    assert (refused.value.param, refused.value.code) == (param, code)


async def test_what_is_not_played_is_refused_and_not_ignored(shop: Shop) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await shop.client.v1.customers.create_async({"balance": 5})
    assert refused.value.code == "sandbox_not_built"
    with pytest.raises(stripe.InvalidRequestError, match="Unrecognized request URL"):
        await shop.client.v1.coupons.list_async()


async def test_an_unknown_key_is_refused_without_a_code(as_key: Opener) -> None:
    async with as_key("rk_test_nobody_knows_it") as client:
        with pytest.raises(stripe.AuthenticationError) as refused:
            await client.v1.accounts.retrieve_current_async()
    error = error_of(refused.value)
    assert error == {
        "type": "invalid_request_error",
        "message": "Invalid API Key provided: rk_test_*************it",
    }


async def test_an_expired_key_says_so(shop: Shop, as_key: Opener) -> None:
    merchant = shop.processor.add_merchant("acct_seller")
    shop.processor.add_key(merchant, "rk_test_abc123").expired = True
    async with as_key("rk_test_abc123") as client:
        with pytest.raises(stripe.AuthenticationError) as refused:
            await client.v1.accounts.retrieve_current_async()
    assert error_of(refused.value) == {
        "code": "api_key_expired",
        "doc_url": "https://stripe.com/docs/error-codes/api-key-expired",
        "message": "Expired API Key provided: rk_test_***123",
        "type": "invalid_request_error",
    }


async def test_a_restricted_key_may_do_what_it_names_and_no_more(
    shop: Shop, as_key: Opener
) -> None:
    merchant = shop.processor.add_merchant("acct_seller")
    shop.processor.add_key(merchant, "rk_live_secretabcd", "charge_read", "subscription_read")
    async with as_key("rk_live_secretabcd") as client:
        assert (await client.v1.charges.list_async({"limit": 1})).data == []
        assert (await client.v1.subscriptions.list_async({"limit": 1})).data == []
        with pytest.raises(stripe.PermissionError) as refused:
            await client.v1.accounts.retrieve_current_async()
        with pytest.raises(stripe.PermissionError, match="rak_customer_write"):
            await client.v1.customers.create_async({})
    assert error_of(refused.value)["message"] == (
        "The provided key 'rk_live_******abcd' does not have the required permissions for this"
        " endpoint on account 'acct_seller'. Having the 'rak_accounts_kyc_basic_read' permission"
        " would allow this request to continue."
    )


async def test_one_client_reads_with_a_sellers_key(shop: Shop) -> None:
    merchant = shop.processor.add_merchant("acct_seller")
    shop.processor.add_key(merchant, "rk_test_seller", "accounts_kyc_basic_read")
    account = await shop.client.v1.accounts.retrieve_current_async(
        {}, {"api_key": "rk_test_seller", "max_network_retries": 0}
    )
    assert account.id == "acct_seller"


async def test_only_platforms_act_for_other_accounts(shop: Shop) -> None:
    merchant = shop.processor.add_merchant("acct_seller")
    shop.processor.add_key(merchant, "sk_test_seller")
    with pytest.raises(stripe.PermissionError, match="Only Stripe Connect platforms"):
        await shop.client.v1.customers.list_async(
            {}, {"api_key": "sk_test_seller", "stripe_account": "acct_other"}
        )


async def test_a_repeated_key_gives_the_stored_answer(shop: Shop) -> None:
    once = await shop.client.v1.customers.create_async({"name": "A"}, {"idempotency_key": "k"})
    again = await shop.client.v1.customers.create_async({"name": "A"}, {"idempotency_key": "k"})
    assert once.id == again.id
    assert again.last_response
    assert again.last_response.headers["Idempotent-Replayed"] == "true"


async def test_a_repeated_key_with_other_parameters_is_refused(shop: Shop) -> None:
    await shop.client.v1.customers.create_async({"name": "A"}, {"idempotency_key": "k"})
    with pytest.raises(stripe.IdempotencyError) as refused:
        await shop.client.v1.customers.create_async({"name": "B"}, {"idempotency_key": "k"})
    assert refused.value.http_status == 400


async def test_a_key_is_forgotten_after_a_day(shop: Shop) -> None:
    once = await shop.client.v1.customers.create_async({"name": "A"}, {"idempotency_key": "k"})
    shop.processor.advance(days=1.1)
    again = await shop.client.v1.customers.create_async({"name": "B"}, {"idempotency_key": "k"})
    assert once.id != again.id


@pytest.mark.parametrize("trouble", ["status", "lose_answer", "reset"])
async def test_a_request_that_is_retried_happens_once(shop: Shop, trouble: str) -> None:
    getattr(shop.processor.faults, trouble)(path="/v1/customers")
    await shop.client.v1.customers.create_async({"name": "A"})
    assert shop.processor.faults.happened == 1
    assert len(list(shop.processor.platform.books.each("customer"))) == 1


async def test_a_rate_limit_reaches_the_caller_unless_a_retry_is_told(shop: Shop) -> None:
    shop.processor.faults.rate_limit()
    with pytest.raises(stripe.RateLimitError):
        await shop.client.v1.customers.list_async()
    shop.processor.faults.rate_limit(retry=True)
    assert (await shop.client.v1.customers.list_async()).data == []


async def test_an_answer_can_be_held_until_the_client_gives_up(shop: Shop) -> None:
    released = shop.processor.faults.hold("/v1/customers")
    asking = asyncio.create_task(shop.client.v1.customers.list_async())
    await until(lambda: shop.processor.faults.happened)
    assert not asking.done()
    released.set()
    assert (await asking).data == []


async def test_lists_are_paged_from_the_newest_on(shop: Shop) -> None:
    made = [(await shop.client.v1.customers.create_async({"name": str(n)})).id for n in range(5)]
    page = await shop.client.v1.customers.list_async({"limit": 2})
    assert page.has_more
    assert [c.id async for c in page.auto_paging_iter()] == made[::-1]
    before = await shop.client.v1.customers.list_async({"limit": 2, "ending_before": made[0]})
    assert [c.id for c in before.data] == [made[2], made[1]]


async def test_lists_are_filtered_by_when_things_were_made(shop: Shop) -> None:
    await shop.client.v1.customers.create_async({})
    shop.processor.advance(60)
    late = await shop.client.v1.customers.create_async({})
    found = await shop.client.v1.customers.list_async({"created": {"gte": late.created}})
    assert [c.id for c in found.data] == [late.id]


async def test_metadata_is_merged_and_unset(shop: Shop) -> None:
    customer = await shop.client.v1.customers.create_async({"metadata": {"0": "a", "b": "c"}})
    changed = await shop.client.v1.customers.update_async(
        customer.id, {"metadata": {"b": "", "d": "e"}}
    )
    assert changed.metadata
    assert changed.metadata.to_dict() == {"0": "a", "d": "e"}


async def test_another_version_is_refused(shop: Shop) -> None:
    client = client_of(shop.processor.url)
    with pytest.raises(stripe.InvalidRequestError, match="Invalid Stripe API version"):
        await client.v1.customers.list_async({}, {"stripe_version": "2017-08-15"})
    await close(client)
