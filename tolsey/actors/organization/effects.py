"""From what the payment processor told to what an organization has: the applier of its events.

An event stands `new` in `payment_events` before its sender is answered. The applier takes it from
there, asks the processor for what the event leaves out, and asks the organization, which does all
of it in one commit. So a crash between any two steps loses nothing and does nothing twice. Any
number of processes may run one.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

import anyio
import structlog

from tolsey.actors.mail import MailEvent, TellPeople
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import sponsors
from tolsey.actors.organization.billing.messages import (
    Applied,
    ApplyPaymentEvent,
    PricedOffer,
)
from tolsey.actors.organization.billing.payment_events.catalogue import TYPES, Facts, keep, restore
from tolsey.actors.organization.billing.payment_events.invoices import InvoiceFacts
from tolsey.actors.organization.billing.payment_events.metadata import CREDITS, SPONSOR
from tolsey.actors.organization.billing.payment_events.payouts import AccountFacts, PayoutFacts
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.organization.ledger.payments import disputes_of
from tolsey.actors.organization.messages import organization
from tolsey.actors.processor import PaymentProcessor, ProcessorRefused, ProcessorUnreachable
from tolsey.actors.refusals import MissingCredential
from tolsey.runtime.codec import WireForm
from tolsey.runtime.decision import Perform
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.rows import row_of
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageError
from tolsey.storage.money import credits, payment_events, payouts, sponsorships, subscriptions
from tolsey.storage.records.money.payment_event import EventState, WaitingEvent
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.runtime import outbox

log = structlog.get_logger()

BATCH: Final = 50
AT_ONCE: Final = 8
LEASE: Final = timedelta(seconds=20)
"""What a process that died had taken is taken up after this; taken twice, it is done once."""
APPLY_SECONDS: Final = 90.0
LOOK_SECONDS: Final = 5.0
RECONCILE_SECONDS: Final = 60.0
ASK_SECONDS: Final = 3_600.0
UNDELIVERED: Final = timedelta(days=3)
"""How long the processor goes on delivering (product/billing.md, 1.2)."""
BACKOFF_SECONDS: Final = (2.0, 10.0, 60.0, 300.0, 900.0, 3_600.0, 7_200.0)
"""What fails once more after the last of these is `failed`, and waits for an operator."""
AWAY_SECONDS: Final = 30.0
"""How long an event waits that needs the processor, while it cannot be asked."""
ROUNDS: Final = 3
REVERSALS: Final = frozenset({"charge.refunded", "charge.dispute.created", "charge.dispute.closed"})
TERMINAL: Final = frozenset({"lost", "won"})


class AskOnce(Protocol):
    """How the applier asks an organization; `Runtime.ask` is the real one."""

    def __call__(self, to: ActorId, message: Message[Any], *, id: str) -> Awaitable[Any]:
        """Post a message and wait for its reply."""
        ...


class Contradicted(Exception):  # noqa: N818 - the world's, not ours
    """Credits were restored for a dispute that is lost: a person decides."""


@dataclass(frozen=True, slots=True)
class CurrentFacts:
    """What is to be applied of an event: its own facts, or what the processor says of it now."""

    facts: Facts
    payment_ref: str | None = None
    is_asked: bool = False
    asked_after: datetime | None = None
    is_over: bool = False
    next_price_id: str | None = None


class Applier:
    """Applies the processor's events, one at a time for each organization.

    `price_ids` are the settings' ids by the variables that name them.
    """

    def __init__(
        self,
        *,
        database: Database,
        ask: AskOnce,
        processor: PaymentProcessor,
        price_ids: Mapping[str, str | None],
        clock: Callable[[], datetime],
        form: WireForm = "1",
        look_seconds: float = LOOK_SECONDS,
        backoff_seconds: Sequence[float] = BACKOFF_SECONDS,
        away_seconds: float = AWAY_SECONDS,
    ) -> None:
        self._database = database
        self._ask = ask
        self._price_ids = price_ids
        self._clock = clock
        self._form: WireForm = form
        self._look_seconds = look_seconds
        self._backoff_seconds = backoff_seconds
        self._away_seconds = away_seconds
        self._processor = processor
        self._enquiry = Enquiry(database, processor)
        self._poke = anyio.Event()
        self._limit = anyio.CapacityLimiter(AT_ONCE)
        self._reconcile_at = self._undelivered_at = 0.0

    def arrived(self) -> None:
        """Let it look at once: an event was kept."""
        self._poke.set()

    async def run(self) -> None:
        """Look whenever an event arrives, and every few seconds: it ends when it is cancelled."""
        while True:
            self._poke = anyio.Event()
            try:
                await self.reconcile()
                await self.look()
            except StorageError as error:
                log.warning("payments.applier_waits", why=type(error).__name__)
                await anyio.sleep(self._look_seconds)
            except Exception:  # the edge of a look: the next one goes on
                log.exception("payments.applier_failed")
                await anyio.sleep(self._look_seconds)
            with anyio.move_on_after(self._look_seconds):
                await self._poke.wait()

    async def look(self) -> int:
        """Apply all that waits now and is not left alone for a while; answer how many were taken."""
        count = 0
        while taken := await payment_events.claim(self._database, BATCH, LEASE):
            queues: dict[str, list[tuple[WaitingEvent, int]]] = defaultdict(list)
            for event, attempts in taken:
                queues[event.organization_id or event.event_id].append((event, attempts))
            async with anyio.create_task_group() as tasks:
                for queue in queues.values():
                    tasks.start_soon(self._apply_each, queue)
            count += len(taken)
        return count

    async def reconcile(self) -> None:
        """Find the organization of what is parked; once an hour, count what never reached us."""
        now = anyio.current_time()
        if now >= self._reconcile_at:
            self._reconcile_at = now + RECONCILE_SECONDS
            adopted = await payment_events.adopt(self._database)
            adopted += await sponsorships.adopt(self._database)
            if adopted:
                log.info("payments.events_adopted", events=adopted)
        if now >= self._undelivered_at:
            self._undelivered_at = now + ASK_SECONDS
            await self._count_undelivered()

    async def _count_undelivered(self) -> None:
        since = self._clock() - UNDELIVERED
        try:
            missing = await self._processor.undelivered_events(sorted(TYPES), since)
        except MissingCredential:
            return
        except (ProcessorUnreachable, ProcessorRefused) as error:
            log.warning("payments.undelivered_unknown", why=type(error).__name__)
            return
        if missing:
            log.error("payments.events_undelivered", events=len(missing), first=missing[0])

    async def _apply_each(self, queue: list[tuple[WaitingEvent, int]]) -> None:
        async with self._limit:
            for event, attempts in sorted(queue, key=_turn):
                try:
                    await self._apply_one(event, attempts)
                except StorageError as error:  # its lease ends, and it is taken again
                    log.warning("payments.applier_waits", why=type(error).__name__)

    async def _apply_one(self, event: WaitingEvent, attempts: int) -> None:
        """Apply an event; what fails is left alone for a while, then given to an operator."""
        said = log.bind(event_id=event.event_id, type=event.type)
        by = timedelta(seconds=self._away_seconds)
        try:
            with anyio.fail_after(APPLY_SECONDS):
                applied = await self.apply(event)
        except (MissingCredential, ProcessorUnreachable) as error:
            why = type(error).__name__
            said.warning("payments.event_waits", why=why)
            await payment_events.postpone(self._database, event.event_id, by, why, counts=False)
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001 - the edge of an event: it fails, the others go on
            why = f"{type(error).__name__}: {error}"
            said.exception("payments.event_failed", attempts=attempts)
            if attempts > len(self._backoff_seconds):
                await self._settle(event, Applied("failed", why))
                return
            by = timedelta(seconds=self._backoff_seconds[attempts - 1])
            await payment_events.postpone(self._database, event.event_id, by, why, counts=True)
        else:
            tell = said.error if applied.state in {"failed", "parked"} else said.info
            tell("payments.event_settled", state=applied.state, why=applied.why)

    async def apply(self, event: WaitingEvent) -> Applied:
        """Do what an event says, whoever it is about."""
        facts = restore(event.type, event.facts)
        if isinstance(facts, AccountFacts):
            await payouts.account_observed(self._database, event.event_id, facts, event.created_at)
            return Applied("applied")
        if isinstance(facts, PayoutFacts):
            await payouts.payout_failed(
                self._database,
                event.event_id,
                facts,
                event.created_at,
                tell=partial(outbox.put, rows=_mails_to_payee(facts, self._form)),
            )
            return Applied("applied")
        if facts.said.kind == SPONSOR:
            return await self._sponsor(event, facts)
        if isinstance(facts, DisputeFacts) and await sponsorships.is_known(
            self._database, facts.payment_ref or ""
        ):
            await sponsorships.disputed(self._database, event.event_id, sponsors.disputed(facts))
            return Applied("applied")
        if event.organization_id is None:
            return await self._settle(event, Applied("ignored", "no_organization"))
        return await self._organization(event, event.organization_id, facts)

    async def _organization(
        self, event: WaitingEvent, organization_id: str, facts: Facts
    ) -> Applied:
        applied = Applied("stale")
        for _ in range(ROUNDS):
            try:
                told = await self._enquiry.complete(event, organization_id, facts)
                told = replace(told, is_over=await self._is_over(organization_id, facts))
            except Contradicted:
                return await self._settle(event, Applied("failed", "dispute_won_then_lost"))
            message = self._message(event, told)
            id = f"payment_event:{event.event_id}:{new_id('try')}"
            applied = await self._ask(organization(organization_id), message, id=id)
            if applied.state != "stale":
                break
        if applied.state == "stale":
            raise TimeoutError("the subscription moved on each time it was asked for")
        if applied.why == "no_organization":
            return await self._settle(event, applied)
        return applied

    async def _is_over(self, organization_id: str, facts: Facts) -> bool:
        """Tell whether the subscription of an event is known to have ended."""
        if not isinstance(facts, InvoiceFacts | SubscriptionFacts) or not facts.subscription_id:
            return False
        return await payment_events.has_ended(
            self._database, organization_id, facts.subscription_id
        )

    def _message(self, event: WaitingEvent, told: CurrentFacts) -> ApplyPaymentEvent:
        ids = _price_ids(told.facts) | ({told.next_price_id} if told.next_price_id else set())
        offers = ((id, plans.offer_of(self._price_ids, id)) for id in sorted(ids))
        return ApplyPaymentEvent(
            event.event_id,
            event.type,
            event.livemode,
            event.created_at,
            keep(told.facts),
            self._clock(),
            tuple(
                PricedOffer(id, offer.plan.code, offer.cadence.value)
                for id, offer in offers
                if offer is not None
            ),
            told.payment_ref,
            told.is_asked,
            told.asked_after,
            told.is_over,
            told.next_price_id,
        )

    async def _sponsor(self, event: WaitingEvent, facts: Facts) -> Applied:
        seen = sponsors.paid(event, facts)
        if seen is None:
            return await self._settle(event, Applied("ignored", "not_paid"))
        await sponsorships.observed(self._database, event.event_id, seen)
        return Applied("applied")

    async def _settle(self, event: WaitingEvent, applied: Applied) -> Applied:
        why = None if applied.why is None else applied.why[:200]
        state = EventState(applied.state)
        await payment_events.settle(self._database, event.event_id, state, why)
        return applied


def _mails_to_payee(facts: PayoutFacts, form: WireForm) -> Sequence[OutboxRow]:
    """Tell whose payout account it is; one of the platform's own is in the log alone."""
    if facts.account_id is None:
        return ()
    call = TellPeople(
        event=MailEvent.PAYOUT_FAILED,
        organization_id=None,
        about=facts.payout_id,
        facts={
            "account": facts.account_id,
            "minor": str(facts.amount_cents),
            "currency": facts.currency,
            "message": facts.failure_message or "",
        },
    )
    key = f"tell:{call.event}:{call.about}"
    return [row_of(Perform(call, key=key), ActorId("job", "mail"), key, form=form)]


class Enquiry:
    """Asks the processor for what an event leaves out, and only then."""

    def __init__(self, database: Database, processor: PaymentProcessor) -> None:
        self._database = database
        self._processor = processor

    async def complete(
        self, event: WaitingEvent, organization_id: str, facts: Facts
    ) -> CurrentFacts:
        """Complete what an event tells. Raises what the processor's port raises."""
        if isinstance(facts, InvoiceFacts) and facts.is_paid and not facts.has_all_lines:
            return CurrentFacts(await self._processor.invoice(facts.invoice_id))
        if isinstance(facts, SubscriptionFacts):
            told = await self._subscription(event, organization_id, facts)
            return replace(told, next_price_id=await self._next_price_id(told.facts))
        if isinstance(facts, RefundFacts | DisputeFacts):
            payment_ref = await self._payment_ref(organization_id, facts)
            if isinstance(facts, DisputeFacts):
                facts = await self._dispute(organization_id, payment_ref, facts)
            return CurrentFacts(facts, payment_ref)
        return CurrentFacts(facts)

    async def _subscription(
        self, event: WaitingEvent, organization_id: str, facts: SubscriptionFacts
    ) -> CurrentFacts:
        """Read the subscription where its event is no newer than what is known of it.

        Without an answer the event itself decides: of two of one second always the same stands.
        """
        seen_at = await subscriptions.seen_at(
            self._database, organization_id, facts.subscription_id
        )
        if facts.has_all_items and (seen_at is None or seen_at < event.created_at):
            return CurrentFacts(facts)
        try:
            now = await self._processor.subscription(facts.subscription_id)
        except (MissingCredential, ProcessorRefused):
            if not facts.has_all_items:
                raise
            return CurrentFacts(facts)
        return CurrentFacts(now, is_asked=True, asked_after=seen_at)

    async def _next_price_id(self, facts: Facts) -> str | None:
        """Read what waits for the end of the period, whoever put it there."""
        if not isinstance(facts, SubscriptionFacts) or facts.schedule_id is None:
            return None
        try:
            return await self._processor.next_price_id(facts.schedule_id)
        except (MissingCredential, ProcessorRefused):
            return None

    async def _payment_ref(
        self, organization_id: str, facts: RefundFacts | DisputeFacts
    ) -> str | None:
        """Name a payment as the ledger does: by its invoice where it paid for a subscription."""
        paid = facts.payment_ref or ""
        if facts.said.kind == CREDITS or facts.payment_intent_id is None:
            return paid
        known = await credits.payment(self._database, organization_id, paid)
        if known is not None and known.granted:
            return paid
        invoice_id = await payment_events.invoice_paid_by(
            self._database, organization_id, facts.payment_intent_id
        )
        if invoice_id is not None:
            return invoice_id
        invoice_id = await self._processor.invoice_of_payment(facts.payment_intent_id)
        if invoice_id is None:
            return paid
        invoice = await self._processor.invoice(invoice_id)
        return paid if invoice.subscription_id is None else invoice_id

    async def _dispute(
        self, organization_id: str, payment_ref: str | None, facts: DisputeFacts
    ) -> DisputeFacts:
        """AskOnce how a dispute ended, of which two ends are told."""
        known = await credits.payment(self._database, organization_id, payment_ref or "")
        told = disputes_of(known) if known else []
        ended = {one.status for one in told if one.id == facts.dispute_id} & TERMINAL
        if not ended or facts.standing not in TERMINAL - ended:
            return facts
        log.error("payments.dispute_ended_twice", dispute_id=facts.dispute_id)
        now = await self._processor.dispute(facts.dispute_id)
        if "won" in ended and now.standing != "won":
            raise Contradicted(facts.dispute_id)
        return replace(facts, status=now.status, disputed_cents=now.disputed_cents)


def _turn(one: tuple[WaitingEvent, int]) -> tuple[datetime, bool]:
    """Order what waits for one organization: a payment of the same second before its reversal."""
    event, _ = one
    return event.created_at, event.type in REVERSALS


def _price_ids(facts: Facts) -> set[str]:
    if isinstance(facts, InvoiceFacts):
        return {line.price_id for line in facts.lines if line.price_id is not None}
    if isinstance(facts, SubscriptionFacts):
        return {item.price_id for item in facts.items}
    return set()
