"""What an organization pays for, and what is done about it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import structlog

from tolsey.actors.organization.billing import acts, applying, changes, completing, returns
from tolsey.actors.organization.billing.calls import (
    PlanChangeMade,
    PlanChangeRefused,
    RefundMade,
    RefundRefused,
    ReturnGivenUp,
    SubscriptionEndedNow,
)
from tolsey.actors.organization.billing.completing import (
    PaymentEventGivenUp,
    PaymentEventReceived,
)
from tolsey.actors.organization.billing.messages import (
    Applied,
    ApplyPaymentEvent,
    CancelPlan,
    ChangePlan,
    GiveBackPayment,
    LeaveProcessor,
    ReadSubscription,
    RecordBillingAct,
)
from tolsey.actors.organization.billing.payment_events.catalogue import restore
from tolsey.actors.organization.ledger.part import (
    PAYMENT,
    about_payment,
    recalled,
    unless_unmoved,
)
from tolsey.actors.organization.operations.part import kept_in
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import KindPart, gathers, handles, on
from tolsey.runtime.decision import Decision
from tolsey.storage.chat import generations
from tolsey.storage.database import Database
from tolsey.storage.money import payment_events as payment_event_rows
from tolsey.storage.money import subscriptions as subscription_rows
from tolsey.storage.records.runtime.operations import Operation

log = structlog.get_logger()


class Billing(KindPart[OrganizationState]):
    """The subscription, what the processor tells of it, and payments that are given back."""

    owns: ClassVar[tuple[str, ...]] = ("created_at", "subscription", "over")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept = kept = kept_in(database)
        self.decides = (
            on(ReadSubscription, acts.read),
            on(RecordBillingAct, acts.record),
            gathers(ChangePlan, kept, changes.change),
            gathers(CancelPlan, kept, changes.cancel),
            on(PlanChangeMade, changes.made),
            on(PlanChangeRefused, changes.refused),
            about_payment(database, RefundMade, returns.made, PAYMENT),
            about_payment(database, RefundRefused, returns.refused, PAYMENT),
            about_payment(database, ReturnGivenUp, returns.given_up, PAYMENT),
            on(SubscriptionEndedNow, returns.ended),
            on(LeaveProcessor, returns.leave),
            on(PaymentEventGivenUp, applying.give_up),
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read since when organizations are here, and what they pay for."""
        billed = await subscription_rows.load(self._database, keys)
        return {
            key: {"created_at": one.created_at, "subscription": one.subscription}
            for key, one in billed.items()
        }

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List the subscription when it moved."""
        if new.subscription is None or new.subscription is old.subscription:
            return ()
        return (new.subscription,)

    @handles(GiveBackPayment)
    async def give_back_payment(
        self, state: OrganizationState, message: GiveBackPayment
    ) -> Decision[OrganizationState, Operation]:
        """Begin to give a payment back."""
        known = await recalled(self._database, state, message.payment_ref)
        kept = await self._kept(state, message)
        paid_at = (known.subscription and known.subscription.paid_at) or message.at
        chatted = await generations.has_chatted(self._database, state.organization_id, paid_at)
        begun = returns.begin(known, message, kept, has_chatted=chatted)
        return unless_unmoved(state, known, begun)

    @handles(ApplyPaymentEvent)
    async def apply_payment_event(
        self, state: OrganizationState, message: ApplyPaymentEvent
    ) -> Decision[OrganizationState, Applied]:
        """Do what the payment processor said, whole, in one commit."""
        known = await recalled(self._database, state, applying.payment_of(message))
        subscription_id = applying.subscription_of(message)
        # What is told of a subscription after its end brings no plan back, whatever came in between.
        if subscription_id is not None and not message.is_over:
            is_over = subscription_id in state.over or await payment_event_rows.has_ended(
                self._database, state.organization_id, subscription_id
            )
            message = replace(message, is_over=is_over)
        decision = applying.apply(known, message)
        if isinstance(decision.reply, Applied) and decision.reply.state in {"failed", "parked"}:
            log.error(
                "payments.event_settled",
                event_id=message.event_id,
                type=message.type,
                state=decision.reply.state,
                why=decision.reply.why,
            )
        return unless_unmoved(state, known, decision)

    @handles(PaymentEventReceived)
    async def receive_payment_event(
        self, state: OrganizationState, message: PaymentEventReceived
    ) -> Decision[OrganizationState, Applied]:
        """Do what the payment processor said, or ask it first for what that leaves out."""
        event = completing.as_told(message, None)
        known = await recalled(self._database, state, applying.payment_of(event))
        payment_id = completing.paid_invoice(known, restore(message.type, message.facts))
        if payment_id is not None:
            invoice_id = await payment_event_rows.invoice_paid_by(
                self._database, state.organization_id, payment_id
            )
            event = replace(event, payment_ref=invoice_id)
        asked = completing.lacking(known, message, event.payment_ref)
        if asked is not None:
            return Decision(state, completing.STALE, effects=(asked,))
        return await self.apply_payment_event(state, event)
