"""What an operator sets up at the payment processor once: a price for every offer, and two endpoints.

Made through the processor's API with the platform's key, as it is done with a real account.
"""

import stripe

from tolsey.actors.organization.billing.payment_events.catalogue import TYPES
from tolsey.actors.organization.plans import CURRENCY, OFFERS, TAX_BEHAVIOUR, Cadence

INTERVALS = {Cadence.MONTHLY: "month", Cadence.YEARLY: "year"}


async def make_prices(client: stripe.StripeClient) -> dict[str, str]:
    """Make the prices of the catalogue; answers their ids by the variables that name them."""
    products: dict[str, str] = {}
    ids: dict[str, str] = {}
    for offer in OFFERS:
        plan, price = offer.plan, offer.price
        if plan.code not in products:
            made = await client.v1.products.create_async({"name": f"Tolsey {plan.name}"})
            products[plan.code] = made.id
        created = await client.v1.prices.create_async(
            {
                "product": products[plan.code],
                "currency": CURRENCY.lower(),
                "unit_amount": price.cents,
                "recurring": {"interval": INTERVALS[offer.cadence]},
                "tax_behavior": TAX_BEHAVIOUR,
                "nickname": f"{plan.name} {offer.cadence}",
            }
        )
        ids[price.setting] = created.id
    return ids


async def open_endpoints(client: stripe.StripeClient, address: str) -> list[str]:
    """Have the platform's events and those of connected accounts sent to an address.

    Answers the secrets that sign for each: the processor tells them this once.
    """
    known: list[str] = []
    for connect in (False, True):
        events = [type_ for type_, kind in TYPES.items() if kind.of_accounts is connect]
        opened = await client.v1.webhook_endpoints.create_async(
            {"url": address, "enabled_events": events, "connect": connect}  # type: ignore[typeddict-item] # a list of str, not of the literals
        )
        if opened.secret is None:
            raise ValueError("the processor told no secret")
        known.append(opened.secret)
    return known
