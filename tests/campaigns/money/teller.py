"""How what happens at the payment processor is written down and told."""

import random
from datetime import datetime
from itertools import count
from typing import Any

from tests.actors.organization import processor
from tests.actors.organization.pure_organization import line
from tests.campaigns.money.proofs import (
    ALLOWANCES,
    PRICES,
    Bought,
    Disputed,
    Happened,
    Payment,
    PeriodPaid,
    Plan,
    Proof,
    moment,
    month_later,
)


class Teller:
    """Writes events; what is to be sent of them gathers in `outbox`."""

    def __init__(self, organization: str, chance: random.Random, at: datetime) -> None:
        self.organization = organization
        self.chance = chance
        self.at = int(at.timestamp())
        self.outbox: list[Happened] = []
        self.payments: list[Payment] = []
        self.plan: Plan | None = None
        self.known: dict[str, Happened] = {}
        self._subscriptions: dict[str, dict[str, Any]] = {}
        self._invoices: dict[str, dict[str, Any]] = {}
        self._numbers = count(1)

    def subscription_now(self, id: str) -> dict[str, Any]:
        """Show a subscription as it is now."""
        return self._subscriptions[id]

    def invoice_now(self, id: str) -> dict[str, Any]:
        """Show an invoice as it is now."""
        return self._invoices[id]

    def invoice_of(self, intent: str) -> str | None:
        """Name the invoice that a payment paid."""
        found = (one.name for one in self.payments if one.intent == intent)
        name = next(found, intent)
        return None if name == intent else name

    def dispute_now(self, id: str) -> dict[str, Any]:
        """Show a dispute as it is now."""
        payment = next(one for one in self.payments if id in one.disputes)
        return self._dispute(payment, id)

    # How it is written.

    def _tell(
        self,
        type_: str,
        body: dict[str, Any],
        proof: Proof | None = None,
        old_body: dict[str, Any] | None = None,
    ) -> None:
        self.at += 1  # no two events of one second: who tells what then is tested elsewhere
        if type_.startswith("customer.subscription"):
            self._subscriptions[body["id"]] = body
            old_body = _old_subscription(body)
        id = f"evt_{self.organization}_{next(self._numbers)}"
        self.known[id] = Happened(id, type_, self.at, body, old_body, proof)
        self.outbox.append(self.known[id])

    def _ours(self, **said: str) -> dict[str, str]:
        return {"org_id": self.organization, **said}

    @property
    def _reversible(self) -> list[Payment]:
        return [one for one in self.payments if one.paid]

    @property
    def _customer(self) -> str:
        return f"cus_{self.organization}"

    def _luck(self, odds: float) -> bool:
        return self.chance.random() < odds

    def _after(self, yearly: bool, at: int | None = None) -> int:
        begins = moment(self.at if at is None else at)
        return int(month_later(begins, 12 if yearly else 1).timestamp())

    def _bought(self, payment: Payment) -> Bought:
        return Bought(payment.name, payment.cents, payment.total)

    def _arrived(self, payment: Payment) -> None:
        """Tell of a purchase's money: by its payment, and by the invoice that was made of it."""
        proof = self._bought(payment)
        self._tell("payment_intent.succeeded", self._intent(payment), proof)
        receipt = processor.invoice(
            processor.line(amount=payment.cents, parent=None),
            id=f"in_{payment.intent}",
            customer=self._customer,
            parent=None,
            billing_reason="manual",
            total=payment.total,
        )
        self._tell("invoice.paid", receipt)

    def _intent(self, payment: Payment, **fields: Any) -> dict[str, Any]:
        return processor.payment(
            id=payment.intent,
            customer=self._customer,
            latest_charge=payment.charge,
            amount=payment.total,
            metadata=payment.metadata,
            **{"amount_received": payment.total, **fields},
        )

    def _subscription(self, **fields: Any) -> dict[str, Any]:
        plan = self.plan
        assert plan is not None
        made = processor.subscription(
            id=plan.id,
            customer=self._customer,
            metadata=self._ours(),
            latest_invoice=None,
            **{"status": plan.status, "cancel_at_period_end": plan.ending, **fields},
        )
        (item,) = made["items"]["data"]
        item |= {
            "id": f"si_{plan.id}",
            "price": {"id": price_of(plan.plan, plan.yearly)},
            "current_period_start": plan.starts,
            "current_period_end": plan.ends,
        }
        return made

    def _line(self) -> dict[str, Any]:
        plan = self.plan
        assert plan is not None
        made: dict[str, Any] = line(
            price_of(plan.plan, plan.yearly), cents_of(plan.plan, plan), plan.starts, plan.ends
        )
        return made

    def _invoice(
        self, reason: str, *lines: Any, allowance: int | None = None, id: str | None = None
    ) -> None:
        """Tell of a paid invoice, by both of its names, and of its payment."""
        plan = self.plan
        assert plan is not None
        invoice = id or f"in_{self.organization}_{next(self._numbers)}"
        total = _total(lines)
        intent = invoice.replace("in_", "pi_")
        payment = Payment(intent, invoice, total, {}, paid=True)
        self.payments.append(payment)
        plan.paid_plan = plan.plan
        ends = moment(plan.ends)
        if plan.yearly:
            ends = min(ends, month_later(moment(plan.starts), 1))
        begins = moment(lines[-1]["period"]["start"])
        granted = ALLOWANCES[plan.plan] if allowance is None else allowance
        proof = PeriodPaid(invoice, begins, ends, granted, total, plan.id)
        body, old_body = self._invoice_bodies(invoice, lines, billing_reason=reason)
        self._tell("invoice.paid", body, proof, old_body)
        self._tell("invoice.payment_succeeded", body, proof, old_body)
        self._tell("payment_intent.succeeded", self._intent(payment))

    def _owe(self, reason: str, *lines: Any) -> tuple[str, int]:
        """Tell of an invoice that could not be collected."""
        invoice, total = f"in_{self.organization}_{next(self._numbers)}", _total(lines)
        body, old_body = self._invoice_bodies(
            *(invoice, lines), billing_reason=reason, status="open", amount_remaining=total
        )
        self._tell("invoice.payment_failed", body, None, old_body)
        return invoice, total

    def _invoice_bodies(
        self, invoice: str, lines: Any, **fields: Any
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        plan = self.plan
        assert plan is not None
        total = _total(lines)
        details = {"subscription": plan.id, "metadata": self._ours()}
        given = {
            "id": invoice,
            "created": self._invoices.get(invoice, {}).get("created", self.at),
            "customer": self._customer,
            "total": total,
            "total_excluding_tax": sum(one["amount"] for one in lines),
            "amount_paid": total,
            **fields,
        }
        parent = {"type": "subscription_details", "subscription_details": details}
        body = processor.invoice(*lines, parent=parent, **given)
        given.pop("total_excluding_tax")
        intent = invoice.replace("in_", "pi_")
        old = processor.old_invoice(
            *[_old_line(one, plan.id, self._ours()) for one in lines],
            **given,
        )
        old |= {
            "subscription": plan.id,
            "payment_intent": intent,
            "charge": intent.replace("pi", "ch"),
            "tax": total - sum(one["amount"] for one in lines),
        }
        self._invoices[invoice] = body
        return body, old

    def _dispute(self, payment: Payment, id: str) -> dict[str, Any]:
        amount, status = payment.disputes[id]
        return processor.dispute(
            id=id,
            charge=payment.charge,
            payment_intent=payment.intent,
            amount=amount,
            status=status,
        )

    def _disputed(self, payment: Payment, id: str, type_: str, standing: str) -> None:
        proof = Disputed(payment.name, id, payment.disputes[id][0], standing)
        self._tell(type_, self._dispute(payment, id), proof)


def cents_of(name: str, plan: Plan) -> int:
    return PRICES[name][plan.yearly]


def price_of(plan: str, yearly: bool) -> str:
    return f"price_{plan}_{'yearly' if yearly else 'monthly'}"


def _total(lines: Any) -> int:
    before: int = sum(one["amount"] for one in lines)
    return max(1, before + before // 10)


def _old_line(one: dict[str, Any], subscription: str, said: dict[str, str]) -> dict[str, Any]:
    details = one["parent"]["subscription_item_details"]
    return processor.old_line(
        amount=one["amount"],
        period=one["period"],
        price={"id": one["pricing"]["price_details"]["price"]},
        proration=details["proration"],
        subscription=subscription,
        metadata=said,
    )


def _old_subscription(body: dict[str, Any]) -> dict[str, Any]:
    (item,) = body["items"]["data"]
    moved = ("current_period_start", "current_period_end")
    items = {
        "data": [{name: value for name, value in item.items() if name not in moved}],
        "has_more": False,
    }
    return {**body, **{name: item[name] for name in moved}, "items": items}
