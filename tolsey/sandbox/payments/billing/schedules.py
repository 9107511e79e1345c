"""Subscription schedules: a change that waits for the end of the period."""

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_param, not_built
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved
from tolsey.sandbox.payments.billing import subscriptions
from tolsey.sandbox.payments.billing.periods import end_of
from tolsey.sandbox.payments.money.catalog import billed_in

_PHASE = frozenset(
    {
        "automatic_tax",
        "duration",
        "end_date",
        "items",
        "metadata",
        "proration_behavior",
        "start_date",
    }
)


def _create(call: Call) -> Obj:
    given = call.params
    if "from_subscription" not in given:
        raise not_built("a schedule without `from_subscription`", "from_subscription")
    others = sorted(set(given) - {"from_subscription", "expand"})
    if others:
        raise Refused(
            "You cannot set `" + others[0] + "` if `from_subscription` is set.", param=others[0]
        )
    named = given["from_subscription"]
    sub = call.merchant.books.get("subscription", named, "from_subscription")
    return attach(call.merchant, sub)


def attach(merchant: Merchant, sub: Obj) -> Obj:
    """Put a subscription as it is under a schedule of one phase."""
    if sub["schedule"] is not None:
        raise Refused(
            "You cannot migrate a subscription that is already attached to a schedule:"
            f" `{sub['schedule']}`.",
            param="from_subscription",
        )
    if sub["status"] in subscriptions.ENDED:
        raise Refused("You cannot migrate a canceled subscription.", param="from_subscription")
    start = min(item["current_period_start"] for item in sub["items"]["data"])
    items = [{"price": i["price"]["id"], "quantity": i["quantity"]} for i in sub["items"]["data"]]
    taxed = {"automatic_tax": {"enabled": sub["automatic_tax"]["enabled"]}}
    phase = _phase(items, start, subscriptions.period_end(sub), sub["currency"], taxed)
    schedule = merchant.new(
        "subscription_schedule",
        "sub_sched",
        application=None,
        billing_mode=sub["billing_mode"],
        canceled_at=None,
        completed_at=None,
        current_phase={"start_date": phase["start_date"], "end_date": phase["end_date"]},
        customer=sub["customer"],
        default_settings={
            "automatic_tax": subscriptions.tax_settings(enabled=False),
            "billing_cycle_anchor": "automatic",
        },
        end_behavior="release",
        metadata={},
        phases=[phase],
        released_at=None,
        released_subscription=None,
        status="active",
        subscription=sub["id"],
        test_clock=None,
    )
    merchant.emit("subscription_schedule.created", schedule)
    subscriptions.change(merchant, sub, schedule=schedule["id"])
    return schedule


def _phase(items: list[Obj], start: int, end: int, currency: str, given: Obj) -> Obj:
    tax = given.get("automatic_tax")
    return {
        "add_invoice_items": [],
        "automatic_tax": tax and subscriptions.tax_settings(enabled=tax["enabled"]),
        "billing_cycle_anchor": None,
        "currency": currency,
        "discounts": [],
        "end_date": end,
        "items": [
            {"discounts": [], "metadata": {}, "quantity": 1, "tax_rates": [], **item}
            for item in items
        ],
        "metadata": merged({}, given.get("metadata")),
        "proration_behavior": given.get("proration_behavior", "create_prorations"),
        "start_date": start,
        "trial_end": None,
    }


def _update(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    schedule = merchant.books.get("subscription_schedule", call.id)
    if schedule["status"] != "active":
        raise Refused(f"You cannot update a subscription schedule that is `{schedule['status']}`.")
    if given.get("end_behavior", "release") != "release":
        raise not_built("an end of a schedule other than `release`", "end_behavior")
    if "phases" in given:
        sub = merchant.books.get("subscription", schedule["subscription"])
        schedule["phases"] = _phases(merchant, sub, schedule, given["phases"])
        first = schedule["phases"][0]
        schedule["current_phase"] = {
            "start_date": first["start_date"],
            "end_date": first["end_date"],
        }
    schedule["metadata"] = merged(schedule["metadata"], given.get("metadata"))
    merchant.emit("subscription_schedule.updated", schedule)
    return schedule


def _phases(merchant: Merchant, sub: Obj, schedule: Obj, given: list[Obj]) -> list[Obj]:
    current = schedule["current_phase"]
    phases: list[Obj] = []
    start = given[0].get("start_date", current["start_date"]) if given else 0
    if start != current["start_date"]:
        raise Refused(
            "You can not modify the start date of the current phase.",
            param="phases[0][start_date]",
        )
    for number, wanted in enumerate(given):
        for name in wanted:
            if name not in _PHASE:
                raise not_built(f"`phases[{number}][{name}]`", "phases")
        if wanted.get("start_date", start) != start:
            raise Refused(
                "Each phase must begin where the one before it ends.",
                param=f"phases[{number}][start_date]",
            )
        prices = [
            merchant.books.get("price", item.get("price", ""), f"phases[{number}][items][0][price]")
            for item in wanted["items"]
        ]
        end = _end(wanted, number, start)
        for price in prices:
            billed_in(merchant, price, sub["currency"])
        phases.append(_phase(wanted["items"], start, end, sub["currency"], wanted))
        start = end
    if phases and phases[0]["end_date"] != subscriptions.period_end(sub):
        raise not_built("a current phase that ends within a period", "phases[0][end_date]")
    return phases


def _end(wanted: Obj, number: int, start: int) -> int:
    if isinstance(wanted.get("end_date"), int):
        end: int = wanted["end_date"]
        return end
    duration = wanted.get("duration")
    if duration is None:
        raise missing_param(f"phases[{number}][end_date]")
    return end_of(start, {"interval_count": 1, **duration})


def schedule_price(merchant: Merchant, sub: Obj, price: Obj) -> None:
    """Let a subscription go over to another price when its period ends."""
    schedule = attach(merchant, sub)
    first = schedule["phases"][0]
    begin = first["end_date"]
    items = [{"price": price["id"], "quantity": sub["items"]["data"][0]["quantity"]}]
    given = {
        "automatic_tax": {"enabled": sub["automatic_tax"]["enabled"]},
        "metadata": sub["metadata"],
        "proration_behavior": "none",
    }
    end = end_of(begin, price["recurring"])
    schedule["phases"] = [first, _phase(items, begin, end, sub["currency"], given)]
    merchant.emit("subscription_schedule.updated", schedule)


def enter_next(merchant: Merchant, sub: Obj, at: int) -> None:
    """At a period's end, go into the phase that begins then, or let the schedule end."""
    if sub["schedule"] is None:
        return
    schedule = merchant.books.get("subscription_schedule", sub["schedule"])
    following = next((p for p in schedule["phases"] if p["start_date"] == at), None)
    if following is None:
        if schedule["phases"][-1]["end_date"] <= at:
            subscriptions.release_schedule(merchant, sub)
        return
    schedule["current_phase"] = {"start_date": at, "end_date": following["end_date"]}
    pairs = zip(sub["items"]["data"], following["items"], strict=False)
    for item, wanted in pairs:
        subscriptions.set_price(item, merchant.books.get("price", wanted["price"]))
        item["quantity"] = wanted["quantity"]
    sub["metadata"] = {**sub["metadata"], **following["metadata"]}
    # What a phase does not say falls back to the schedule's defaults.
    tax = following["automatic_tax"] or schedule["default_settings"]["automatic_tax"]
    sub["automatic_tax"] = {**tax}
    merchant.emit("subscription_schedule.updated", schedule)


def _release(call: Call) -> Obj:
    merchant = call.merchant
    schedule = merchant.books.get("subscription_schedule", call.id)
    if schedule["status"] != "active":
        raise Refused(f"You cannot release a subscription schedule that is `{schedule['status']}`.")
    sub = merchant.books.get("subscription", schedule["subscription"])
    subscriptions.release_schedule(merchant, sub)
    merchant.emit("customer.subscription.updated", sub, {"schedule": schedule["id"]})
    return schedule


_PATH = "/v1/subscription_schedules"
ROUTES = (
    Route(
        "POST",
        _PATH,
        "SubscriptionScheduleCreateParams",
        "subscription",
        _create,
        plays("end_behavior from_subscription metadata phases"),
    ),
    Route(
        "GET",
        _PATH + "/{id}",
        "SubscriptionScheduleRetrieveParams",
        "subscription",
        retrieved("subscription_schedule"),
    ),
    Route(
        "POST",
        _PATH + "/{id}",
        "SubscriptionScheduleUpdateParams",
        "subscription",
        _update,
        plays("end_behavior metadata phases proration_behavior"),
    ),
    Route(
        "POST",
        _PATH + "/{id}/release",
        "SubscriptionScheduleReleaseParams",
        "subscription",
        _release,
    ),
    Route(
        "GET",
        _PATH,
        "SubscriptionScheduleListParams",
        "subscription",
        listed("subscription_schedule", _PATH, "customer"),
        plays("customer"),
    ),
)
