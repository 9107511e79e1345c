"""The billing portal: what it offers, sessions of it, and what a customer does there."""

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_param, not_built
from tolsey.sandbox.payments.account.routes import Call, Route, plays, retrieved
from tolsey.sandbox.payments.billing import schedules, subscriptions
from tolsey.sandbox.payments.billing.updates import update_subscription
from tolsey.sandbox.payments.money.catalog import billed_in

_DAYS = {"day": 1.0, "week": 7.0, "month": 365 / 12, "year": 365.0}
_MOST_PRODUCTS = 10


def _create(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    first = not any(merchant.books.each("billing_portal.configuration"))
    return merchant.new(
        "billing_portal.configuration",
        "bpc",
        active=True,
        application=None,
        business_profile={"headline": None, **given.get("business_profile", {})},
        default_return_url=given.get("default_return_url"),
        features=_features(merchant, given["features"]),
        is_default=first,
        login_page={"enabled": False, "url": None},
        metadata=merged({}, given.get("metadata")),
        name=given.get("name"),
        updated=merchant.now(),
    )


def _features(merchant: Merchant, given: Obj) -> Obj:
    update = given.get("subscription_update", {})
    products = update.get("products") or []
    if update.get("enabled") and (not products or not update.get("default_allowed_updates")):
        raise missing_param("features[subscription_update][products]")
    if len(products) > _MOST_PRODUCTS:
        raise Refused("You may not specify more than 10 products.", param="features")
    for number, product in enumerate(products):
        for price in product["prices"]:
            where = f"features[subscription_update][products][{number}][prices]"
            if merchant.books.get("price", price, where)["product"] != product["product"]:
                raise Refused(f"Price {price} is not of product {product['product']}.", param=where)
    cancel = {"mode": "at_period_end", "proration_behavior": "none"}
    plain = {"enabled": False}
    return {
        "customer_update": {"allowed_updates": [], **given.get("customer_update", plain)},
        "invoice_history": given.get("invoice_history", plain),
        "payment_method_update": given.get("payment_method_update", plain),
        "subscription_cancel": {**cancel, **given.get("subscription_cancel", plain)},
        "subscription_update": {
            "billing_cycle_anchor": "unchanged",
            "default_allowed_updates": [],
            "enabled": False,
            "proration_behavior": "none",
            "schedule_at_period_end": {"conditions": []},
            **update,
        },
    }


def _update(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    found = merchant.books.get("billing_portal.configuration", call.id)
    if "features" in given:
        found["features"] = _features(merchant, {**found["features"], **given["features"]})
    for name in ("active", "business_profile", "default_return_url", "name"):
        found[name] = given.get(name, found[name])
    found["metadata"] = merged(found["metadata"], given.get("metadata"))
    found["updated"] = merchant.now()
    return found


def _list(call: Call) -> Obj:
    wanted = {n: call.params[n] for n in ("active", "is_default") if n in call.params}

    def keep(found: Obj) -> bool:
        return all(found[name] == value for name, value in wanted.items())

    url = "/v1/billing_portal/configurations"
    return call.merchant.books.page("billing_portal.configuration", call.params, url, keep)


def _open(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    if "customer" not in given:
        raise missing_param("customer")
    customer = merchant.books.get("customer", given["customer"], "customer")
    if "configuration" in given:
        found = merchant.books.get(
            "billing_portal.configuration", given["configuration"], "configuration"
        )
    else:
        every = merchant.books.each("billing_portal.configuration")
        found = next((c for c in every if c["is_default"]), {})
    if not found:
        raise Refused(
            "You can't create a portal session in test mode until you save your customer portal"
            " settings in test mode at https://dashboard.stripe.com/test/settings/billing/portal."
        )
    flow = given.get("flow_data")
    if flow and flow["type"] != "subscription_update_confirm":
        raise not_built(f"the portal's flow `{flow['type']}`", "flow_data[type]")
    if flow and len(flow.get("subscription_update_confirm", {}).get("items", [])) != 1:
        raise missing_param("flow_data[subscription_update_confirm][items]")
    session = merchant.new(
        "billing_portal.session",
        "bps",
        configuration=found["id"],
        customer=customer["id"],
        flow=flow,
        locale=None,
        on_behalf_of=None,
        return_url=given.get("return_url", found["default_return_url"]),
    )
    session["url"] = f"{merchant.url}/p/session/{session['id']}"
    return session


def offers(merchant: Merchant, session: Obj, sub: Obj) -> list[Obj]:
    """Give the prices that a customer may change to in this session."""
    found = merchant.books.get("billing_portal.configuration", session["configuration"])
    update = found["features"]["subscription_update"]
    if not update["enabled"] or "price" not in update["default_allowed_updates"]:
        return []
    now = sub["items"]["data"][0]["price"]["id"]
    ids = [price for product in update["products"] for price in product["prices"]]
    if session["flow"]:
        (item,) = session["flow"]["subscription_update_confirm"]["items"]
        ids = [id for id in ids if id == item.get("price")]
    return [merchant.books.get("price", id) for id in ids if id != now]


def switch(merchant: Merchant, session: Obj, sub: Obj, price: Obj) -> str:
    """Change the plan as the configuration says: `now`, or `at_period_end`."""
    if price["id"] not in [offer["id"] for offer in offers(merchant, session, sub)]:
        raise Refused("This price is not offered.", param="price")
    found = merchant.books.get("billing_portal.configuration", session["configuration"])
    update = found["features"]["subscription_update"]
    asked = {c["type"] for c in update["schedule_at_period_end"].get("conditions") or []}
    item = sub["items"]["data"][0]
    subscriptions.release_schedule(merchant, sub)
    old, new = (billed_in(merchant, each, sub["currency"]) for each in (item["price"], price))
    if asked & _conditions(old, new):
        schedules.schedule_price(merchant, sub, price)
        return "at_period_end"
    given: Obj = {
        "items": [{"id": item["id"], "price": price["id"]}],
        "proration_behavior": update["proration_behavior"],
        "payment_behavior": "pending_if_incomplete",
    }
    if update["billing_cycle_anchor"] == "now":
        given["billing_cycle_anchor"] = {"type": "now"}
    update_subscription(merchant, sub, given)
    return "now"


def cancel(merchant: Merchant, session: Obj, sub: Obj, feedback: str | None, comment: str) -> None:
    """Cancel as the configuration says, with the reason the customer gave."""
    found = merchant.books.get("billing_portal.configuration", session["configuration"])
    feature = found["features"]["subscription_cancel"]
    if not feature["enabled"]:
        raise Refused("Cancellation is not offered.")
    subscriptions.release_schedule(merchant, sub)
    details = {"feedback": feedback or None, "comment": comment or None}
    if feature["mode"] == "immediately":
        sub["cancellation_details"] = {**sub["cancellation_details"], **details}
        subscriptions.end(merchant, sub, "cancellation_requested")
        return
    given = {"cancel_at_period_end": True, "cancellation_details": details}
    update_subscription(merchant, sub, given)


def _conditions(old: Obj, new: Obj) -> set[str]:
    """Name what a change makes less: the amount for a day, or the rhythm."""
    met = set()
    lengths = [
        _DAYS[p["recurring"]["interval"]] * p["recurring"]["interval_count"] for p in (old, new)
    ]
    if new["unit_amount"] / lengths[1] < old["unit_amount"] / lengths[0]:
        met.add("decreasing_item_amount")
    if lengths[1] < lengths[0]:
        met.add("shortening_interval")
    return met


_CONFIGURATIONS = "/v1/billing_portal/configurations"
_FIELDS = "business_profile default_return_url features metadata name"
ROUTES = (
    Route(
        "POST",
        _CONFIGURATIONS,
        "billing_portal.ConfigurationCreateParams",
        "customer_portal",
        _create,
        plays(_FIELDS),
    ),
    Route(
        "GET",
        _CONFIGURATIONS + "/{id}",
        "billing_portal.ConfigurationRetrieveParams",
        "customer_portal",
        retrieved("billing_portal.configuration"),
    ),
    Route(
        "POST",
        _CONFIGURATIONS + "/{id}",
        "billing_portal.ConfigurationUpdateParams",
        "customer_portal",
        _update,
        plays(_FIELDS + " active"),
    ),
    Route(
        "GET",
        _CONFIGURATIONS,
        "billing_portal.ConfigurationListParams",
        "customer_portal",
        _list,
        plays("active is_default"),
    ),
    Route(
        "POST",
        "/v1/billing_portal/sessions",
        "billing_portal.SessionCreateParams",
        "customer_portal",
        _open,
        plays("configuration customer flow_data return_url"),
    ),
)
