import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import stripe
import structlog

from tests.http.payments.market import Market, opened
from tolsey.actors.processor import (
    Addresses,
    Buyer,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorUnreachable,
)
from tolsey.actors.refusals import MissingCredential
from tolsey.http.clients.payments.client import make_client
from tolsey.http.clients.payments.processor import StripePayments
from tolsey.sandbox.payments.processor import SECRET_KEY

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
TO = Addresses("https://ours.test/billing?from=checkout", "https://ours.test/billing")
ORG = Buyer("org_1")


@pytest.fixture
async def market() -> AsyncIterator[Market]:
    async with opened(NOW) as market:
        yield market


async def test_the_same_key_for_something_else_is_refused(market: Market) -> None:
    await market.payments.credits_checkout(ORG, 500, TO, key="k")
    with pytest.raises(ProcessorRefused) as refused:
        await market.payments.credits_checkout(ORG, 600, TO, key="k")
    assert refused.value.code == "idempotency_error"
    assert len(market.made("checkout.session")) == 1


@pytest.mark.parametrize("trouble", ["status", "lose_answer", "reset"])
async def test_one_trouble_is_not_noticed_and_what_was_asked_happens_once(
    market: Market, trouble: str
) -> None:
    getattr(market.processor.faults, trouble)(path="/v1/checkout")
    await market.payments.credits_checkout(ORG, 500, TO, key="k")
    assert market.processor.faults.happened == 1
    assert len(market.made("checkout.session")) == 1


@pytest.mark.parametrize("status", [409, 500, 503])
async def test_a_processor_in_lasting_trouble_is_unreachable(market: Market, status: int) -> None:
    market.processor.faults.status(status, times=3, path="/v1/checkout")
    with pytest.raises(ProcessorUnreachable, match="may still complete"):
        await market.payments.credits_checkout(ORG, 500, TO, key="k")
    assert market.processor.faults.happened == 3
    await market.payments.credits_checkout(ORG, 500, TO, key="k")
    assert len(market.made("checkout.session")) == 1


@pytest.mark.parametrize("retry", [False, True])
async def test_a_processor_that_is_asked_too_much_is_asked_again(
    market: Market, retry: bool
) -> None:
    market.processor.faults.rate_limit(path="/v1/checkout", retry=retry, after=1)
    await market.payments.credits_checkout(ORG, 500, TO, key="k")
    assert market.processor.faults.happened == 1
    assert len(market.made("checkout.session")) == 1


@pytest.mark.parametrize("retry", [False, True])
async def test_a_processor_that_is_busy_for_longer_says_for_how_long(
    market: Market, retry: bool
) -> None:
    market.processor.faults.rate_limit(path="/v1/checkout", times=3, retry=retry, after=77)
    with pytest.raises(ProcessorBusy) as busy:
        await market.payments.credits_checkout(ORG, 500, TO, key="k")
    assert (busy.value.retry_after, market.processor.faults.happened) == (77, 1)
    assert market.made("checkout.session") == []


async def test_a_processor_that_does_not_answer_in_time_is_unreachable(market: Market) -> None:
    payments = StripePayments(
        SECRET_KEY,
        market.prices,
        market.processor.url,
        make=lambda key, base: make_client(key, base, timeout_seconds=0.05, retries=0),
    )
    released = market.processor.faults.hold("/v1/checkout")
    with pytest.raises(ProcessorUnreachable):
        await payments.credits_checkout(ORG, 500, TO, key="k")
    released.set()
    await payments.close()
    # Whether it was done is unknown; the same key finds out.
    page = await market.payments.credits_checkout(ORG, 500, TO, key="k")
    assert [one["id"] for one in market.made("checkout.session")] == [page.id]


async def test_a_processor_that_is_not_there_is_unreachable() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        payments = StripePayments(
            SECRET_KEY, {}, base, make=lambda key, base: make_client(key, base, retries=0)
        )
        with pytest.raises(ProcessorUnreachable):
            await payments.dispute("dp_1")
        await payments.close()


async def test_without_a_key_the_variable_is_named() -> None:
    payments = StripePayments(None, {})
    with pytest.raises(MissingCredential, match="PAYMENTS_SECRET_KEY"):
        await payments.credits_checkout(ORG, 500, TO, key="k")
    with pytest.raises(MissingCredential, match="PAYMENTS_SECRET_KEY"):
        await payments.undelivered_events([], NOW)
    await payments.close()


async def test_a_key_that_is_not_accepted_shows_up_nowhere(
    market: Market, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk_live_nobodyknowsthis"
    payments = StripePayments(secret, market.prices, market.processor.url)
    with (
        structlog.testing.capture_logs() as events,
        caplog.at_level(logging.DEBUG),
        pytest.raises(ProcessorRefused) as refused,
    ):
        await payments.credits_checkout(ORG, 500, TO, key="k")
    await payments.close()
    assert (
        refused.value.message
        == "Stripe rejected this service's API key. Ask the operator to check it."
    )
    shown = logging.Formatter().formatException((refused.type, refused.value, refused.tb))
    assert "Authentication" not in shown  # the package's error, whose parts are not ours, is gone
    (event,) = events
    assert (event["event"], event["status"]) == ("payments.key_refused", 401)
    assert "Request to Stripe api" in caplog.text
    assert "nobodyknowsthis" not in f"{event}{caplog.text}{refused.value!r}"


async def test_a_message_that_repeats_the_key_is_repeated_without_it(market: Market) -> None:
    with pytest.raises(ProcessorRefused) as refused:
        await market.payments.dispute(SECRET_KEY)
    assert SECRET_KEY not in refused.value.message
    assert "No such dispute" in refused.value.message


async def test_nothing_is_told_about_this_machine() -> None:
    assert not stripe.enable_telemetry
    seen: list[dict[str, str]] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:]
        seen.append(dict(line.lower().split(": ", 1) for line in head if line))
        body = b'{"id":"dp_1","object":"dispute"}'
        writer.write(b"HTTP/1.1 200 OK\r\nrequest-id: req_1\r\nconnection: close\r\n")
        writer.write(b"content-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1")
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = make_client(SECRET_KEY, base)
    for _ in range(2):  # the package tells of a call with the next one
        await client.v1.disputes.retrieve_async("dp_1")
    await client.close()
    server.close()
    assert len(seen) == 2
    for headers in seen:
        assert "x-stripe-client-telemetry" not in headers
        assert "telemetry_id" not in headers["x-stripe-client-user-agent"]
        assert "platform" not in headers["x-stripe-client-user-agent"]
        assert headers["stripe-version"] == stripe.api_version
