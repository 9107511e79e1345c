"""Payment intents and the charges they make."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, declined
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved
from tolsey.sandbox.payments.money.customers import NO_ADDRESS, method_named

DECLINED = "Your card was declined."
INSUFFICIENT = "Your card has insufficient funds."
AUTHENTICATE = "Your card was declined. This transaction requires authentication."
_PRESENT = {"authenticate": "ok", "decline_later": "ok"}
_ABSENT = {"decline_later": "decline"}


def outcome_of(merchant: Merchant, method: str | None, *, off_session: bool) -> str:
    """Tell what charging a method does: ok, later, authenticate, decline or insufficient."""
    if method is None:
        return "decline"
    behaviour = merchant.cards.get(method, "ok")
    return (_ABSENT if off_session else _PRESENT).get(behaviour, behaviour)


def decline_of(outcome: str, **more: Any) -> Refused:
    """Word the refusal of a card."""
    if outcome == "authenticate":
        return declined("authentication_required", AUTHENTICATE, **more)
    if outcome == "insufficient":
        return declined("card_declined", INSUFFICIENT, decline_code="insufficient_funds", **more)
    return declined("card_declined", DECLINED, **more)


def make_intent(
    merchant: Merchant, amount: int, currency: str, customer: str | None, **fields: Any
) -> Obj:
    """Open a payment intent and tell of it."""
    intent = merchant.new(
        "payment_intent",
        "pi",
        amount=amount,
        amount_capturable=0,
        amount_received=0,
        application=None,
        application_fee_amount=None,
        automatic_payment_methods=None,
        canceled_at=None,
        cancellation_reason=None,
        capture_method="automatic",
        client_secret=None,
        confirmation_method="automatic",
        currency=currency,
        customer=customer,
        description=fields.get("description"),
        last_payment_error=None,
        latest_charge=None,
        metadata=merged({}, fields.get("metadata")),
        next_action=None,
        on_behalf_of=None,
        payment_method=None,
        payment_method_options={},
        payment_method_types=["card"],
        processing=None,
        receipt_email=fields.get("receipt_email"),
        review=None,
        setup_future_usage=fields.get("setup_future_usage"),
        shipping=None,
        statement_descriptor=None,
        statement_descriptor_suffix=None,
        status="requires_payment_method",
        transfer_data=None,
        transfer_group=None,
    )
    intent["client_secret"] = merchant.books.new_id(f"{intent['id']}_secret")
    merchant.emit("payment_intent.created", intent)
    return intent


def attempt(merchant: Merchant, intent: Obj, method: str | None, *, off_session: bool) -> str:
    """Charge an intent, tell of what happened, and give the outcome."""
    outcome = outcome_of(merchant, method, off_session=off_session)
    intent["payment_method"] = method
    if outcome == "ok":
        succeed(merchant, intent)
    elif outcome == "later":
        intent.update(status="processing", payment_method_types=["us_bank_account"])
        _make_charge(merchant, intent, "pending")
        merchant.emit("payment_intent.processing", intent)
    elif outcome == "authenticate":
        action = {"type": "use_stripe_sdk", "use_stripe_sdk": {}}
        intent.update(status="requires_action", next_action=action)
        merchant.emit("payment_intent.requires_action", intent)
    else:
        fail(merchant, intent, outcome)
    return outcome


def succeed(merchant: Merchant, intent: Obj) -> None:
    """Let the money arrive: the charge and the intent succeed."""
    charge = _settle_charge(merchant, intent, "succeeded")
    merchant.emit("charge.succeeded", charge)
    intent.update(
        status="succeeded",
        amount_received=intent["amount"],
        next_action=None,
        last_payment_error=None,
    )
    merchant.emit("payment_intent.succeeded", intent)


def fail(merchant: Merchant, intent: Obj, outcome: str = "decline") -> None:
    """Let a payment fail: a failed charge, and an intent that wants another method."""
    error = decline_of(outcome).error
    charge = _settle_charge(merchant, intent, "failed")
    charge.update(failure_code=error["code"], failure_message=error["message"])
    merchant.emit("charge.failed", charge)
    intent.update(
        status="requires_payment_method",
        last_payment_error={**error, "charge": charge["id"]},
        next_action=None,
        payment_method=None,
    )
    merchant.emit("payment_intent.payment_failed", intent)


def _settle_charge(merchant: Merchant, intent: Obj, status: str) -> Obj:
    """Give the intent's charge its end: the one that is pending, or a new one."""
    latest = intent["latest_charge"]
    charge = merchant.books.get("charge", latest) if latest else None
    if charge is None or charge["status"] != "pending":
        return _make_charge(merchant, intent, status)
    charge.update(_state(merchant, intent["amount"], status))
    return charge


def _state(merchant: Merchant, amount: int, status: str) -> Obj:
    paid = status == "succeeded"
    return {
        "status": status,
        "paid": paid,
        "captured": status != "failed",
        "amount_captured": amount if paid else 0,
        "balance_transaction": merchant.books.new_id("txn") if paid else None,
    }


def _make_charge(merchant: Merchant, intent: Obj, status: str) -> Obj:
    method = merchant.books.find(intent["payment_method"] or "")
    kind = method["type"] if method else "card"
    charge = merchant.new(
        "charge",
        "ch",
        amount=intent["amount"],
        amount_refunded=0,
        application=None,
        application_fee=None,
        application_fee_amount=None,
        billing_details={"address": NO_ADDRESS, "email": None, "name": None, "phone": None},
        calculated_statement_descriptor="TOLSEY SANDBOX",
        currency=intent["currency"],
        customer=intent["customer"],
        description=intent["description"],
        disputed=False,
        failure_balance_transaction=None,
        failure_code=None,
        failure_message=None,
        fraud_details={},
        metadata=dict(intent["metadata"]),
        on_behalf_of=None,
        outcome=None,
        payment_intent=intent["id"],
        payment_method=intent["payment_method"],
        payment_method_details={"type": kind, kind: method[kind] if method else {}},
        receipt_email=intent["receipt_email"],
        receipt_number=None,
        receipt_url=None,
        refunded=False,
        review=None,
        shipping=None,
        source_transfer=None,
        statement_descriptor=None,
        statement_descriptor_suffix=None,
        transfer_data=None,
        transfer_group=None,
        **_state(merchant, intent["amount"], status),
    )
    intent["latest_charge"] = charge["id"]
    return charge


def _create(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    customer = given.get("customer")
    if customer is not None:
        merchant.books.get("customer", customer, "customer")
    if given.get("off_session") and not given.get("confirm"):
        raise Refused(
            "The `off_session` parameter can only be passed when creating a PaymentIntent with"
            " `confirm` set to `true`.",
            param="off_session",
        )
    keep = ("description", "metadata", "receipt_email", "setup_future_usage")
    intent = make_intent(
        merchant,
        given["amount"],
        given["currency"].lower(),
        customer,
        **{name: given[name] for name in keep if name in given},
    )
    return _confirmed(call, intent) if given.get("confirm") else intent


def _confirm(call: Call) -> Obj:
    intent = call.merchant.books.get("payment_intent", call.id)
    if intent["status"] not in ("requires_payment_method", "requires_action"):
        raise _wrong_state(intent, "confirm")
    return _confirmed(call, intent)


def _confirmed(call: Call, intent: Obj) -> Obj:
    named = call.params.get("payment_method")
    if named is None:
        raise Refused(
            "You cannot confirm this PaymentIntent because it's missing a payment method.",
            code="payment_intent_unexpected_state",
        )
    method = method_named(call.merchant, named, intent["customer"], "payment_method")
    off_session = bool(call.params.get("off_session"))
    outcome = attempt(call.merchant, intent, method["id"], off_session=off_session)
    if outcome in ("ok", "later"):
        return intent
    raise decline_of(outcome, payment_intent=intent)


def _cancel(call: Call) -> Obj:
    intent = call.merchant.books.get("payment_intent", call.id)
    if intent["status"] in ("succeeded", "canceled", "processing"):
        raise _wrong_state(intent, "cancel")
    intent.update(
        status="canceled",
        canceled_at=call.merchant.now(),
        cancellation_reason=call.params.get("cancellation_reason"),
    )
    call.merchant.emit("payment_intent.canceled", intent)
    return intent


def _wrong_state(intent: Obj, verb: str) -> Refused:
    return Refused(
        f"You cannot {verb} this PaymentIntent because it has a status of {intent['status']}.",
        code="payment_intent_unexpected_state",
        payment_intent=intent,
    )


ROUTES = (
    Route(
        "POST",
        "/v1/payment_intents",
        "PaymentIntentCreateParams",
        "payment_intent",
        _create,
        plays(
            "amount currency customer confirm description metadata off_session payment_method"
            " receipt_email setup_future_usage"
        ),
    ),
    Route(
        "POST",
        "/v1/payment_intents/{id}/confirm",
        "PaymentIntentConfirmParams",
        "payment_intent",
        _confirm,
        plays("payment_method off_session"),
    ),
    Route(
        "POST",
        "/v1/payment_intents/{id}/cancel",
        "PaymentIntentCancelParams",
        "payment_intent",
        _cancel,
        plays("cancellation_reason"),
    ),
    Route(
        "GET",
        "/v1/payment_intents/{id}",
        "PaymentIntentRetrieveParams",
        "payment_intent",
        retrieved("payment_intent"),
    ),
    Route(
        "GET",
        "/v1/payment_intents",
        "PaymentIntentListParams",
        "payment_intent",
        listed("payment_intent", "/v1/payment_intents", "customer"),
        plays("customer"),
    ),
    Route("GET", "/v1/charges/{id}", "ChargeRetrieveParams", "charge", retrieved("charge")),
    Route(
        "GET",
        "/v1/charges",
        "ChargeListParams",
        "charge",
        listed("charge", "/v1/charges", "customer", "payment_intent"),
        plays("customer payment_intent"),
    ),
)
