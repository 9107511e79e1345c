"""A seller who wants a green badge for money that never came, and the ways that lead there."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.orders import Order

GATEWAYS: Final = ("shopify_payments", "stripe", "paypal", "manual", "Gift Card", "exchange-credit")
NO_MONEY: Final = (
    *("gift_card", "Gift Card", "store-credit", "shopify_store_credit", "Cash", "bogus", "other"),
    *("Cash on Delivery (COD)", "Bank Deposit", "money_order", "check", "exchange-credit"),
)
SOURCES: Final = ("web", "iphone", "pos", "shopify_draft_order", "580111", "subscription_contract")


class Forger:
    """Tries one way after the other; a seed fixes which, and for how much."""

    def __init__(self, seed: int, platform: Platform, shop: str) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable, no secret
        self._platform = platform
        self._shop = shop
        self.ways: dict[str, Callable[[], object]] = {
            "an app writes an order": self.write,
            "an app imports a history": self.import_history,
            "a gift card pays": self.pay_without_money,
            "a till takes a tender": self.ring_up,
            "a draft is marked as paid": self.mark_as_paid,
            "a test card pays": self.test,
            "an order is cancelled": self.cancel,
            "an order is given back": self.give_back,
            "a refund is under way": self.begin_refund,
            "an order is disputed": self.dispute,
            "a gift card is sold": self.sell_gift_card,
            "goods are exchanged": self.exchange,
            "nothing is paid": self.leave_unpaid,
        }

    def items(self) -> list[Item]:
        """Fill a cart with what should look like a business."""
        price = self.random.randrange(1, 900_000)
        plan = self.random.choice((None, "Every month"))
        return [Item(unit_price=price, quantity=self.random.randrange(1, 4), plan=plan)]

    def write(self) -> Order:
        """Write an order by an app, of any source and gateway."""
        back = timedelta(hours=self.random.choice((0, 1, 47)))
        return self._platform.write_order(
            self._shop,
            self.items(),
            gateway=self.random.choice(GATEWAYS),
            source_name=self.random.choice(SOURCES),
            processed_at=self._platform.now() - back,
        )

    def import_history(self) -> None:
        """Write orders of long ago."""
        for days in (3, 40, 200):
            self._platform.write_order(
                self._shop,
                self.items(),
                gateway=self.random.choice(GATEWAYS),
                processed_at=self._platform.now() - timedelta(days=days),
            )

    def pay_without_money(self) -> Order:
        """Go through the checkout, and pay with what no processor stands behind."""
        gateway = self.random.choice(NO_MONEY)
        return self._platform.place_order(self._shop, self.items(), gateway=gateway)

    def ring_up(self) -> Order:
        """Ring up a sale with a tender of the till's own."""
        gateway = self.random.choice(("Charge", "cash", "Card on our own terminal"))
        return self._platform.place_order(
            self._shop, self.items(), gateway=gateway, source_name="pos"
        )

    def mark_as_paid(self) -> Order:
        """Mark a draft, or an order of the checkout, as paid."""
        return self._platform.place_order(
            self._shop,
            self.items(),
            gateway="manual",
            manual=True,
            source_name=self.random.choice(("shopify_draft_order", "web")),
        )

    def test(self) -> Order:
        """Pay with a card of the test mode."""
        return self._platform.place_order(self._shop, self.items(), test=True)

    def leave_unpaid(self) -> Order:
        """Order, and pay nothing."""
        return self._platform.place_order(self._shop, self.items(), paid=False)

    def own(self) -> Order:
        """Pay with a card of one's own: the money is real, and comes back."""
        return self._platform.place_order(self._shop, self.items(), shipping=500)

    def cancel(self) -> None:
        """Take one's own money back by cancelling."""
        self._platform.cancel_order(self._shop, self.own().id)

    def give_back(self) -> None:
        """Take it back by a refund of everything, with the goods or without them."""
        order = self.own()
        lines = {line.id: line.quantity for line in order.lines}
        returned = self.random.choice((None, lines))
        self._platform.refund_order(self._shop, order.id, amount=order.total, returned=returned)

    def begin_refund(self) -> None:
        """Take it back by a refund that the processor has not made yet."""
        order = self.own()
        status = self.random.choice(("PENDING", "AWAITING_RESPONSE"))
        self._platform.refund_order(self._shop, order.id, amount=order.total, status=status)

    def dispute(self) -> None:
        """Take it back by one's own bank."""
        status = self.random.choice(("NEEDS_RESPONSE", "UNDER_REVIEW", "LOST", "ACCEPTED"))
        self._platform.dispute_order(self._shop, self.own().id, status)

    def sell_gift_card(self) -> None:
        """Buy gift cards with one's own money, and spend them again and again."""
        price = self.random.randrange(1, 900_000)
        self._platform.place_order(self._shop, [Item(unit_price=price, gift_card=True)])
        for _ in range(3):
            self.pay_without_money()

    def exchange(self) -> None:
        """Exchange what no money was paid for."""
        order = self.pay_without_money()
        line = order.lines[0]
        self._platform.exchange_order(self._shop, order.id, {line.id: 1}, self.items())
