"""The calls to the payment processor that follow an organization's decisions."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import wraps
from typing import Any

from tolsey.actors.organization import plans
from tolsey.actors.organization.billing.calls import (
    CancelSubscription,
    EndSubscriptionNow,
    NextChange,
    PlanChangeMade,
    PlanChangeRefused,
    RefundMade,
    RefundPayment,
    RefundRefused,
    ReleaseSchedule,
    RestoreChange,
    ScheduleDowngrade,
    SubscriptionEndedNow,
    UpgradeSubscription,
)
from tolsey.actors.processor import (
    PaymentProcessor,
    ProcessorRefused,
    Subscribed,
    refusal_of,
)
from tolsey.actors.refusals import Conflict
from tolsey.runtime.messages import Call, LookFirst

Changed = PlanChangeMade | PlanChangeRefused
Act = Callable[["ProcessorCalls", Any], Awaitable[Changed]]


def _changing(act: Act) -> Act:
    """Let what the processor refuses be the answer of a change; what may pass is tried again."""

    @wraps(act)
    async def changed(self: "ProcessorCalls", call: Any) -> Changed:
        try:
            return await act(self, call)
        except ProcessorRefused as error:
            why = refusal_of(error)
            at = self._clock()
            return PlanChangeRefused(
                operation_id=call.operation_id,
                at=at,
                status=why.status,
                code=why.code,
                detail=why.detail,
                processor_code=error.code,
            )

    return changed


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
            UpgradeSubscription: LookFirst(self.upgrade, self.look_for_upgrade),
            ScheduleDowngrade: self.downgrade,
            CancelSubscription: self.cancel,
            ReleaseSchedule: self.release,
            RestoreChange: self.restore,
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
            operation_id=call.operation_id,
            payment_ref=call.payment_ref,
            refund_id=made.id,
            total_cents=made.total_cents,
            refunded_cents=made.refunded_cents,
            at=self._clock(),
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

    @_changing
    async def upgrade(self, call: UpgradeSubscription) -> Changed:
        """Change the price at once, instead of what waits for the end of the period."""
        # What it costs was shown before it was confirmed, and moves with the time that is left.
        if self._clock() > call.until:
            return call.given_up("too late", self._clock())
        await self._take_off(call.held.schedule_id)
        await self._processor.upgrade(call.held, call.price_id, key=call.key)
        return PlanChangeMade(operation_id=call.operation_id, at=self._clock())

    async def look_for_upgrade(self, call: UpgradeSubscription) -> PlanChangeMade | None:
        """Tell whether a subscription has the price that it was to have."""
        facts = await self._processor.subscription(call.subscription_id)
        if all(one.price_id != call.price_id for one in facts.items):
            return None
        return PlanChangeMade(operation_id=call.operation_id, at=self._clock())

    @_changing
    async def downgrade(self, call: ScheduleDowngrade) -> Changed:
        """Change the price when the period ends."""
        if call.resumes:
            await self._resume(call)
        key, asked = f"downgrade:{call.operation_id}", (call.plan, call.cadence)
        id = await self._processor.downgrade(call.held, call.price_id, *asked, key=key)
        return PlanChangeMade(
            operation_id=call.operation_id, at=self._clock(), next=NextChange(id, *asked)
        )

    @_changing
    async def cancel(self, call: CancelSubscription) -> Changed:
        """End a subscription with its period, instead of what waits for that."""
        await self._take_off(call.schedule_id)
        key = f"cancel:{call.operation_id}"
        await self._processor.cancel(
            call.subscription_id, feedback=call.feedback, comment=call.comment, key=key
        )
        return PlanChangeMade(operation_id=call.operation_id, at=self._clock())

    @_changing
    async def release(self, call: ReleaseSchedule) -> Changed:
        """Let a subscription go on as it is."""
        await self._take_off(call.schedule_id)
        if call.resumes:
            await self._resume(call)
        return PlanChangeMade(operation_id=call.operation_id, at=self._clock())

    @_changing
    async def restore(self, call: RestoreChange) -> Changed:
        """Let what was taken off wait again, unless something came in its place."""
        id = call.subscription_id
        facts = await self._processor.subscription(id)
        ends = (
            facts.ended_at is not None or facts.cancel_at_period_end or facts.cancel_at is not None
        )
        item = next((one for one in facts.items if one.price_id == call.held_price_id), None)
        schedule_id = facts.schedule_id
        waits = schedule_id and await self._processor.next_price_id(schedule_id)
        if ends or item is None or waits:
            return PlanChangeMade(operation_id=call.operation_id, at=self._clock(), is_done=False)
        # Each try has its own key, since the processor repeats its answer to one.
        key = f"restore:{id}:{self._clock().isoformat()}"
        if call.plan == plans.FREE.code:
            await self._take_off(schedule_id)  # of a change that was only half made
            await self._processor.cancel(id, feedback=None, comment=None, key=key)
            return PlanChangeMade(operation_id=call.operation_id, at=self._clock())
        held = Subscribed(
            subscription_id=id,
            item_id=item.item_id,
            price_id=item.price_id,
            period_start=item.period_start,
            period_end=item.period_end,
            schedule_id=schedule_id,
        )
        asked = call.plan, call.cadence
        made = await self._processor.downgrade(held, call.price_id, *asked, key=key)
        return PlanChangeMade(
            operation_id=call.operation_id, at=self._clock(), next=NextChange(made, *asked)
        )

    async def _take_off(self, schedule_id: str | None) -> None:
        if schedule_id is not None:
            await self._processor.release(schedule_id, key=f"release:{schedule_id}")

    async def _resume(self, call: ScheduleDowngrade | ReleaseSchedule) -> None:
        key = f"resume:{call.operation_id}"
        await self._processor.resume(call.subscription_id, key=key)

    async def _paid_with(self, payment_ref: str) -> str:
        """Name the payment itself: the ledger names a subscription's by its invoice."""
        if not payment_ref.startswith("in_"):
            return payment_ref
        invoice = await self._processor.invoice(payment_ref)
        paid_with = invoice.payment_intent_id or invoice.charge_id
        if paid_with is None:
            raise Conflict(
                "No payment was collected for this invoice, so there is nothing to refund.",
                code="nothing_to_refund",
            )
        return paid_with

    def _refused(
        self, call: RefundPayment, status: int, code: str, detail: str, processor_code: str = ""
    ) -> RefundRefused:
        return RefundRefused(
            operation_id=call.operation_id,
            payment_ref=call.payment_ref,
            status=status,
            code=code,
            detail=detail,
            processor_code=processor_code,
            at=self._clock(),
        )
