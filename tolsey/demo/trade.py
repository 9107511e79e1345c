"""A shop with goods on its shelves, whose buyers pay through the seller's account at the processor.

So the shop and the account tell of the same revenue, as two sources of one business do.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

from tolsey.demo.telling import until
from tolsey.sandbox.commerce.course.life import Item
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.history import GOODS
from tolsey.sandbox.commerce.shop.orders import Order
from tolsey.sandbox.commerce.shop.products import Product, Variant
from tolsey.sandbox.commerce.shop.state import Shop
from tolsey.sandbox.commerce.shop.subscriptions import enum_of
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.course.business import READS, Payment, open_business, take
from tolsey.sandbox.payments.processor import Processor

SHELF: Final = 40
FEW: Final = 3
UNPAID: Final = frozenset({"PENDING", "VOIDED", "AUTHORIZED"})


@dataclass
class Trade:
    """One business: its shop at the platform, and its account at the processor."""

    platform: Platform
    processor: Processor
    shop: Shop
    account: Merchant = field(init=False)

    def __post_init__(self) -> None:
        self.account = open_business(self.processor, payments(self.shop.orders.values()))
        self._next = cycle(goods(self.shop))

    @property
    def restricted_key(self) -> str:
        """Make a key that reads the account."""
        return self.processor.make_key(self.account.id, *READS).secret

    async def open_shelves(self) -> str:
        """Put the goods on the shelves, once there is somebody whom the platform tells of them."""
        await self.subscribed("products/create", "inventory_levels/update")
        for _ in GOODS:
            product = next(self._next)
            self.platform.save_product(self.shop.domain, product)
            self._count(product.variants[0])
        return f"{len(GOODS)} products, {SHELF} of each"

    def sell(self) -> None:
        """Let a buyer order and pay; what is nearly gone is put on the shelf anew."""
        product = next(self._next)
        variant = product.variants[0]
        item = Item(title=product.title, variant=variant)
        order = self.platform.place_order(self.shop.domain, (item,))
        for payment in payments((order,)):
            take(self.account, payment)
        if variant.available < FEW:
            self._count(variant)

    async def subscribed(self, *topics: str) -> None:
        """Wait until the service asked for the deliveries of topics: what happens before is told to nobody."""
        wanted = {enum_of(topic) for topic in topics}

        async def asked_for() -> bool | None:
            return wanted <= {one.topic for one in self.shop.subscriptions.values()} or None

        await until(asked_for, f"the subscription to {' and '.join(topics)}")

    def _count(self, variant: Variant) -> None:
        self.platform.set_stock(self.shop.domain, variant, SHELF)


def goods(shop: Shop) -> list[Product]:
    """Make a product of one kind for everything that the shop's history sold."""
    made = []
    for title, price in GOODS:
        at, handle = shop.spec.created_at, title.lower().replace(",", "").replace(" ", "-")
        product = Product(next(shop.ids), title, handle, at, at, published_at=at)
        ids = next(shop.ids), next(shop.ids)
        variant = Variant(*ids, "Default Title", handle.upper(), price, product=product)
        product.variants.append(variant)
        made.append(product)
    return made


def payments(orders: Iterable[Order]) -> list[Payment]:
    """Say what buyers paid for goods by card: a shop's revenue has no tax and no shipping in it."""
    found = []
    for order in orders:
        by_card = [one for one in order.transactions if not (one.manual or one.test)]
        cents = sum(
            line.discounted - (line.tax if order.taxes_included else 0)
            for line in order.lines
            if not (line.gift_card or line.tip)
        )
        if not by_card or order.financial_status in UNPAID or order.customer is None:
            continue
        refunded = min(cents, order.refunded)
        found.append(Payment(str(order.customer.id), cents, refunded, order.created_at))
    return found
