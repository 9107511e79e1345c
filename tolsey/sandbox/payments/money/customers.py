"""Customers and their payment methods."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_object
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved

NO_ADDRESS = dict.fromkeys(("city", "country", "line1", "line2", "postal_code", "state"))
NUMBERS = {
    "4242424242424242": "ok",
    "4000000000000002": "decline",
    "4000000000009995": "insufficient",
    "4000002500003155": "authenticate",
    "4000000000000341": "decline_later",
}
"""What the processor's test numbers do; the last two are fine while the customer is present."""
_NAMED = {
    "pm_card_visa": "4242424242424242",
    "pm_card_chargeDeclined": "4000000000000002",
    "pm_card_visa_chargeDeclinedInsufficientFunds": "4000000000009995",
    "pm_card_authenticationRequired": "4000002500003155",
    "pm_card_chargeCustomerFail": "4000000000000341",
}


def make_customer(merchant: Merchant, **fields: Any) -> Obj:
    """Open a customer and tell of it."""
    customer = merchant.new(
        "customer",
        "cus",
        address=fields.get("address"),
        balance=0,
        currency=None,
        default_source=None,
        delinquent=False,
        description=fields.get("description"),
        discount=None,
        email=fields.get("email"),
        invoice_prefix=merchant.books.new_id("", 8)[1:].upper(),
        invoice_settings={
            "custom_fields": None,
            "default_payment_method": None,
            "footer": None,
            "rendering_options": None,
        },
        metadata=merged({}, fields.get("metadata")),
        name=fields.get("name"),
        next_invoice_sequence=1,
        phone=fields.get("phone"),
        preferred_locales=[],
        shipping=None,
        tax_exempt=fields.get("tax_exempt", "none"),
        test_clock=None,
    )
    merchant.emit("customer.created", customer)
    return customer


def make_method(merchant: Merchant, number: str, customer: str | None) -> Obj:
    """Make a card of a test number; numbers that are not known behave well."""
    method = merchant.new(
        "payment_method",
        "pm",
        allow_redisplay="unspecified",
        billing_details={"address": NO_ADDRESS, "email": None, "name": None, "phone": None},
        card={
            "brand": "visa",
            "country": "US",
            "exp_month": 12,
            "exp_year": 2034,
            "funding": "credit",
            "last4": number[-4:],
        },
        customer=customer,
        metadata={},
        type="card",
    )
    merchant.cards[method["id"]] = NUMBERS.get(number, "ok")
    return method


def make_debit(merchant: Merchant, customer: str | None) -> Obj:
    """Make a bank account, whose payments are known days later."""
    method = merchant.new(
        "payment_method",
        "pm",
        billing_details={"address": NO_ADDRESS, "email": None, "name": None, "phone": None},
        customer=customer,
        metadata={},
        type="us_bank_account",
        us_bank_account={"bank_name": "STRIPE TEST BANK", "last4": "6789"},
    )
    merchant.cards[method["id"]] = "later"
    return method


def method_named(merchant: Merchant, id: str, customer: str | None, param: str) -> Obj:
    """Give a payment method by its id, or make the test card of that name."""
    if id in _NAMED:
        return make_method(merchant, _NAMED[id], customer)
    return merchant.books.get("payment_method", id, param)


def default_method(merchant: Merchant, customer: str | None) -> str | None:
    """Name the payment method that a customer's invoices are charged to."""
    if customer is None:
        return None
    settings = merchant.books.get("customer", customer, "customer")["invoice_settings"]
    found: str | None = settings["default_payment_method"]
    return found


def set_default(merchant: Merchant, customer: Obj, method: str) -> None:
    """Charge the customer's invoices to a payment method from now on."""
    settings = {**customer["invoice_settings"], "default_payment_method": method}
    merchant.change("customer.updated", customer, invoice_settings=settings)


def _create(call: Call) -> Obj:
    given = dict(call.params)
    method = given.pop("payment_method", None)
    settings = given.pop("invoice_settings", {})
    customer = make_customer(call.merchant, **given)
    for id in filter(None, (method, settings.get("default_payment_method"))):
        found = method_named(call.merchant, id, customer["id"], "payment_method")
        found["customer"] = customer["id"]
        if id != method or settings.get("default_payment_method") == method:
            set_default(call.merchant, customer, found["id"])
    return customer


def _update(call: Call) -> Obj:
    merchant, given = call.merchant, dict(call.params)
    customer = merchant.books.get("customer", call.id)
    settings = given.pop("invoice_settings", {})
    if "default_payment_method" in settings:
        found = method_named(
            merchant,
            settings["default_payment_method"],
            customer["id"],
            "invoice_settings[default_payment_method]",
        )
        if found["customer"] != customer["id"]:
            raise Refused(
                "The customer does not have a payment method with the ID"
                f" {found['id']}. The payment method must be attached to the customer.",
                code="resource_missing",
                param="invoice_settings[default_payment_method]",
            )
        set_default(merchant, customer, found["id"])
    given["metadata"] = merged(customer["metadata"], given.pop("metadata", None))
    given.pop("expand", None)
    merchant.change("customer.updated", customer, **given)
    return customer


def _retrieve(call: Call) -> Obj:
    found = call.merchant.books.find(call.id)
    if found is None or found["object"] != "customer":
        raise missing_object("customer", call.id)
    return found


def _delete(call: Call) -> Obj:
    customer = call.merchant.books.get("customer", call.id)
    gone = {"id": customer["id"], "object": "customer", "deleted": True}
    call.merchant.emit("customer.deleted", customer)
    customer.clear()
    customer.update(gone, created=call.merchant.now())
    return gone


def _attach(call: Call) -> Obj:
    merchant = call.merchant
    customer = merchant.books.get("customer", call.params["customer"], "customer")
    method = method_named(merchant, call.id, customer["id"], "payment_method")
    method["customer"] = customer["id"]
    merchant.emit("payment_method.attached", method)
    return method


_FIELDS = "address description email invoice_settings metadata name phone tax_exempt"
ROUTES = (
    Route(
        "POST",
        "/v1/customers",
        "CustomerCreateParams",
        "customer",
        _create,
        plays(_FIELDS + " payment_method"),
    ),
    Route("GET", "/v1/customers/{id}", "CustomerRetrieveParams", "customer", _retrieve),
    Route(
        "POST", "/v1/customers/{id}", "CustomerUpdateParams", "customer", _update, plays(_FIELDS)
    ),
    Route("DELETE", "/v1/customers/{id}", "CustomerDeleteParams", "customer", _delete),
    Route(
        "GET",
        "/v1/customers",
        "CustomerListParams",
        "customer",
        listed("customer", "/v1/customers", "email"),
        plays("email"),
    ),
    Route(
        "GET",
        "/v1/payment_methods/{id}",
        "PaymentMethodRetrieveParams",
        "payment_method",
        retrieved("payment_method"),
    ),
    Route(
        "GET",
        "/v1/payment_methods",
        "PaymentMethodListParams",
        "payment_method",
        listed("payment_method", "/v1/payment_methods", "customer", "type"),
        plays("customer type"),
    ),
    Route(
        "POST",
        "/v1/payment_methods/{id}/attach",
        "PaymentMethodAttachParams",
        "payment_method",
        _attach,
        plays("customer"),
    ),
)
