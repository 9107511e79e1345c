"""Refunds: money that goes back to a buyer, as a person confirmed it."""

from typing import Any

from tolsey.actors.edit import Edit
from tolsey.actors.store.editing.kinds.kind import EditKind, Facts, Planned, Rejected


class RefundEdit(EditKind):
    """Money of an order given back, with lines or without; the platform says how much it may be.

    Wanted are `lines` (units by line), `shipping` and an `amount`, each or none; without an amount it is
    the platform's own suggestion for them.
    """

    tools = ("refund_order",)
    thing = "order"
    ids = ("order_id",)
    platform_scope = "write_orders"
    is_keyed = True
    needs_person = True

    def plan(self, wanted: Facts, facts: Facts) -> Planned | Rejected:
        """Give back what was suggested or is wanted, through the payments that it came by."""
        currency, most = facts["currency"], facts["refundable"]
        for one in (wanted["amount"], wanted["shipping"]):
            if one and one["currency"] != currency:
                return Rejected(
                    "other_currency",
                    f"This order was paid in {currency}. Send the refund amount in that currency.",
                )
        for line, units in wanted["lines"].items():
            if units > facts["lines"].get(line, 0):
                left = facts["lines"].get(line, 0)
                return Rejected(
                    "too_many",
                    f"At most {left} of line {line} can be refunded. Send a smaller quantity.",
                )
        asked = wanted["amount"]
        amount: int = facts["suggested"] if asked is None else asked["amount"]
        if amount <= 0:
            return Rejected(
                "nothing_to_refund",
                "There is nothing left to refund on this order. Check its earlier refunds.",
            )
        # Never more than the platform has left of the payments (rules/agents#refunds).
        if amount > most:
            return Rejected(
                "too_much",
                "The amount exceeds what can be refunded. Call with dry_run to see the"
                " refundable amount.",
            )
        payments, left = [], amount
        for payment in facts["payments"]:
            part = min(left, payment["most"])
            if part:
                payments.append({**payment, "most": part})
            left -= part
        if left:
            return Rejected(
                "too_much", "The order's payments don't cover this refund. Send a smaller amount."
            )
        change = {
            **wanted,
            "amount": {"amount": amount, "currency": currency},
            "is_suggested": amount == facts["suggested"],
            "payments": payments,
        }
        after = {**facts, "refunded": facts["refunded"] + amount, "refundable": most - amount}
        return Planned({**after, "refund": change}, change)

    def shown(self, wanted: Facts, facts: Facts) -> dict[str, Any]:
        """Show what was given back, what still can be, and the platform's suggestion for this."""
        del wanted

        def money(name: str) -> dict[str, Any]:
            return {"amount": facts[name], "currency": facts["currency"]}

        told = {name: money(name) for name in ("refunded", "refundable", "suggested")}
        refund = facts.get("refund")
        if refund is None:
            return {**told, "refunds": facts["refunds"]}
        shown = {name: refund[name] for name in ("amount", "lines", "shipping", "note", "notify")}
        return {**told, "refund": shown}

    def is_made(self, edit: Edit, before: Facts, now: Facts) -> bool:
        """Whether there is a refund more, and as much more was given back."""
        amount = (edit.change or {})["amount"]["amount"]
        more = now["refunded"]["amount"] - before["refunded"]["amount"]
        return bool(more == amount and set(now["refunds"]) > set(before["refunds"]))
