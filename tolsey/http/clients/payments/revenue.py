"""Sellers' accounts at the payment processor, read with their restricted keys by its own package."""

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import stripe

from tolsey.actors.listing.verification.accounts import (
    AccountUnreachable,
    KeyRefused,
    ReadDenied,
    SellerAccount,
    TooMuch,
)
from tolsey.http.clients.payments import revenue_shapes as shapes
from tolsey.http.clients.payments.client import make_client
from tolsey.storage.records.selling.revenue import PulledCharge, PulledSubscription

PAGE: Final = 100
MOST_PAGES: Final = 3_000
"""A sync reads this many pages of a kind at most; a larger account is told so."""
MOST_DISPUTES: Final = 200
"""Disputes asked for in a sync; any more are taken for open, so nothing is counted for them."""
NO_KEY: Final = "rk_none"  # every call brings its seller's key
PERMISSION: Final = re.compile(r"'rak_([a-z_]{1,60})'")
NAMED_ACCOUNT: Final = re.compile(r"on account '(acct_[A-Za-z0-9_]{1,60})'")
COUNTED: Final = ("active", "past_due")
SHOWN: Final = ("data.discounts.source.coupon", "data.items.data.discounts")
ITEM_SHOWN: Final = (
    ("data.price.tiers", "data.discounts.source.coupon"),
    ("data.price.tiers",),
)
"""The processor shows four levels at most, so tiers and terms of items are asked for by item; a
key that may not read coupons asks for the tiers alone."""
LISTED: Final = "subscription_read"

Listing = Callable[[Any, Any], Awaitable[Any]]


class RestrictedAccounts:
    """Reads accounts; one client serves every seller's key."""

    def __init__(self, api_base: str | None = None, *, most_pages: int = MOST_PAGES) -> None:
        # A sync that is asked to wait is repeated by its queue, and holds nothing up meanwhile.
        self._client = make_client(NO_KEY, api_base, patience_seconds=0.0)
        self._most_pages = most_pages

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def account(self, key: str) -> SellerAccount:
        """Read whose key it is.

        A key may be refused its account although its permission was ticked: then the refusal names
        it, and what the key is good for is decided by the two other reads (rules/payments#sellers-keys).
        """
        with translated_refusals(key, "account"):
            try:
                found = await self._client.v1.accounts.retrieve_current_async({}, {"api_key": key})
            except stripe.PermissionError as error:
                named = NAMED_ACCOUNT.search(str(error))
                if named is None:
                    raise
                return SellerAccount(
                    account_id=named[1], currency=await self._currency(key), is_live=True
                )
            return shapes.account(found.to_dict())

    async def _currency(self, key: str) -> str:
        """Read what the account is paid in from its last payment; dollars when it has none."""
        with translated_refusals(key, "charges"):
            page = await self._client.v1.charges.list_async({"limit": 1}, {"api_key": key})
            return (page.data[0].currency if page.data else "usd").upper()

    async def probe(self, key: str) -> None:
        """Try the two other reads with one object each."""
        with translated_refusals(key, "charges"):
            await self._client.v1.charges.list_async({"limit": 1}, {"api_key": key})
        with translated_refusals(key, "subscriptions"):
            await self._client.v1.subscriptions.list_async({"limit": 1}, {"api_key": key})

    async def subscriptions(self, key: str) -> Sequence[PulledSubscription]:
        """Read every subscription that goes on."""
        found: list[PulledSubscription] = []
        prices: dict[str, Any] = {}
        ask = self._client.v1.subscriptions.list_async
        with translated_refusals(key, "subscriptions"):
            async for body in self._pages(ask, key, await self._terms(key)):
                if body["status"] in COUNTED and not shapes.is_whole(body):
                    await self._complete(key, body, prices)
                found.append(shapes.subscription(body))
        return found

    async def _terms(self, key: str) -> Mapping[str, Any]:
        """Ask to be shown the terms of discounts, unless the key may not read those."""
        wanted = {"expand": list(SHOWN)}
        once: Any = {"limit": 1, **wanted}
        try:
            await self._client.v1.subscriptions.list_async(once, {"api_key": key})
        except stripe.PermissionError as error:
            found = PERMISSION.search(str(error))
            if found is None or found[1] == LISTED:
                raise
            return {}
        return wanted

    async def charges(self, key: str, since: datetime) -> AsyncIterator[PulledCharge]:
        """Every payment made since a moment, the latest first."""
        hash_key, disputes = secrets.token_bytes(32), Disputes(self._client, key)
        within = {"created": {"gte": int(since.timestamp())}}
        with translated_refusals(key, "charges"):
            async for body in self._pages(self._client.v1.charges.list_async, key, within):
                dispute = await disputes.state_of(body["id"]) if body.get("disputed") else None
                yield shapes.charge(body, hash_key, dispute)

    async def was_paid_before(self, key: str, at: datetime) -> bool:
        """Whether one of the latest hundred payments from before a moment was a good one."""
        with translated_refusals(key, "charges"):
            page = await self._client.v1.charges.list_async(
                {"created": {"lte": int(at.timestamp())}, "limit": PAGE}, {"api_key": key}
            )
            return any(each.livemode and each.status == "succeeded" for each in page.data)

    async def _pages(
        self, ask: Listing, key: str, params: Mapping[str, Any]
    ) -> AsyncIterator[dict[str, Any]]:
        """Give every object of a list, page by page."""
        after: dict[str, str] = {}
        for _ in range(self._most_pages):
            page = await ask({"limit": PAGE, **params, **after}, {"api_key": key})
            for each in page.data:
                yield each.to_dict()
            if not page.has_more or not page.data:
                return
            after = {"starting_after": page.data[-1].id}
        raise TooMuch(
            "The Stripe account has more payments than one sync can read. Contact support."
        )

    async def _complete(self, key: str, body: dict[str, Any], prices: dict[str, Any]) -> None:
        """Put what the list left out into a subscription's items; what is refused stays out."""
        held = body["items"]["data"]
        for each in held:
            each["price"] = prices.get(each["price"]["id"], each["price"])
        if shapes.is_whole(body):
            return
        for shown in ITEM_SHOWN:
            try:
                page = await self._client.v1.subscription_items.list_async(
                    {"subscription": body["id"], "limit": PAGE, "expand": list(shown)},
                    {"api_key": key},
                )
            except (stripe.InvalidRequestError, stripe.PermissionError):
                continue
            body["items"] = page.to_dict()
            prices |= {each["price"]["id"]: each["price"] for each in body["items"]["data"]}
            return


class Disputes:
    """How disputes stand, as far as the key may read that; unknown ones are taken for open."""

    def __init__(self, client: stripe.StripeClient, key: str) -> None:
        self._client = client
        self._key = key
        self._left = MOST_DISPUTES

    async def state_of(self, charge_id: str) -> str:
        """Say how the dispute of a payment stands."""
        if self._left <= 0:
            return "open"
        self._left -= 1
        try:
            page = await self._client.v1.disputes.list_async(
                {"charge": charge_id, "limit": 1}, {"api_key": self._key}
            )
        except stripe.PermissionError:
            self._left = 0
            return "open"
        return page.data[0].status if page.data else "open"


@contextmanager
def translated_refusals(key: str, read: str) -> Iterator[None]:
    """Say what the processor's refusals mean; no message repeats the key."""
    try:
        yield
    except stripe.AuthenticationError as error:
        raise KeyRefused(redacted(error, key), code_of(error) or "key_refused") from None
    except stripe.PermissionError as error:
        message = redacted(error, key)
        found = PERMISSION.search(message)
        if found is None:
            raise KeyRefused(message, code_of(error) or "forbidden") from None
        raise ReadDenied(message, read, found[1]) from None
    except (stripe.StripeError, LookupError, TypeError, ValueError, ArithmeticError) as error:
        # The cause may repeat the key, so it does not travel on.
        raise AccountUnreachable(
            f"Stripe returned no usable response for {read}. Try again in a minute."
        ) from (None if isinstance(error, stripe.StripeError) else error)


def code_of(error: stripe.StripeError) -> str | None:
    """Give the processor's own code; the package leaves it out of refusals of a key."""
    return error.error.code if error.error else None


def redacted(error: stripe.StripeError, key: str) -> str:
    """Give the processor's own words without the key, which they may repeat."""
    words = error.user_message or "Stripe rejected the API key. Create a new restricted key."
    return words.replace(key, "the key")
