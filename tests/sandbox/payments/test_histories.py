import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import stripe

from tests.sandbox.payments.stage import STRIPE, Shop
from tests.seeds import seeds

pytestmark = STRIPE
CARDS = ("4242424242424242", "4000002500003155", "4000000000000341")
STEPS = 40


class NothingYetError(Exception):
    """There is nothing of the kind that a step needs."""


class History:
    """A random life of one platform: what people, banks and time do, in any order."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop = shop
        self.random = random.Random(seed)  # noqa: S311 - repeatable histories, no secret
        self.books = shop.processor.platform.books
        self.prices: list[str] = []

    async def open_prices(self) -> None:
        for name, amount, interval in (
            ("Pro", 7_900, "month"),
            ("Max", 19_900, "month"),
            ("Yearly", 79_000, "year"),
            ("Weekly", 2_000, "week"),
        ):
            self.prices.append(await self.shop.price(name, amount, interval))

    async def step(self) -> None:
        """Do one thing; a refusal by the processor is an answer like any other."""
        actions: list[Callable[[], Awaitable[None]]] = [
            self.subscribe,
            self.buy,
            self.change,
            self.change,
            self.cancel,
            self.schedule,
            self.refund,
            self.dispute,
            self.settle,
            self.pay,
            self.swap_card,
            self.wait,
            self.wait,
        ]
        with contextlib.suppress(stripe.InvalidRequestError, stripe.CardError, NothingYetError):
            await self.random.choice(actions)()

    async def wait(self) -> None:
        self.shop.processor.advance(days=self.random.choice([0.01, 1, 5, 17, 33, 100]))

    async def subscribe(self) -> None:
        await self.shop.subscribe(self.random.choice(self.prices), card=self.random.choice(CARDS))

    async def buy(self) -> None:
        session = await self.shop.credits(
            self.random.randrange(50, 9_000), invoice_creation={"enabled": True}
        )
        await self.shop.pay(session.url, self.random.choice(["pay", "decline", "later", "cancel"]))

    def any(self, kind: str, *statuses: str) -> Any:
        found = [o for o in self.books.each(kind) if not statuses or o["status"] in statuses]
        if not found:
            raise NothingYetError
        return self.random.choice(found)

    async def change(self) -> None:
        sub = self.any("subscription", "active", "past_due")
        given: Any = {
            "items": [
                {
                    "id": sub["items"]["data"][0]["id"],
                    "price": self.random.choice(self.prices),
                    "quantity": self.random.randrange(1, 3),
                }
            ],
            "proration_behavior": self.random.choice(
                ["always_invoice", "create_prorations", "none"]
            ),
            "payment_behavior": self.random.choice(
                ["error_if_incomplete", "pending_if_incomplete", "allow_incomplete"]
            ),
        }
        if self.random.random() < 0.4:
            given["billing_cycle_anchor"] = {"type": "now"}
        await self.shop.client.v1.subscriptions.update_async(sub["id"], given)

    async def cancel(self) -> None:
        sub = self.any("subscription")
        at_end: Any = {"cancel_at_period_end": self.random.random() < 0.5}
        await self.shop.client.v1.subscriptions.update_async(sub["id"], at_end)

    async def schedule(self) -> None:
        sub = self.any("subscription")
        schedules = self.shop.client.v1.subscription_schedules
        if sub["schedule"]:
            await schedules.release_async(sub["schedule"])
            return
        made = await schedules.create_async({"from_subscription": sub["id"]})
        first = made.phases[0]
        phases: Any = [
            {
                "items": [{"price": sub["items"]["data"][0]["price"]["id"]}],
                "start_date": first.start_date,
                "end_date": first.end_date,
            },
            {
                "items": [{"price": self.random.choice(self.prices)}],
                "duration": {"interval": "month"},
            },
        ]
        await schedules.update_async(made.id, {"phases": phases})

    async def refund(self) -> None:
        amount = self.random.randrange(1, 5_000)
        charge = self.any("charge", "succeeded")["id"]
        await self.shop.client.v1.refunds.create_async({"charge": charge, "amount": amount})

    async def dispute(self) -> None:
        charge = self.any("charge", "succeeded")["id"]
        made = self.shop.processor.open_dispute(charge)
        self.shop.processor.close_dispute(made["id"], self.random.choice(["won", "lost"]))

    async def settle(self) -> None:
        intent = self.any("payment_intent", "processing")["id"]
        self.shop.processor.settle(intent, paid=self.random.random() < 0.5)

    async def pay(self) -> None:
        invoice = self.any("invoice", "open")
        await self.shop.browser.post(invoice["hosted_invoice_url"], data={"card": CARDS[0]})

    async def swap_card(self) -> None:
        behaviour = self.random.choice(["ok", "decline", "authenticate", "later"])
        self.shop.processor.set_card(self.any("customer")["id"], behaviour)


def check_books(history: History) -> None:
    books, now = history.books, history.shop.processor.platform.now()
    paid: dict[str, int] = {}
    for payment in books.each("invoice_payment"):
        paid[payment["invoice"]] = paid.get(payment["invoice"], 0) + (payment["amount_paid"] or 0)
    for invoice in books.each("invoice"):
        assert paid.get(invoice["id"], 0) == invoice["amount_paid"]
        assert invoice["amount_paid"] + invoice["amount_remaining"] == invoice["amount_due"]
        assert (invoice["amount_remaining"] == 0) == (invoice["status"] == "paid")
    for charge in books.each("charge"):
        refunds = [r["amount"] for r in books.each("refund") if r["charge"] == charge["id"]]
        assert charge["amount_refunded"] == sum(refunds) <= charge["amount"]
    for sub in books.each("subscription"):
        item = sub["items"]["data"][0]
        if sub["status"] in ("active", "past_due"):
            assert item["current_period_start"] <= now <= item["current_period_end"]
        if sub["schedule"]:
            held = books.get("subscription_schedule", sub["schedule"])
            assert (held["status"], held["subscription"]) == ("active", sub["id"])


@pytest.mark.parametrize("seed", seeds(6))
async def test_the_books_agree_after_any_history(shop: Shop, seed: int) -> None:
    history = History(shop, seed)
    await history.open_prices()
    for _ in range(STEPS):
        await history.step()
        check_books(history)
    assert shop.processor.failures == []
