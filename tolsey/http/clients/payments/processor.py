"""The payment processor's adapter: what the port asks, over the processor's own package.

The package repeats a request that had no answer; the business key makes the repeat the same request.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from stripe import InvalidRequestError, StripeClient
from stripe.params.billing_portal import SessionCreateParams

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts, read_invoice
from tolsey.actors.organization.billing.payment_events.payouts import AccountFacts, read_account
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, read_dispute
from tolsey.actors.organization.billing.payment_events.subscriptions import (
    SubscriptionFacts,
    read_subscription,
)
from tolsey.actors.processor import (
    Addresses,
    Buyer,
    ChargePreview,
    Hosted,
    Refunded,
    Subscribed,
)
from tolsey.actors.refusals import MissingCredential
from tolsey.http.clients.payments import requests
from tolsey.http.clients.payments.answers import answering, facts_of
from tolsey.http.clients.payments.client import ProcessorClient, make_client

KEY_VARIABLE: Final = "PAYMENTS_SECRET_KEY"
MISSING: Final = "resource_missing"
"""The processor's word for what it does not know, as another account's page is."""
PAGE: Final = 100
MOST_ROWS: Final = 1_000
TYPES_AT_ONCE: Final = 20
"""As many event types as one request may name."""


class StripePayments:
    """The PaymentProcessor of the platform's own key; without one every method is a 503."""

    def __init__(
        self,
        key: str | None,
        sold_prices: Mapping[str, str],
        api_base: str | None = None,
        *,
        make: Callable[[str, str | None], ProcessorClient] = make_client,
    ) -> None:
        self._key = key or ""
        self._sold_prices = sold_prices
        self._made = make(key, api_base) if key else None
        self._portals: dict[bool, str] = {}

    async def close(self) -> None:
        """Close every connection."""
        if self._made is not None:
            await self._made.close()

    @contextmanager
    def _asking(self) -> Iterator[StripeClient]:
        if self._made is None:
            raise MissingCredential(KEY_VARIABLE)
        with answering(self._key):
            yield self._made

    async def subscription_checkout(
        self, buyer: Buyer, price_id: str, plan: str, cadence: str, to: Addresses, *, key: str
    ) -> Hosted:
        """Make the page on which a plan is bought."""
        asked = requests.subscription_checkout(buyer, price_id, plan, cadence, to)
        return await self._checkout(asked, key)

    async def credits_checkout(
        self, buyer: Buyer, credits_cents: int, to: Addresses, *, key: str
    ) -> Hosted:
        """Make the page on which credits are bought."""
        return await self._checkout(requests.credits_checkout(buyer, credits_cents, to), key)

    async def sponsor_checkout(
        self, organization_id: str | None, cents: int, to: Addresses, *, key: str
    ) -> Hosted:
        """Make the page on which a sponsor pays."""
        return await self._checkout(requests.sponsor_checkout(organization_id, cents, to), key)

    async def _checkout(self, asked: Any, key: str) -> Hosted:
        with self._asking() as client:
            made = await client.v1.checkout.sessions.create_async(asked, _under(key))
            return Hosted(made.id, made.url or "")

    async def close_checkout(self, session_id: str, *, key: str) -> str | None:
        """Close the page on which a plan is bought; names the subscription bought on it, if any."""
        with self._asking() as client:
            sessions = client.v1.checkout.sessions
            try:
                found = await sessions.retrieve_async(session_id)
            except InvalidRequestError as error:
                if error.code != MISSING:
                    raise
                return None
            if found.status == "open":
                try:
                    found = await sessions.expire_async(session_id, {}, _under(key))
                except InvalidRequestError:  # it was completed just now, or it has expired
                    found = await sessions.retrieve_async(session_id)
            bought = found.subscription
            return bought if isinstance(bought, str) or bought is None else bought.id

    async def portal(self, customer_id: str, return_url: str, *, yearly: bool) -> Hosted:
        """Make a visit to the billing portal, with yearly prices or without."""
        with self._asking() as client:
            configuration = self._portals.get(yearly)
            if configuration is None:
                configuration = await self._configuration(client, yearly=yearly)
                self._portals[yearly] = configuration
            asked: SessionCreateParams = {
                "customer": customer_id,
                "configuration": configuration,
                "return_url": return_url,
            }
            try:
                made = await client.v1.billing_portal.sessions.create_async(asked)
            except InvalidRequestError:  # an operator may have switched the configuration off
                del self._portals[yearly]
                raise
            return Hosted(made.id, made.url)

    async def _configuration(self, client: StripeClient, *, yearly: bool) -> str:
        """Find the portal's configuration by what it offers, or make it: once for all processes."""
        offers = [one for one in plans.OFFERS if yearly or one.cadence is plans.Cadence.MONTHLY]
        ids = [plans.price_id(offer, self._sold_prices) for offer in offers]
        found = await asyncio.gather(*(client.v1.prices.retrieve_async(id) for id in ids))
        products: dict[str, list[str]] = {}
        for price in found:
            product = price.product
            name = product if isinstance(product, str) else product.id
            products.setdefault(name, []).append(price.id)
        offered: Any = [
            {"product": name, "prices": prices, "adjustable_quantity": {"enabled": False}}
            for name, prices in products.items()
        ]
        plain = json.dumps(requests.portal_configuration(offered, ""), sort_keys=True)
        mark = hashlib.sha256(plain.encode()).hexdigest()[:32]
        listed = await client.v1.billing_portal.configurations.list_async(
            {"active": True, "limit": PAGE}
        )
        for configuration in listed.data:
            if configuration.metadata and configuration.metadata.to_dict().get("mark") == mark:
                return configuration.id
        made = await client.v1.billing_portal.configurations.create_async(
            requests.portal_configuration(offered, mark), _under(f"portal:{mark}")
        )
        return made.id

    async def preview_upgrade(self, held: Subscribed, price_id: str) -> ChargePreview:
        """Tell what `upgrade` would charge if it were asked for now."""
        with self._asking() as client:
            asked = requests.upgrade_preview(held, price_id)
            invoice = await client.v1.invoices.create_preview_async(asked)
            taxes = sum(one.amount for one in invoice.total_taxes or ())
            at = datetime.fromtimestamp(invoice.created, UTC)
            return ChargePreview(invoice.amount_due, taxes, at)

    async def upgrade(self, held: Subscribed, price_id: str, *, key: str) -> None:
        """Change the price at once: a new cycle and its invoice, paid or nothing (CardRefused)."""
        with self._asking() as client:
            await client.v1.subscriptions.update_async(
                held.subscription_id, requests.upgrade(held, price_id), _under(key)
            )

    async def downgrade(
        self, held: Subscribed, price_id: str, plan: str, cadence: str, *, key: str
    ) -> str:
        """Change the price at the end of the period, without proration; answers the schedule's id."""
        with self._asking() as client:
            schedules = client.v1.subscription_schedules
            schedule = None
            if held.schedule_id is not None:
                schedule = await schedules.retrieve_async(held.schedule_id)
            # One that was released has no phase to go on from; its event may not have come yet.
            if schedule is None or schedule.current_phase is None:
                schedule = await schedules.create_async(
                    {"from_subscription": held.subscription_id}, _under(f"{key}:schedule")
                )
            asked = requests.downgrade(schedule.to_dict(), price_id, plan, cadence)
            await schedules.update_async(schedule.id, asked, _under(f"{key}:phases"))
            return schedule.id

    async def next_price_id(self, schedule_id: str) -> str | None:
        """Name the price that a schedule goes over to when the period ends, or None."""
        with self._asking() as client:
            found = await client.v1.subscription_schedules.retrieve_async(schedule_id)
        return requests.next_price_id(found.to_dict())

    async def release(self, schedule_id: str, *, key: str) -> None:
        """Take a change back that waits for the end of the period; the subscription goes on."""
        with self._asking() as client:
            await client.v1.subscription_schedules.release_async(schedule_id, {}, _under(key))

    async def cancel(
        self, subscription_id: str, *, feedback: str | None, comment: str | None, key: str
    ) -> None:
        """End the subscription with its period."""
        with self._asking() as client:
            await client.v1.subscriptions.update_async(
                subscription_id, requests.cancel(feedback, comment), _under(key)
            )

    async def resume(self, subscription_id: str, *, key: str) -> None:
        """Take a cancellation back before the period ends."""
        with self._asking() as client:
            await client.v1.subscriptions.update_async(
                subscription_id, {"cancel_at_period_end": False}, _under(key)
            )

    async def end_now(self, subscription_id: str, *, key: str) -> None:
        """End the subscription at once, without proration: its payment is being refunded."""
        with self._asking() as client:
            await client.v1.subscriptions.cancel_async(subscription_id, {}, _under(key))

    async def refund(
        self, payment_ref: str, cents: int | None, *, organization_id: str | None, key: str
    ) -> Refunded:
        """Give a payment back, whole or in part."""
        with self._asking() as client:
            asked = requests.refund(payment_ref, cents, organization_id)
            body = (await client.v1.refunds.create_async(asked, _under(key))).to_dict()
        charge = body["charge"]
        return Refunded(body["id"], charge["amount"], charge["amount_refunded"])

    async def subscription(self, subscription_id: str) -> SubscriptionFacts:
        """Read a subscription as it is now, with all its items."""
        with self._asking() as client:
            body = (await client.v1.subscriptions.retrieve_async(subscription_id)).to_dict()
            if body["items"].get("has_more"):
                items = await client.v1.subscription_items.list_async(
                    {"subscription": subscription_id, "limit": PAGE}
                )
                body["items"] = await _whole(items)
        return facts_of(read_subscription, body)

    async def invoice(self, invoice_id: str) -> InvoiceFacts:
        """Read an invoice as it is now, with all its lines and its payment."""
        with self._asking() as client:
            found = await client.v1.invoices.retrieve_async(invoice_id, {"expand": ["payments"]})
            body = found.to_dict()
            if body["lines"].get("has_more"):
                lines = await client.v1.invoices.line_items.list_async(invoice_id, {"limit": PAGE})
                body["lines"] = await _whole(lines)
        for one in (body.get("payments") or {}).get("data", []):
            if one["status"] == "paid":
                body |= {name: one["payment"].get(name) for name in ("payment_intent", "charge")}
        return facts_of(read_invoice, body)

    async def dispute(self, dispute_id: str) -> DisputeFacts:
        """Read a dispute as it is now."""
        with self._asking() as client:
            body = (await client.v1.disputes.retrieve_async(dispute_id)).to_dict()
        return facts_of(read_dispute, body)

    async def invoice_of_payment(self, payment_intent_id: str) -> str | None:
        """Name the invoice that a payment paid, or None."""
        with self._asking() as client:
            found = await client.v1.invoice_payments.list_async(
                {
                    "payment": {"type": "payment_intent", "payment_intent": payment_intent_id},
                    "limit": 1,
                }
            )
        for one in found.data:
            return one.invoice if isinstance(one.invoice, str) else one.invoice.id
        return None

    async def undelivered_events(self, types: Sequence[str], since: datetime) -> Sequence[str]:
        """Name the events since then that no endpoint of ours took."""
        names: list[str] = []
        with self._asking() as client:
            for n in range(0, len(types), TYPES_AT_ONCE):
                found = await client.v1.events.list_async(
                    {
                        "delivery_success": False,
                        "types": list(types[n : n + TYPES_AT_ONCE]),
                        "created": {"gte": requests.seconds(since)},
                        "limit": PAGE,
                    }
                )
                names += [one["id"] for one in (await _whole(found))["data"]]
        return names

    async def open_payout_account(self, user_id: str, email: str, *, key: str) -> AccountFacts:
        """Make a payout account of the Express kind (controller form)."""
        with self._asking() as client:
            asked = requests.payout_account(user_id, email)
            body = (await client.v1.accounts.create_async(asked, _under(key))).to_dict()
        return facts_of(read_account, body)

    async def onboarding_link(self, account_id: str, return_url: str, refresh_url: str) -> str:
        """Make the one-time address on which its owner says who they are."""
        with self._asking() as client:
            made = await client.v1.account_links.create_async(
                {
                    "account": account_id,
                    "type": "account_onboarding",
                    "return_url": return_url,
                    "refresh_url": refresh_url,
                    "collection_options": {
                        "fields": "eventually_due",
                        "future_requirements": "include",
                    },
                }
            )
            return made.url

    async def dashboard_link(self, account_id: str) -> str:
        """Make the one-time address of the account's own dashboard."""
        with self._asking() as client:
            return (await client.v1.accounts.login_links.create_async(account_id)).url

    async def payout_account(self, account_id: str) -> AccountFacts:
        """Read a payout account as it is now."""
        with self._asking() as client:
            body = (await client.v1.accounts.retrieve_async(account_id)).to_dict()
        return facts_of(read_account, body)


def _under(key: str) -> Any:
    """Give a request its business key."""
    return {"idempotency_key": key}


async def _whole(first: Any) -> dict[str, Any]:
    """Read a list page by page, up to a bound that it then says it has reached."""
    rows: list[dict[str, Any]] = []
    async for one in first.auto_paging_iter():
        if len(rows) == MOST_ROWS:
            return {"data": rows, "has_more": True}
        rows.append(one.to_dict())
    return {"data": rows, "has_more": False}
