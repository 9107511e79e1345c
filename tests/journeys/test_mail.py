"""Whom the service writes to when something breaks, and where that is read without a mail server."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from tests.actors.organization.processor import event, invoice, payout
from tests.http.people import KEYRING
from tests.journeys.conftest import EVENTS, SHOP, Seller, sign_up, signed
from tests.journeys.strangers import browsing
from tests.journeys.test_hostile_platform import let_the_token_age
from tests.journeys.test_payments_received import CONNECT, PLATFORM, post
from tests.timing import until
from tolsey.actors.mail import MailEvent
from tolsey.actors.refusals import MissingCredential, Unavailable
from tolsey.actors.store.connection.messages import UseToken
from tolsey.actors.store.messages import store
from tolsey.sandbox.commerce.platform import Platform
from tolsey.service import Running, running
from tolsey.settings import Settings
from tolsey.storage.database import Row


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"payments_webhook_secret": f"{PLATFORM},{CONNECT}"})


async def written(live: Running, event: MailEvent, count: int = 1) -> list[Row]:
    """Wait for the mails of an event that are kept."""

    async def find() -> list[Row] | None:
        rows = await live.service.database.fetch(
            "SELECT * FROM outbound_mail WHERE event = $1 AND state = 'kept' ORDER BY recipient",
            event,
        )
        return rows if len(rows) >= count else None

    return await until(find)


async def read(browser: httpx.AsyncClient, mail: Row) -> str:
    shown = await browser.get(f"/mail/{mail['id']}")
    assert shown.status_code == 200, shown.text
    return shown.text


async def test_a_store_whose_app_was_removed_is_told_to_its_keepers(
    live: Running, browser: httpx.AsyncClient, seller: Seller
) -> None:
    await seller.connect()
    farewell = b'{"id": 9, "myshopify_domain": null}'
    headers = signed(farewell, "app/uninstalled")
    answer = await browser.post(EVENTS, content=farewell, headers=headers)
    assert answer.status_code == 200
    (mail,) = await written(live, MailEvent.CONNECTION_BROKEN)
    assert mail["recipient"] == "seller@example.com"
    assert mail["subject"] == f"{SHOP} is no longer connected"
    said = await read(browser, mail)
    assert "The app was removed" in said
    assert f"http://127.0.0.1:8000/stores/{seller.store_id}" in said


async def test_a_store_whose_app_is_refused_is_told_to_its_keepers(
    live: Running, seller: Seller, platform: Platform
) -> None:
    await seller.connect()
    await let_the_token_age(live, seller.store_id)
    platform.rotate_secret(SHOP, "shpss_rotated")
    with pytest.raises(Unavailable, match="Connect the store again"):
        await live.service.runtime.ask(store(seller.store_id), UseToken(datetime.now(UTC)))
    (mail,) = await written(live, MailEvent.CONNECTION_BROKEN)
    assert "rejected the app" in await read(seller.browser, mail)


async def test_a_payment_that_failed_is_told_to_who_may_pay(
    live: Running, browser: httpx.AsyncClient
) -> None:
    seller = await sign_up(browser)
    details = {"subscription": "sub_1", "metadata": {"org_id": seller.organization_id}}
    failed = invoice(
        status="open",
        amount_paid=0,
        amount_remaining=8690,
        attempt_count=1,
        parent={"type": "subscription_details", "subscription_details": details},
    )
    answered = event("invoice.payment_failed", failed)
    assert (await post(browser, answered)).json()["status"] == "accepted"
    (mail,) = await written(live, MailEvent.PAYMENT_FAILED)
    assert mail["recipient"] == "seller@example.com"
    said = await read(browser, mail)
    assert "USD 86.90" in said
    assert "unsubscribe" not in said  # about money


async def test_a_payout_that_came_back_is_told_to_its_payee(
    live: Running, browser: httpx.AsyncClient
) -> None:
    await sign_up(browser)
    await live.service.database.execute(
        """
        INSERT INTO payout_accounts (account_id, user_id, has_submitted_details, can_charge,
            can_be_paid_out, is_verified, currently_due, past_due, eventually_due,
            pending_verification, created_at)
        SELECT 'acct_1', id, true, true, true, true, '{}', '{}', '{}', '{}', now() FROM users
        """
    )
    returned = payout(status="failed", failure_code="account_closed", failure_message="Closed")
    answered = event("payout.failed", returned, account="acct_1")
    assert (await post(browser, answered, CONNECT)).json()["status"] == "accepted"
    (mail,) = await written(live, MailEvent.PAYOUT_FAILED)
    assert mail["recipient"] == "seller@example.com"
    assert "USD 250.00. Closed" in await read(browser, mail)


async def test_kept_mails_are_shown_to_this_machine_alone(
    live: Running, browser: httpx.AsyncClient
) -> None:
    await keep_one(live)
    (mail,) = await written(live, MailEvent.INVITED)
    listed = await browser.get("/mail")
    assert f'href="/mail/{mail["id"]}"' in listed.text
    html = await browser.get(f"/mail/{mail['id']}/html")
    assert "http://127.0.0.1:8000/x?a=1&amp;b=2" in html.text
    assert "http://127.0.0.1:8000/x?a=1&amp;b=2" in await read(browser, mail)
    async with browsing(live, address="203.0.113.9") as far:
        for path in ("/mail", f"/mail/{mail['id']}", f"/mail/{mail['id']}/html"):
            assert (await far.get(path)).status_code == 404


async def keep_one(live: Running) -> None:
    async with live.service.database.transaction() as tx:
        await live.service.mail.write(
            tx,
            MailEvent.INVITED,
            "bob@example.com",
            about="inv_1",
            facts={"inviter": "a@example.com", "organization": "A", "role": "admin"},
            link="http://127.0.0.1:8000/x?a=1&b=2",
        )


@pytest.fixture
async def public_service(settings: Settings) -> AsyncIterator[Running]:
    given: dict[str, Any] = {"base_url": "https://tolsey.example", "encryption_keys": KEYRING}
    async with running(
        settings.model_copy(update=given), timers=False, poll_seconds=0.1
    ) as service:
        yield service


async def test_in_public_a_kept_mail_raises_an_alarm_that_names_the_variable(
    public_service: Running,
) -> None:
    with pytest.raises(MissingCredential, match="MAIL_URL"):
        public_service.service.mail.require()
    with capture_logs() as logs:
        await keep_one(public_service)
        (mail,) = await written(public_service, MailEvent.INVITED)
    alarms = [line for line in logs if line["event"] == "mail.kept"]
    assert [(line["log_level"], line["variable"]) for line in alarms] == [("error", "MAIL_URL")]
    transport = httpx.ASGITransport(public_service.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://tolsey.example") as near:
        assert (await near.get("/mail")).status_code == 404
        assert (await near.get(f"/mail/{mail['id']}")).status_code == 404
    assert not re.search("a=1&b=2", str(logs))
