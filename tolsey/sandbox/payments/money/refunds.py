"""Refunds and disputes: money that goes back."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, merged
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, missing_param
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved

_EVIDENCE_SECONDS = 9 * 86_400


def open_dispute(
    merchant: Merchant,
    charge: Obj,
    *,
    amount: int | None = None,
    reason: str = "fraudulent",
    inquiry: bool = False,
) -> Obj:
    """Let the customer's bank ask money back; an inquiry moves none yet."""
    dispute = merchant.new(
        "dispute",
        "dp",
        amount=charge["amount"] if amount is None else amount,
        balance_transactions=[],
        charge=charge["id"],
        currency=charge["currency"],
        enhanced_eligibility_types=[],
        evidence={},
        evidence_details={
            "due_by": merchant.now() + _EVIDENCE_SECONDS,
            "has_evidence": False,
            "past_due": False,
            "submission_count": 0,
        },
        is_charge_refundable=inquiry,
        metadata={},
        payment_intent=charge["payment_intent"],
        payment_method_details={
            "card": {"brand": "visa", "case_type": "inquiry" if inquiry else "chargeback"},
            "type": "card",
        },
        reason=reason,
        status="warning_needs_response" if inquiry else "needs_response",
    )
    charge["disputed"] = True
    merchant.emit("charge.dispute.created", dispute)
    if not inquiry:
        merchant.emit("charge.dispute.funds_withdrawn", dispute)
    return dispute


def close_dispute(merchant: Merchant, dispute: Obj, status: str) -> Obj:
    """End a dispute as won, lost or, for an inquiry, warning_closed."""
    inquiry = dispute["status"].startswith("warning_")
    if status not in (("warning_closed",) if inquiry else ("won", "lost")):
        raise ValueError(f"a dispute that is {dispute['status']} does not end as {status}")
    previous = {"status": dispute["status"]}
    dispute.update(status=status, is_charge_refundable=False)
    if status == "won":
        merchant.emit("charge.dispute.funds_reinstated", dispute)
    merchant.emit("charge.dispute.closed", dispute, previous)
    return dispute


def refund(merchant: Merchant, charge: Obj, amount: int, **fields: Any) -> Obj:
    """Give money of a charge back; the charge counts what it gave back so far."""
    made = merchant.new(
        "refund",
        "re",
        amount=amount,
        balance_transaction=merchant.books.new_id("txn"),
        charge=charge["id"],
        currency=charge["currency"],
        destination_details={"card": {"type": "refund"}, "type": "card"},
        metadata=merged({}, fields.get("metadata")),
        payment_intent=charge["payment_intent"],
        reason=fields.get("reason"),
        receipt_number=None,
        source_transfer_reversal=None,
        status="succeeded",
        transfer_reversal=None,
    )
    refunded = charge["amount_refunded"] + amount
    merchant.emit("refund.created", made)
    merchant.change(
        "charge.refunded",
        charge,
        amount_refunded=refunded,
        refunded=refunded == charge["amount"],
    )
    return made


def _create(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    charge = _charge(call)
    if charge["status"] != "succeeded":
        raise Refused(f"Charge {charge['id']} has not succeeded; it cannot be refunded.")
    if _charged_back(merchant, charge):
        raise Refused(
            f"Charge {charge['id']} has been charged back; cannot issue a refund.",
            code="charge_disputed",
        )
    left = charge["amount"] - charge["amount_refunded"]
    if not left:
        raise Refused(
            f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded"
        )
    amount = given.get("amount", left)
    if amount < 1:
        raise Refused("Invalid positive integer", code="parameter_invalid_integer", param="amount")
    if amount > left:
        raise Refused(
            f"Refund amount (${amount / 100:,.2f}) is greater than unrefunded amount on charge"
            f" (${left / 100:,.2f})",
            param="amount",
        )
    return refund(
        merchant, charge, amount, metadata=given.get("metadata"), reason=given.get("reason")
    )


def _charge(call: Call) -> Obj:
    given, books = call.params, call.merchant.books
    if "charge" in given:
        return books.get("charge", given["charge"], "charge")
    if "payment_intent" not in given:
        raise missing_param("payment_intent")
    intent = books.get("payment_intent", given["payment_intent"], "payment_intent")
    if intent["latest_charge"] is None:
        raise Refused(f"This PaymentIntent ({intent['id']}) does not have a successful charge.")
    return books.get("charge", intent["latest_charge"])


def _charged_back(merchant: Merchant, charge: Obj) -> bool:
    return any(
        d["charge"] == charge["id"] and d["status"] in ("needs_response", "under_review", "lost")
        for d in merchant.books.each("dispute")
    )


def _answer_dispute(call: Call) -> Obj:
    dispute = call.merchant.books.get("dispute", call.id)
    dispute["metadata"] = merged(dispute["metadata"], call.params.get("metadata"))
    if call.params.get("evidence"):
        dispute["evidence"] |= call.params["evidence"]
        dispute["evidence_details"]["has_evidence"] = True
    if call.params.get("submit", "evidence" in call.params):
        dispute["evidence_details"]["submission_count"] += 1
        dispute["status"] = dispute["status"].replace("needs_response", "under_review")
    call.merchant.emit("charge.dispute.updated", dispute)
    return dispute


def _give_in(call: Call) -> Obj:
    dispute = call.merchant.books.get("dispute", call.id)
    if dispute["status"] in ("won", "lost", "warning_closed"):
        raise Refused("This dispute is already closed.", code="resource_missing")
    inquiry = dispute["status"].startswith("warning_")
    return close_dispute(call.merchant, dispute, "warning_closed" if inquiry else "lost")


ROUTES = (
    Route(
        "POST",
        "/v1/refunds",
        "RefundCreateParams",
        "charge",
        _create,
        plays("amount charge metadata payment_intent reason"),
    ),
    Route("GET", "/v1/refunds/{id}", "RefundRetrieveParams", "charge", retrieved("refund")),
    Route(
        "GET",
        "/v1/refunds",
        "RefundListParams",
        "charge",
        listed("refund", "/v1/refunds", "charge", "payment_intent"),
        plays("charge payment_intent"),
    ),
    Route("GET", "/v1/disputes/{id}", "DisputeRetrieveParams", "dispute", retrieved("dispute")),
    Route(
        "GET",
        "/v1/disputes",
        "DisputeListParams",
        "dispute",
        listed("dispute", "/v1/disputes", "charge", "payment_intent"),
        plays("charge payment_intent"),
    ),
    Route(
        "POST",
        "/v1/disputes/{id}",
        "DisputeUpdateParams",
        "dispute",
        _answer_dispute,
        plays("evidence metadata submit"),
    ),
    Route("POST", "/v1/disputes/{id}/close", "DisputeCloseParams", "dispute", _give_in),
)
