"""An organization on paper: the real actor takes its turns, and rows are kept as on disk.

No database, so that thousands of histories run in seconds; a process that dies forgets all but rows.
"""

import random
from collections.abc import Iterable
from dataclasses import asdict, replace
from datetime import date, datetime
from itertools import count
from operator import attrgetter
from typing import Any, cast

from tests.actors.organization.books import remembered
from tests.actors.organization.pure_organization import OFFERS
from tests.campaigns.money.bank import Bank
from tests.campaigns.money.proofs import ENDED, Happened
from tests.campaigns.money.rows import Rows
from tests.campaigns.money.steps import Answer, Applied, Ask, Send, Step
from tolsey.actors.organization.actor import OrganizationActor
from tolsey.actors.organization.billing.messages import ApplyPaymentEvent
from tolsey.actors.organization.billing.payment_events.catalogue import keep, read
from tolsey.actors.organization.billing.payment_events.envelopes import open_envelope
from tolsey.actors.organization.billing.payment_events.reversals import DisputeFacts, RefundFacts
from tolsey.actors.organization.billing.payment_events.subscriptions import SubscriptionFacts
from tolsey.actors.organization.ledger.part import opened
from tolsey.actors.organization.ledger.payments import disputes_of
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Refusal
from tolsey.runtime.errors import Duplicate
from tolsey.storage.database import Database
from tolsey.storage.money import payment_events
from tolsey.storage.money.credits import Books
from tolsey.storage.records.money.credits import (
    CreditAccount,
    CreditedPayment,
    CreditEntry,
    CreditHold,
    CreditLot,
    CreditPosting,
    DailyBonus,
    MonthlyReset,
)
from tolsey.storage.records.money.payment_event import PaymentEventSettled
from tolsey.storage.records.money.subscription import OrganizationTerms, SubscriptionRecord
from tolsey.storage.runtime import journal  # noqa: F401 - they say where records go
from tolsey.storage.tables import TABLES


class Died(Exception):  # noqa: N818 - what befell the process
    """The process is gone; `done` tells whether its last turn was on disk."""

    def __init__(self, *, done: bool) -> None:
        super().__init__()
        self.done = done


class Paper:
    """One organization and its rows; `crashes` is how often its process dies in a turn."""

    def __init__(self, bank: Bank, since: datetime, luck: random.Random, crashes: float) -> None:
        self.bank = bank
        self.crashed = 0
        self._since = since
        self._luck = luck
        self._crashes = crashes
        self._tables: dict[type[Any], dict[Any, Any]] = {}
        self._inbox: dict[str, tuple[Happened, bool] | None] = {}
        self._over: set[str] = set()
        self._settled: list[PaymentEventSettled] = []
        self._numbers = count()
        self._actor = OrganizationActor(cast("Database", self))
        self.state: OrganizationState
        self._wake()

    def do(self, step: Step, at: datetime) -> Answer:
        """Do a step as the service would, at a moment."""
        before = self._apply(at)
        if isinstance(step, Send):
            for event, old in step.events:
                if self._dies():
                    continue  # nothing was kept and nothing answered: it is sent again
                self._inbox.setdefault(event.id, (event, old))
            after = () if self._dies() else self._apply(at)
            return Answer(before=before, after=after)
        assert isinstance(step, Ask)
        plan = self.plan
        return replace(self._ask(step, before), plan=plan)

    def rows(self) -> Rows:
        """Show the books."""
        (account, *_) = [*self._all(CreditAccount), None]
        return Rows(
            account,
            *map(self._all, (CreditEntry, CreditPosting, CreditLot, CreditHold)),
            *map(self._all, (CreditedPayment, MonthlyReset, DailyBonus)),
        )

    @property
    def plan(self) -> str:
        """Name the plan as it is written."""
        terms = [*self._all(OrganizationTerms)]
        return terms[-1].plan if terms else "free"

    @property
    def subscription(self) -> SubscriptionRecord | None:
        """Show what is paid for, as it is written."""
        found: list[SubscriptionRecord] = self._all(SubscriptionRecord)
        return found[0] if found else None

    async def fetch(self, _: str, organization_id: str, payment_ref: str) -> list[Any]:
        """Answer what a turn asks of its database: what is known of a payment."""
        found = self._tables.get(CreditedPayment, {}).get((organization_id, payment_ref))
        return [] if found is None else [asdict(found)]

    async def fetchrow(self, sql: str, *_: str) -> Any:
        """Answer what has ended: it is said in the message."""
        assert sql == payment_events.HAS_ENDED

    def _ask(self, step: Ask, before: tuple[Applied, ...]) -> Answer:
        try:
            return Answer("reply", self._take(step.message), before)
        except Died as error:
            if error.done:
                return Answer("lost", None, before)
            return self._ask(step, before)  # whoever asked asks again
        except Duplicate:
            return Answer("duplicate", None, before)
        except Refusal as error:
            return Answer("refused", error.code, before)

    def _apply(self, at: datetime) -> tuple[Applied, ...]:
        """Apply what waits, in the order in which it happened."""
        done: list[Applied] = []
        waiting = [one for one in self._inbox.values() if one is not None]
        for event, old in sorted(waiting, key=lambda one: one[0].created):
            message = self._message(event, old, at)
            try:
                applied = self._take(message)
            except Died as error:
                if not error.done:
                    break
                applied = self._settled[-1]
            self._inbox[event.id] = None
            if event.type == ENDED:
                self._over.add(event.body["id"])
            done.append(Applied(event.id, at, applied.state, applied.why))
        return tuple(done)

    def _message(self, event: Happened, old: bool, at: datetime) -> ApplyPaymentEvent:
        envelope = open_envelope(event.sent(old=old))
        facts = read(envelope)
        asked, payment_ref, seen_at = False, None, None
        if isinstance(facts, SubscriptionFacts):
            known = self.state.subscription
            if known is not None and known.subscription_id == facts.subscription_id:
                seen_at = known.seen_at
            if seen_at is not None and seen_at >= envelope.created_at and self._luck.random() < 0.5:
                now = self.bank.subscription_now(facts.subscription_id)
                body = {**event.sent(old=False), "data": {"object": now}}
                asked, facts = True, read(open_envelope(body))
        if isinstance(facts, RefundFacts | DisputeFacts):
            intent = facts.payment_intent_id or ""
            payment_ref = self.bank.invoice_of(intent) or intent
        kept = self._tables.get(CreditedPayment, {}).get((self.bank.organization, payment_ref))
        reported = disputes_of(kept) if kept else []
        if isinstance(facts, DisputeFacts) and any(one.id == facts.dispute_id for one in reported):
            body = {
                **event.sent(old=False),
                "data": {"object": self.bank.dispute_now(facts.dispute_id)},
            }
            asked, facts = True, read(open_envelope(body))
        return ApplyPaymentEvent(
            event_id=event.id,
            type=event.type,
            livemode=envelope.livemode,
            created_at=envelope.created_at,
            facts=keep(facts),
            at=at,
            offers=OFFERS,
            payment_ref=payment_ref,
            is_asked=asked,
            asked_after=seen_at if asked else None,
            is_over=getattr(facts, "subscription_id", None) in self._over,
        )

    def _take(self, message: Any) -> Any:
        """Take a turn and write it down, as the runtime and its commit statement do."""
        made = self._actor.turns[type(message)].method(self.state, message)
        decision = _awaited(made) if hasattr(made, "send") else made
        if decision.state is self.state and not decision.records:
            return decision.reply
        if self._dies():
            raise Died(done=False)
        records = [*self._actor.changes(self.state, decision.state), *decision.records]
        for one in decision.records:
            table = TABLES[type(one)]
            if table.claim and table.key_of(one) in self._tables.get(type(one), {}):
                raise Duplicate(type(message).__name__)
        self._write(records)
        self.state = decision.state
        if self._dies():
            raise Died(done=True)
        return decision.reply

    def _dies(self) -> bool:
        if self._luck.random() >= self._crashes:
            return False
        self.crashed += 1
        self._wake()
        return True

    def _write(self, records: Iterable[Any]) -> None:
        """Write a commit: of several rows of one key the newest, then the last."""
        fresh: dict[tuple[type[Any], Any], Any] = {}
        for one in records:
            table = TABLES[type(one)]
            if isinstance(one, PaymentEventSettled):
                self._settled.append(one)
            key = table.key_of(one) if table.key else next(self._numbers)
            other = fresh.get((type(one), key))
            if other is not None and table.newest:
                rank = attrgetter(*table.newest)
                if rank(other) > rank(one):
                    continue
            fresh[type(one), key] = one
        for (kind, key), one in fresh.items():
            self._tables.setdefault(kind, {})[key] = one

    def _all(self, kind: type[Any]) -> list[Any]:
        return [*self._tables.get(kind, {}).values()]

    def _wake(self) -> None:
        """Lose the memory, and read what is open from the rows."""
        lots = [lot for lot in self._all(CreditLot) if lot.remaining]
        account = next(iter(self._all(CreditAccount)), None)
        books = Books(
            account=account,
            lots=lots,
            holds=[one for one in self._all(CreditHold) if one.closed_at is None],
            payments=remembered(self._all(CreditedPayment), lots, account),
            bonus_day=max((one.day for one in self._all(DailyBonus)), default=date.min),
        )
        self.state = OrganizationState(
            self.bank.organization,
            self.plan,
            credits=opened(books),
            created_at=self._since,
            subscription=self.subscription,
        )


def _awaited(made: Any) -> Any:
    """Run a turn that gathers: on paper nothing keeps it waiting."""
    try:
        made.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a turn waits for something that is not on paper")
