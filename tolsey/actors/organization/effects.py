"""From what the payment processor told to what an organization has.

An event stands `new` in `payment_events` before its sender is answered, and in the same commit it becomes
a message to its organization, which does all of it in one turn. So a crash between any two steps loses
nothing and does nothing twice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.organization.billing import sponsors
from tolsey.actors.organization.billing.completing import (
    CompletePaymentEvent,
    PaymentEventReceived,
    as_told,
    is_news,
)
from tolsey.actors.organization.billing.messages import ApplyPaymentEvent, PricedOffer
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES, keep, restore
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts
from tolsey.actors.organization.billing.payment_events.metadata import SPONSOR
from tolsey.actors.organization.billing.payment_events.payouts import AccountFacts, PayoutFacts
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.organization.ledger.answers import EndAnswer
from tolsey.actors.organization.messages import organization
from tolsey.actors.processor import PaymentProcessor, ProcessorRefused, ProcessorUnreachable
from tolsey.actors.refusals import MissingCredential
from tolsey.runtime.codec import WireForm
from tolsey.runtime.decision import Effect, Perform, Tell
from tolsey.runtime.messages import ActorId, Call
from tolsey.runtime.outbox.rows import row_of
from tolsey.storage.chat import generations
from tolsey.storage.database import Database, Transaction
from tolsey.storage.money import payment_events, payouts, sponsorships
from tolsey.storage.money.payment_events import Taken
from tolsey.storage.records.money.payment_event import EventState, PaymentEvent, WaitingEvent
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.runtime import outbox

log = structlog.get_logger()

PAGE: Final = 500
UNDELIVERED: Final = timedelta(days=3)
"""How long the processor goes on delivering (rules/payments#events)."""


class PaymentInbox:
    """Keeps the processor's events, and hands each on in the commit that finds whose it is.

    What is about an organization becomes a message to it. What is about a payout account or a sponsor
    changes rows that no actor owns, and is done in that very commit.
    """

    def __init__(
        self,
        database: Database,
        processor: PaymentProcessor,
        clock: Callable[[], datetime],
        *,
        offers: tuple[PricedOffer, ...],
        dispatch: Callable[[Sequence[OutboxRow]], None],
        form: WireForm = "1",
    ) -> None:
        self._database = database
        self._processor = processor
        self._clock = clock
        self._dispatch = dispatch
        self._form: WireForm = form
        self._offers = offers

    async def take(self, event: PaymentEvent) -> Taken | None:
        """Keep an event and hand it on; None when it was kept before."""
        rows: Sequence[OutboxRow] = ()
        async with self._database.transaction() as tx:
            taken = await payment_events.take(tx, event)
            if taken is not None and taken.state is EventState.NEW:
                rows = await self._hand_on(tx, [_waiting(event, taken.organization_id)])
        self._dispatch(rows)
        return taken

    async def adopt(self, references: Sequence[str] | None = None) -> int:
        """Find whose parked events are, and hand these on; answer how many.

        Looks at the events that name one of the references, and on from what these tell; without
        references at every parked event, which mends what a crash between two looks left behind.
        """
        if references is not None and not await payment_events.is_awaited(
            self._database, references
        ):
            return 0
        adopted, looking = 0, references
        while looking is None or looking:
            async with self._database.transaction() as tx:
                found = await sponsorships.adopt(tx, looking)
                others, looking = await payment_events.adopt(tx, looking)
                rows = await self._hand_on(tx, [*found, *others])
            self._dispatch(rows)
            adopted += len(found) + len(others)
        if adopted:
            log.info("payments.events_adopted", events=adopted)
        return adopted

    async def retry(self, tx: Transaction, event_id: str) -> bool:
        """Hand an event that failed on again; False when it is not one that can be."""
        event = await payment_events.retry(tx, event_id)
        if event is not None:
            await self._hand_on(tx, [event])
        return event is not None

    async def reconcile(self, _: datetime, progress: Callable[[Any], None]) -> Mapping[str, int]:
        """Do a job's work: hand on what was left behind, and count what never reached us."""
        counters = {"adopted": await self.adopt(), "stranded": 0}
        while found := await payment_events.stranded(self._database, PAGE):
            async with self._database.transaction() as tx:
                await self._hand_on(tx, found)
            counters["stranded"] += len(found)
            progress(counters)
        return {**counters, "undelivered": await self._count_undelivered()}

    async def _count_undelivered(self) -> int:
        since = self._clock() - UNDELIVERED
        try:
            missing = await self._processor.undelivered_events(sorted(TYPES), since)
        except MissingCredential:
            return 0
        except (ProcessorUnreachable, ProcessorRefused) as error:
            log.warning("payments.undelivered_unknown", why=type(error).__name__)
            return 0
        if missing:
            log.error("payments.events_undelivered", events=len(missing), first=missing[0])
        return len(missing)

    async def _hand_on(
        self, tx: Transaction, events: Sequence[WaitingEvent]
    ) -> Sequence[OutboxRow]:
        """Do what events say of rows that no actor owns; the others become messages."""
        rows = [row for event in events for row in await self._rows(tx, event)]
        if rows:
            await outbox.put(tx, rows)
        return rows

    async def _rows(self, tx: Transaction, event: WaitingEvent) -> Sequence[OutboxRow]:
        id = event.event_id
        try:
            facts = restore(event.type, event.facts)
        except (LookupError, ValueError):  # kept by a release that knew another shape
            await payment_events.settle(tx, id, EventState.FAILED, "unreadable")
            return ()
        if isinstance(facts, AccountFacts):
            await payouts.account_observed(tx, id, facts, event.created_at)
        elif isinstance(facts, PayoutFacts):
            if await payouts.payout_failed(tx, id, facts, event.created_at) and facts.account_id:
                return [self._row(_mail_to_payee(facts, facts.account_id), ActorId("job", "mail"))]
        elif facts.said.kind == SPONSOR:
            if (seen := sponsors.paid(event, facts)) is None:
                await payment_events.settle(tx, id, EventState.IGNORED, "not_paid")
            else:
                await sponsorships.observed(tx, id, seen)
        elif isinstance(facts, DisputeFacts) and await sponsorships.is_known(
            tx, facts.payment_ref or ""
        ):
            await sponsorships.disputed(tx, id, sponsors.disputed(facts))
        elif event.organization_id is None:
            await payment_events.settle(tx, id, EventState.IGNORED, "no_organization")
        else:
            to = organization(event.organization_id)
            message = PaymentEventReceived(
                event_id=id,
                type=event.type,
                livemode=event.livemode,
                created_at=event.created_at,
                facts=event.facts,
                at=self._clock(),
                offers=self._offers,
            )
            return [self._row(Tell(to, message, key=f"payment_event:{id}"), to)]
        return ()

    def _row(self, effect: Effect, owner: ActorId) -> OutboxRow:
        return row_of(effect, owner, effect.key, form=self._form)


def _waiting(event: PaymentEvent, organization_id: str | None) -> WaitingEvent:
    return WaitingEvent(
        event_id=event.event_id,
        type=event.type,
        account=event.account,
        livemode=event.livemode,
        created_at=event.created_at,
        facts=event.facts or "",
        organization_id=organization_id,
    )


def _mail_to_payee(facts: PayoutFacts, account_id: str) -> Perform:
    """Tell whose payout account it is; one of the platform's own is in the log alone."""
    call = TellPeople(
        event=MailEvent.PAYOUT_FAILED,
        organization_id=None,
        about=facts.payout_id,
        facts={
            "account": account_id,
            "minor": str(facts.amount_cents),
            "currency": facts.currency,
            "message": facts.failure_message or "",
        },
    )
    return Perform(call, key=f"tell:{call.event}:{call.about}")


class AnswerCalls:
    """Writes the ends of answers down whose process is gone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {EndAnswer: self.end}

    async def end(self, call: EndAnswer) -> None:
        """Write an answer's end down, unless its maker has."""
        if await generations.end_left(self._database, call.generation_id, call.at):
            log.warning("chat.answer_left", generation_id=call.generation_id)


class EventCalls:
    """Asks the processor for what an event leaves out, and only for that."""

    def __init__(self, processor: PaymentProcessor) -> None:
        self._processor = processor

    def handlers(self) -> dict[type[Call[Any]], Any]:
        """Say which method answers which call."""
        return {CompletePaymentEvent: self.complete}

    async def complete(self, call: CompletePaymentEvent) -> ApplyPaymentEvent:
        """Complete what an event tells. Raises what the processor's port raises."""
        facts = restore(call.event.type, call.event.facts)
        apply = as_told(call.event, call.payment_ref)
        if isinstance(facts, InvoiceFacts):
            now = await self._processor.invoice(facts.invoice_id)
            return replace(apply, facts=keep(now), is_asked=True)
        if isinstance(facts, SubscriptionFacts):
            return await self._subscription(call, facts, apply)
        if isinstance(facts, RefundFacts | DisputeFacts) and apply.payment_ref is None:
            apply = replace(apply, payment_ref=await self._payment_ref(facts))
        if isinstance(facts, DisputeFacts) and call.has_ended:
            log.error("payments.dispute_ended_twice", dispute_id=facts.dispute_id)
            ended = await self._processor.dispute(facts.dispute_id)
            facts = replace(facts, status=ended.status, disputed_cents=ended.disputed_cents)
            return replace(apply, facts=keep(facts), is_asked=True)
        return apply

    async def _subscription(
        self, call: CompletePaymentEvent, facts: SubscriptionFacts, apply: ApplyPaymentEvent
    ) -> ApplyPaymentEvent:
        """Read the subscription where its event is no newer than what is known of it.

        Without an answer the event itself decides: of two of one second always the same stands.
        """
        if not is_news(facts, call.event.created_at, call.seen_at):
            try:
                facts = await self._processor.subscription(facts.subscription_id)
            except (MissingCredential, ProcessorRefused):
                if not facts.has_all_items:
                    raise
            else:
                apply = replace(apply, facts=keep(facts), is_asked=True, asked_after=call.seen_at)
        return replace(apply, next_price_id=await self._next_price_id(facts))

    async def _next_price_id(self, facts: SubscriptionFacts) -> str | None:
        """Read what waits for the end of the period, whoever put it there."""
        if facts.schedule_id is None:
            return None
        try:
            return await self._processor.next_price_id(facts.schedule_id)
        except (MissingCredential, ProcessorRefused):
            return None

    async def _payment_ref(self, facts: RefundFacts | DisputeFacts) -> str | None:
        """Name a payment as the ledger does: by its invoice where it paid for a subscription."""
        invoice_id = await self._processor.invoice_of_payment(facts.payment_intent_id or "")
        if invoice_id is None:
            return facts.payment_ref
        invoice = await self._processor.invoice(invoice_id)
        return facts.payment_ref if invoice.subscription_id is None else invoice_id
