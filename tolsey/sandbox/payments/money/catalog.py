"""Products and prices."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved


def make_product(merchant: Merchant, **fields: Any) -> Obj:
    """Open a product, under an id of the caller's choice if one is given."""
    product = merchant.make(
        "product",
        "prod",
        active=fields.get("active", True),
        default_price=None,
        description=fields.get("description"),
        images=[],
        marketing_features=[],
        metadata=merged({}, fields.get("metadata")),
        name=fields["name"],
        package_dimensions=None,
        shippable=None,
        statement_descriptor=None,
        tax_code=fields.get("tax_code"),
        type="service",
        unit_label=None,
        updated=merchant.now(),
        url=None,
    )
    product["id"] = fields.get("id", product["id"])
    if merchant.books.find(product["id"]):
        raise Refused("Product already exists.", code="resource_already_exists", param="id")
    merchant.books.add(product)
    merchant.emit("product.created", product)
    return product


def make_price(merchant: Merchant, given: Obj, param: str = "") -> Obj:
    """Open a price for a product that is known or made with it."""
    amount = given.get("unit_amount")
    if amount is None and "unit_amount_decimal" in given:
        amount = _whole(given["unit_amount_decimal"])
    if amount is None:
        raise Refused(
            f"Missing required param: {param or 'unit_amount'}.",
            code="parameter_missing",
            param=param or "unit_amount",
        )
    made = given.get("product_data")
    product = (
        make_product(merchant, **made)["id"]
        if made
        else merchant.books.get("product", given.get("product", ""), "product")["id"]
    )
    recurring = given.get("recurring")
    price = merchant.new(
        "price",
        "price",
        active=given.get("active", True),
        billing_scheme="per_unit",
        currency=given["currency"].lower(),
        custom_unit_amount=None,
        lookup_key=given.get("lookup_key"),
        metadata=merged({}, given.get("metadata")),
        nickname=given.get("nickname"),
        product=product,
        recurring=_recurring(recurring) if recurring else None,
        tax_behavior=given.get("tax_behavior", "unspecified"),
        tiers_mode=None,
        transform_quantity=None,
        type="recurring" if recurring else "one_time",
        unit_amount=amount,
        unit_amount_decimal=str(amount),
    )
    merchant.currency_options[price["id"]] = {
        currency.lower(): _currency_option(option, price)
        for currency, option in given.get("currency_options", {}).items()
    }
    merchant.emit("price.created", price)
    return price


def _currency_option(given: Obj, price: Obj) -> Obj:
    for name in given:
        if name not in ("tax_behavior", "unit_amount"):
            raise Refused(
                f"The sandbox does not play `currency_options[{name}]`.", code="sandbox_not_built"
            )
    if "unit_amount" not in given:
        raise Refused(
            "Missing required param: currency_options[unit_amount].",
            code="parameter_missing",
            param="currency_options",
        )
    return {
        "custom_unit_amount": None,
        "tax_behavior": given.get("tax_behavior", price["tax_behavior"]),
        "unit_amount": given["unit_amount"],
        "unit_amount_decimal": str(given["unit_amount"]),
    }


def billed_in(merchant: Merchant, price: Obj, currency: str) -> Obj:
    """Return a price as it is billed in a currency: its own, or one of its currency options."""
    if price["currency"] == currency:
        return price
    options = merchant.currency_options.get(price["id"], {})
    if currency not in options:
        known = ", ".join(f"`{name}`" for name in (price["currency"], *options))
        raise Refused(
            f"The price specified supports currencies of {known}. This doesn't match the expected"
            f" currency: `{currency}`."
        )
    return {**price, "currency": currency, **options[currency]}


def price_of(merchant: Merchant, item: Obj, param: str) -> Obj:
    """Give the price that an item names or describes."""
    if ("price" in item) == ("price_data" in item):
        raise Refused(f"You must specify either `{param}[price]` or `{param}[price_data]`.")
    if "price_data" in item:
        return make_price(merchant, item["price_data"], f"{param}[price_data][unit_amount]")
    price = merchant.books.get("price", item["price"], f"{param}[price]")
    if not price["active"]:
        raise Refused(
            f"The price specified is inactive. This field only accepts active prices: {price['id']}",
            param=f"{param}[price]",
        )
    return price


def _whole(amount: Any) -> int:
    if int(amount) != amount:
        raise Refused("The sandbox plays whole cents only.", code="sandbox_not_built")
    return int(amount)


def _recurring(given: Obj) -> Obj:
    if given.get("usage_type", "licensed") != "licensed" or given.get("meter"):
        raise Refused("The sandbox does not play metered prices.", code="sandbox_not_built")
    return {
        "interval": given["interval"],
        "interval_count": given.get("interval_count", 1),
        "meter": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }


def _create_product(call: Call) -> Obj:
    return make_product(call.merchant, **call.params)


def _create_price(call: Call) -> Obj:
    return make_price(call.merchant, call.params)


def _updated(kind: str) -> Any:
    def run(call: Call) -> Obj:
        obj = call.merchant.books.get(kind, call.id)
        given = dict(call.params)
        given.pop("expand", None)
        given["metadata"] = merged(obj["metadata"], given.get("metadata"))
        call.merchant.change(f"{kind}.updated", obj, **given)
        return obj

    return run


def _list_prices(call: Call) -> Obj:
    params = call.params
    keys = params.get("lookup_keys")

    def keep(price: Obj) -> bool:
        return (
            params.get("active", price["active"]) == price["active"]
            and params.get("product", price["product"]) == price["product"]
            and params.get("type", price["type"]) == price["type"]
            and (keys is None or price["lookup_key"] in keys)
        )

    return call.merchant.books.page("price", params, "/v1/prices", keep)


_PRODUCT = "active description metadata name tax_code"
_PRICE = "active currency lookup_key metadata nickname product product_data recurring tax_behavior"
ROUTES = (
    Route(
        "POST",
        "/v1/products",
        "ProductCreateParams",
        "product",
        _create_product,
        plays(_PRODUCT + " id"),
    ),
    Route("GET", "/v1/products/{id}", "ProductRetrieveParams", "product", retrieved("product")),
    Route(
        "POST",
        "/v1/products/{id}",
        "ProductUpdateParams",
        "product",
        _updated("product"),
        plays(_PRODUCT),
    ),
    Route(
        "GET",
        "/v1/products",
        "ProductListParams",
        "product",
        listed("product", "/v1/products", "active"),
        plays("active"),
    ),
    Route(
        "POST",
        "/v1/prices",
        "PriceCreateParams",
        "plan",
        _create_price,
        plays(_PRICE + " currency_options unit_amount unit_amount_decimal"),
    ),
    Route("GET", "/v1/prices/{id}", "PriceRetrieveParams", "plan", retrieved("price")),
    Route(
        "POST",
        "/v1/prices/{id}",
        "PriceUpdateParams",
        "plan",
        _updated("price"),
        plays("active lookup_key metadata nickname tax_behavior"),
    ),
    Route(
        "GET",
        "/v1/prices",
        "PriceListParams",
        "plan",
        _list_prices,
        plays("active product type lookup_keys"),
    ),
)
