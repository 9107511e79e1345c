"""What a checkout session may ask for: the processor's rules and its words (rules/payments#requests)."""

from tolsey.sandbox.payments.account.books import Obj
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_param, not_built

_SMALLEST = 50
_ONLY = {
    "payment": ("payment_intent_data", "invoice_creation"),
    "subscription": ("subscription_data",),
}
_PLAYED = {
    "payment_intent_data": ("description", "metadata", "receipt_email", "setup_future_usage"),
    "invoice_creation": ("enabled",),
    "subscription_data": ("billing_mode", "metadata"),
}
_TAX_ID = (
    "Tax ID collection requires updating {what} on the customer. To enable tax ID collection for"
    " an existing customer, please set `customer_update[{name}]` to `auto`."
)


def check_session(merchant: Merchant, given: Obj) -> None:
    """Refuse a session that the processor would not open."""
    mode = given.get("mode")
    if mode is None:
        raise missing_param("mode")
    if mode == "setup":
        raise not_built("checkout in `setup` mode", "mode")
    if given.get("ui_mode", "hosted_page") != "hosted_page":
        raise not_built("checkout other than on the hosted page", "ui_mode")
    for name in ("line_items", "success_url"):
        if not given.get(name):
            raise missing_param(name)
    _check_mode(given, mode)
    _check_customer(merchant, given, mode)
    expires = given.get("expires_at")
    if expires is not None and not 1_800 <= expires - merchant.now() <= 86_400:  # noqa: PLR2004
        raise Refused(
            "The `expires_at` timestamp must be at least 30 minutes and at most 24 hours from"
            " Checkout Session creation.",
            param="expires_at",
        )


def _check_mode(given: Obj, mode: str) -> None:
    for owner, names in _ONLY.items():
        for name in names:
            if name in given and owner != mode:
                raise Refused(f"You can not pass `{name}` in `{mode}` mode.", param=name)
            for field in given.get(name, {}):
                if field not in _PLAYED[name]:
                    raise not_built(f"`{name}[{field}]` of checkout", name)


def _check_customer(merchant: Merchant, given: Obj, mode: str) -> None:
    named = given.get("customer")
    update = given.get("customer_update", {})
    if "customer_creation" in given and mode == "subscription":
        raise Refused(
            "`customer_creation` can only be set in `payment` and `setup` mode.",
            param="customer_creation",
        )
    if named is None:
        if "customer_update" in given:
            raise Refused(
                "`customer_update` can only be provided when `customer` is provided.",
                param="customer_update",
            )
        return
    for other in ("customer_email", "customer_creation"):
        if other in given:
            raise Refused(
                f"You may only specify one of these parameters: customer, {other}.", param=other
            )
    customer = merchant.books.get("customer", named, "customer")
    if given.get("tax_id_collection", {}).get("enabled"):
        for name, what in (("name", "business name"), ("address", "address")):
            if update.get(name) != "auto":
                raise Refused(_TAX_ID.format(what=what, name=name), param="customer_update")
    automatic = given.get("automatic_tax", {}).get("enabled")
    if automatic and update.get("address") != "auto" and not customer["address"]:
        raise Refused(
            "Automatic tax calculation in Checkout requires a valid address on the Customer. Add a"
            " valid address to the Customer or set either `customer_update[address]` to 'auto' or"
            " `customer_update[shipping]` to 'auto' to save the address entered in Checkout to the"
            " Customer.",
            code="customer_tax_location_invalid",
        )


def check_prices(mode: str, prices: list[Obj], total: int) -> None:
    """Refuse prices that do not fit the mode, and totals that are too small to charge."""
    recurring = [price for price in prices if price["recurring"]]
    if mode == "payment" and recurring:
        raise Refused(
            "You specified `payment` mode but passed a recurring price. Either switch to"
            " `subscription` mode or use only one-time prices.",
            param="mode",
        )
    if mode == "subscription" and not recurring:
        raise Refused(
            "You must provide at least one recurring price in `subscription` mode when using"
            " prices.",
            param="line_items",
        )
    if len({price["currency"] for price in prices}) > 1:
        raise Refused("All prices of a Checkout Session must be in the same currency.")
    rhythms = {(p["recurring"]["interval"], p["recurring"]["interval_count"]) for p in recurring}
    if len(rhythms) > 1:
        raise not_built("prices of several intervals in one subscription", "line_items")
    if 0 < total < _SMALLEST:
        raise Refused(
            "The Checkout Session's total amount due must add up to at least $0.50 usd",
            code="amount_too_small",
        )
