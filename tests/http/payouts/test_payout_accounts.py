"""Somebody opens a payout account, and sees what becomes of it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from tests.http.payouts.conftest import ACCOUNT, CONNECT_SECRET, Bank, begun, read
from tests.http.people import Browser, Clock, Person, SignUp, settings_of
from tests.sandbox.payments.stage import STRIPE
from tolsey.http.web.edge import ASGIApp
from tolsey.http.webhooks.payments.signatures import sign
from tolsey.http.webhooks.table import PAYMENTS_PATH
from tolsey.service import running

pytestmark = STRIPE


async def test_a_person_says_who_they_are_at_the_processor_and_can_be_paid(
    bank: Bank, ann: Person
) -> None:
    assert await read(ann) == {"state": "none"}
    first = await begun(ann)
    assert first["account"]["state"] == "onboarding"
    assert first["account"]["currentlyDue"]
    assert first["url"].startswith(bank.processor.url)

    done = await bank.browser.post(first["url"])
    assert done.headers["location"] == "http://127.0.0.1:8000/?from=payouts"
    await bank.told()

    found = await read(ann)
    assert (found["state"], found["currentlyDue"]) == ("verified", [])
    assert found["id"] == first["account"]["id"]
    (account,) = bank.made("account")
    assert account["metadata"]["user_id"] == ann.user_id
    assert await bank.audited("payout_account.%") == [
        ("payout_account.opened", ann.user_id),
        ("payout_account.onboarding_opened", ann.user_id),
        ("payout_account.verified", "system"),
    ]


async def test_a_person_has_one_account_however_often_and_fast_they_ask(
    bank: Bank, ann: Person
) -> None:
    answers = await asyncio.gather(*(begun(ann) for _ in range(4)))
    answers.append(await begun(ann))
    assert len({one["account"]["id"] for one in answers}) == 1
    assert len({one["url"] for one in answers}) == 5
    assert len(bank.made("account")) == 1
    assert len(await bank.audited("payout_account.opened")) == 1


async def test_an_account_that_was_made_and_not_kept_is_found_again(
    bank: Bank, ann: Person
) -> None:
    first = await begun(ann)
    await bank.live.service.database.execute("DELETE FROM payout_accounts")
    assert (await begun(ann))["account"]["id"] == first["account"]["id"]
    assert len(bank.made("account")) == 1


async def test_an_account_is_made_once_though_the_answer_is_lost(bank: Bank, ann: Person) -> None:
    bank.processor.faults.lose_answer(path="/v1/accounts")
    await begun(ann)
    assert bank.processor.faults.happened == 1
    assert len(bank.made("account")) == 1


async def test_while_the_processor_is_away_what_is_known_is_shown(bank: Bank, ann: Person) -> None:
    known = (await begun(ann))["account"]
    bank.processor.faults.status(500, times=9)
    assert await read(ann) == known
    away = await ann.browser.post(ACCOUNT)
    assert (away.status_code, away.json()["code"]) == (502, "processor_unreachable")
    bank.processor.faults.clear()
    assert (await begun(ann))["account"] == known


async def test_the_processor_may_not_be_content(bank: Bank, ann: Person) -> None:
    account = (await begun(ann))["account"]["id"]
    bank.processor.onboard(account, disabled_reason="rejected.fraud")
    await bank.told()
    found = await read(ann)
    assert (found["state"], found["disabledReason"]) == ("restricted", "rejected.fraud")


async def test_a_verified_account_can_be_restricted_later(
    bank: Bank, ann: Person, clock: Clock
) -> None:
    account = (await begun(ann))["account"]["id"]
    bank.processor.onboard(account)
    await bank.told()
    assert (await read(ann))["state"] == "verified"
    bank.processor.advance(60)
    clock.advance(timedelta(seconds=60))
    bank.processor.onboard(account, disabled_reason="rejected.other")
    await bank.told()
    assert (await read(ann))["state"] == "restricted"


async def test_who_is_back_before_the_event_is_verified_all_the_same(
    bank: Bank, ann: Person
) -> None:
    url = (await begun(ann))["url"]
    bank.processor.webhooks.pause()
    await bank.browser.post(url)
    assert (await read(ann))["state"] == "verified"
    bank.processor.webhooks.resume()
    await bank.told()
    assert (await read(ann))["state"] == "verified"


async def test_a_page_that_grew_old_leads_to_a_fresh_one(bank: Bank, ann: Person) -> None:
    url = (await begun(ann))["url"]
    bank.processor.advance(600)
    again = (await bank.browser.get(url)).headers["location"]
    assert again == f"http://127.0.0.1:8000{ACCOUNT}/onboarding"
    sent = await ann.browser.get(again)
    assert sent.status_code == 303
    assert sent.headers["location"] != url
    await bank.browser.post(sent.headers["location"])
    await bank.told()
    assert (await read(ann))["state"] == "verified"


async def test_the_processors_own_pages_open_once_the_form_is_filled(
    bank: Bank, ann: Person
) -> None:
    absent = await ann.browser.post(f"{ACCOUNT}/dashboard")
    assert (absent.status_code, absent.json()["code"]) == (404, "not_found")
    url = (await begun(ann))["url"]
    early = await ann.browser.post(f"{ACCOUNT}/dashboard")
    assert (early.status_code, early.json()["code"]) == (409, "onboarding_unfinished")
    await bank.browser.post(url)
    opened = await ann.browser.post(f"{ACCOUNT}/dashboard")
    assert opened.status_code == 200, opened.text
    assert opened.json()["url"].startswith(bank.processor.url)
    assert (await bank.audited("payout_account.dashboard%")) == [
        ("payout_account.dashboard_opened", ann.user_id)
    ]


async def test_a_payout_that_came_back_is_shown_to_its_owner_alone(
    bank: Bank, ann: Person, sign_up: SignUp
) -> None:
    bob = await sign_up("bob@example.com")
    account = (await begun(ann))["account"]["id"]
    await begun(bob)
    payout = bank.processor.fail_payout(account, 12_500)
    await bank.told()
    (failed,) = (await read(ann))["failedPayouts"]
    assert failed["id"] == payout["id"]
    assert failed["amount"] == {"amount": 12_500, "currency": "USD"}
    assert failed["failureCode"] == "account_closed"
    assert (await read(bob))["failedPayouts"] == []
    assert await bank.audited("payout") == [("payout", "system")]


async def test_nobody_becomes_verified_by_a_forged_event(bank: Bank, ann: Person) -> None:
    account = (await begun(ann))["account"]["id"]
    bank.processor.webhooks.pause()
    bank.processor.onboard(account)
    (delivery,) = bank.processor.webhooks.log
    for secret in (b"whsec_guess", b""):
        at = int(bank.live.service.clock().timestamp())
        forged = await ann.browser.post(
            PAYMENTS_PATH,
            content=delivery.body,
            headers={"Stripe-Signature": sign(delivery.body, secret, at).decode()},
        )
        assert forged.status_code in {400, 401}
    database = bank.live.service.database
    assert await database.fetch("SELECT FROM payment_events") == []
    row = await database.fetchrow("SELECT is_verified FROM payout_accounts")
    assert row is not None
    assert row["is_verified"] is False
    assert CONNECT_SECRET not in str(await read(ann))


async def test_the_processor_is_asked_only_so_often(bank: Bank, ann: Person) -> None:
    account = (await begun(ann))["account"]["id"]
    for _ in range(10):
        assert (await read(ann))["state"] == "onboarding"
    bank.processor.webhooks.pause()
    bank.processor.onboard(account)
    assert (await read(ann))["state"] == "onboarding"


async def test_an_account_is_for_who_is_signed_in(bank: Bank, browser: Browser) -> None:
    stranger = browser()
    for method, path in (
        ("POST", ACCOUNT),
        ("GET", ACCOUNT),
        ("GET", f"{ACCOUNT}/onboarding"),
        ("POST", f"{ACCOUNT}/dashboard"),
    ):
        assert (await stranger.request(method, path)).status_code == 401
    assert bank.made("account") == []


class TestWithoutAProcessor:
    """The service is given no key."""

    @pytest.fixture
    async def edge(self, database_url: str, redis_url: str, clock: Clock) -> AsyncIterator[ASGIApp]:
        settings = settings_of(database_url=database_url, redis_url=redis_url)
        async with running(settings, clock=clock, timers=False) as live:
            yield live.app

    async def test_an_account_cannot_be_opened_and_the_variable_is_named(self, ann: Person) -> None:
        assert await read(ann) == {"state": "none"}
        answer = await ann.browser.post(ACCOUNT)
        assert (answer.status_code, answer.json()["code"]) == (503, "missing_credential")
        assert answer.json()["variable"] == "PAYMENTS_SECRET_KEY"
