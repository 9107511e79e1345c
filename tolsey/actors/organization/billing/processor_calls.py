"""The calls to the payment processor that follow an organization's decisions."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tolsey.actors.organization.billing.calls import (
    EndSubscriptionNow,
    RefundMade,
    RefundPayment,
    RefundRefused,
    SubscriptionEndedNow,
)
from tolsey.actors.processor import PaymentProcessor, ProcessorRefused
from tolsey.actors.refusals import Conflict
from tolsey.runtime.messages import Call, LookFirst


class ProcessorCalls:
    """Asks the processor for what was decided; what may pass is raised to be tried again."""

    def __init__(self, processor: PaymentProcessor, clock: Callable[[], datetime]) -> None:
        self._processor = processor
        self._clock = clock

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {
            RefundPayment: self.refund,
            EndSubscriptionNow: LookFirst(self.end_now, self.look_for_end),
        }

    async def refund(self, call: RefundPayment) -> RefundMade | RefundRefused:
        """Give a payment back, once whoever asks and however often."""
        try:
            paid_with = await self._paid_with(call.payment_ref)
            made = await self._processor.refund(
                paid_with, None, organization_id=call.organization_id, key=f"refund:{paid_with}"
            )
        except ProcessorRefused as refused:
            return self._refused(call, 422, "processor_rejected", refused.message, refused.code)
        except Conflict as nothing:
            return self._refused(call, nothing.status, nothing.code, nothing.detail)
        return RefundMade(
            call.operation_id,
            call.payment_ref,
            made.id,
            made.total_cents,
            made.refunded_cents,
            self._clock(),
        )

    async def end_now(self, call: EndSubscriptionNow) -> SubscriptionEndedNow:
        """End a subscription at once."""
        id = call.subscription_id
        await self._processor.end_now(id, key=f"end:{id}")
        return SubscriptionEndedNow(call.operation_id, self._clock())

    async def look_for_end(self, call: EndSubscriptionNow) -> SubscriptionEndedNow | None:
        """Tell whether a subscription has ended."""
        if (await self._processor.subscription(call.subscription_id)).ended_at is None:
            return None
        return SubscriptionEndedNow(call.operation_id, self._clock())

    async def _paid_with(self, payment_ref: str) -> str:
        """Name the payment itself: the ledger names a subscription's by its invoice."""
        if not payment_ref.startswith("in_"):
            return payment_ref
        invoice = await self._processor.invoice(payment_ref)
        paid_with = invoice.payment_intent_id or invoice.charge_id
        if paid_with is None:
            raise Conflict("Nothing was collected for this invoice.", code="nothing_to_refund")
        return paid_with

    def _refused(
        self, call: RefundPayment, status: int, code: str, detail: str, processor_code: str = ""
    ) -> RefundRefused:
        return RefundRefused(
            call.operation_id,
            call.payment_ref,
            status,
            code,
            detail,
            processor_code,
            self._clock(),
        )
