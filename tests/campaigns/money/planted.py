"""Bugs planted on purpose in the code that moves money: each must be caught, or the proof is none.

The first ten are those of rules/credits#dangers; `python -m tests.campaigns.money.planted` lists all
with what catches them, `--run` runs that.
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.actors.organization import test_plan_calls
from tests.actors.organization.billing import (
    test_applying,
    test_applying_in_any_order,
    test_applying_payments,
    test_changes,
)
from tests.actors.organization.books import Ledger
from tests.actors.organization.ledger import test_bonuses, test_ledger, test_old_invoices
from tests.actors.organization.pure_organization import PureOrganization
from tests.campaigns.money.catching import (
    BUGS,
    a_process_that_dies_before_its_turn,
    a_subscriber,
    caught_by,
    histories_on_paper,
    lives_whose_process_loses_its_slots,
    of_pro,
    same,
    sender,
    swapped,
)
from tests.http.webhooks.payments import test_keeping, test_receiver
from tolsey.actors.organization import plans
from tolsey.actors.organization.billing import applying, changes, subscription
from tolsey.actors.organization.billing.payment_events import invoices
from tolsey.actors.organization.billing.payment_events.fields import reference
from tolsey.actors.organization.billing.payment_events.metadata import metadata
from tolsey.actors.organization.billing.processor_calls import ProcessorCalls
from tolsey.actors.organization.ledger import bonuses, entries, lots, open_lots, payments
from tolsey.actors.organization.ledger.credits import twelve_months_after
from tolsey.actors.organization.ledger.entries import Draft
from tolsey.actors.organization.ledger.messages import GrantCredits, ResetAllowance
from tolsey.actors.organization.operations import under_way
from tolsey.runtime.ids import new_id
from tolsey.storage.money import payment_events
from tolsey.storage.money.payment_events import Taken
from tolsey.storage.records.money.credits import CreditEntry, DailyBonus
from tolsey.storage.records.money.payment_event import EventState, PaymentEvent
from tolsey.storage.runtime import commit_statement, outbox
from tolsey.storage.tables import TABLES

__all__ = ["BUGS"]

TESTS = Path(__file__).with_name("test_planted.py")


# The ten of rules/credits#dangers.


@caught_by(test_applying.test_an_upgrade_for_the_last_day_buys_no_whole_month, PureOrganization)
def upgrade_arbitrage() -> Iterator[None]:
    """An upgrade's prorated invoice for the last days tops up to the whole month's allowance."""

    def whole(_: Any, __: Any, bought: Any, ___: Any) -> int:
        return plans.monthly_allowance(bought.offer.plan.code, None)

    with swapped(applying, "_allowance", whole):
        yield


@caught_by(
    test_applying_payments.test_a_purchase_is_granted_once_and_before_tax_whoever_tells_of_it,
    PureOrganization,
)
def a_purchase_for_each_event() -> Iterator[None]:
    """A purchase is granted for its checkout, and for its payment again."""

    def grant(turn: Any, facts: Any, payment_ref: str, _: int) -> Any:
        at, cents = turn.message.at, facts.said.credits_cents
        key = f"purchase:{turn.message.event_id}"
        amount = cents * plans.MICRO_PER_CENT
        ends = twelve_months_after(at)
        message = GrantCredits(
            key=key, kind="purchase", amount=amount, at=at, expires_at=ends, reference=payment_ref
        )
        turn.take(lots.grant(turn.state, message))
        return applying.APPLIED

    with swapped(applying, "_purchase", grant):
        yield


@caught_by(
    test_applying_payments.test_a_purchase_is_granted_once_and_before_tax_whoever_tells_of_it,
    PureOrganization,
)
def credits_for_the_tax() -> Iterator[None]:
    """Credits are granted for the total with tax."""
    purchase = applying._purchase

    def taxed(turn: Any, facts: Any, payment_ref: str, total_cents: int) -> Any:
        said = replace(facts.said, credits_cents=total_cents)
        return purchase(turn, replace(facts, said=said), payment_ref, total_cents)

    with swapped(applying, "_purchase", taxed):
        yield


@caught_by(test_applying.test_an_upgrade_that_is_not_paid_brings_nothing, PureOrganization)
def credits_before_the_payment() -> Iterator[None]:
    """A subscription that is updated to a dearer plan tops up before its invoice is paid."""
    observe = applying._subscription

    def eager(turn: Any, facts: Any) -> Any:
        applied = observe(turn, facts)
        item = facts.items[0]
        offer = turn.offers.get(item.price_id)
        if offer is not None:
            allowance = plans.monthly_allowance(offer.plan.code, None)
            key = f"allowance:{turn.message.event_id}"
            message = ResetAllowance(
                key=key,
                plan=offer.plan.code,
                period_start=item.period_start,
                period_end=item.period_end,
                allowance=allowance,
                at=turn.message.at,
            )
            turn.take(lots.reset_allowance(turn.state, message))
        return applied

    with swapped(applying, "_subscription", eager):
        yield


@caught_by(test_ledger.test_refunds_are_cumulative_and_rounded_once, Ledger)
def refunds_are_added_up() -> Iterator[None]:
    """Cumulative refunds are added to one another."""
    join = payments._join

    def added(known: Any, seen: Any) -> Any:
        return replace(join(known, seen), refunded=known.refunded + seen.refunded)

    with swapped(payments, "_join", added):
        yield


# On paper the processor is asked how a known dispute is before its next event counts: only the rule is left.
@caught_by(
    test_ledger.test_the_end_of_a_dispute_may_be_heard_of_before_its_beginning,
    Ledger,
    "won",
    on_paper=False,
)
def the_last_word_of_a_dispute_counts() -> Iterator[None]:
    """A dispute that is heard to be won before it is heard to be open is clawed back for good."""
    with patch.dict(payments.RANKS, {"open": 0, "lost": 0, "won": 0}):
        yield


@caught_by(test_ledger.test_a_hold_left_alone_ends_at_the_cost_it_last_reported, Ledger)
def holds_leak() -> Iterator[None]:
    """A hold whose process died between its commit and its settlement pins its credits for ever."""
    lapsed = entries.lapsed

    def forgetful(state: Any, at: Any, keep: str | None = None) -> Any:
        del keep
        holds = {
            id: replace(one, lease_until=max(one.lease_until, at.replace(year=9000)))
            for id, one in state.credits.holds.items()
        }
        credits = replace(state.credits, holds=holds)
        return lapsed(state.with_credits(credits), at)

    with swapped(entries, "lapsed", forgetful), swapped(lots, "lapsed", forgetful):
        yield


@caught_by(lives_whose_process_loses_its_slots, same, disk=True, on_paper=False)
def no_fence() -> Iterator[None]:
    """A process that lost an organization goes on writing to its books."""
    with swapped(commit_statement, "FENCE", ""):
        yield


@caught_by(
    test_applying.test_the_first_paid_invoice_brings_the_plan_and_its_allowance, PureOrganization
)
def only_old_invoices_are_read() -> Iterator[None]:
    """An invoice's subscription is looked for where it stood before 2025."""

    def old(body: Any, _: Any) -> Any:
        found = reference(body, "subscription")
        return found, metadata(body)

    with swapped(invoices, "_subscription", old):
        yield


@caught_by(
    *(test_receiver.test_a_paid_purchase_is_kept_as_new_before_the_answer, sender),
    disk=True,
    on_paper=False,
)
def answered_before_it_is_kept() -> Iterator[None]:
    """An event is acknowledged before it is on disk, and a crash comes between."""

    async def soon(_: Any, event: PaymentEvent) -> Taken:
        return Taken(EventState.NEW, event.claimed_by, 0)

    with swapped(payment_events, "take", soon):
        yield


# Twelve of our own.


@caught_by(
    *(test_keeping.test_a_dispute_before_its_payment_waits_and_is_found, sender),
    disk=True,
    on_paper=False,
)
def nobodys_events_are_dropped() -> Iterator[None]:
    """An event whose organization is not known yet is ignored instead of parked."""
    dropping = payment_events.TAKE.replace("'parked'", "'ignored'")
    assert dropping != payment_events.TAKE
    with swapped(payment_events, "TAKE", dropping):
        yield


@caught_by(test_ledger.test_what_expires_first_is_spent_first_then_what_is_oldest, Ledger)
def the_newest_is_spent_first() -> Iterator[None]:
    """What expires last is spent first."""

    def reverse(lot: Any) -> Any:
        return -lot.expires_at.timestamp(), -lot.granted_at.timestamp(), lot.id

    with swapped(open_lots, "spending_order", reverse):
        yield


@caught_by(test_ledger.test_a_dispute_takes_back_what_was_spent_and_later_grants_pay_first, Ledger)
def debts_are_forgotten() -> Iterator[None]:
    """The next entry forgets what is owed, and no posting says so."""
    close = Draft.close

    def forgiving(self: Draft, key: str, kind: str, reference: str | None = None) -> Any:
        if not any(credit == "debt" for _, credit, _ in self.moves):
            self.debt = 0
        return close(self, key, kind, reference)

    with swapped(Draft, "close", forgiving):
        yield


@caught_by(test_ledger.test_the_first_pro_month_leaves_49_dollars_and_max_tops_up_to_149, Ledger)
def every_invoice_of_a_period_grants_all() -> Iterator[None]:
    """A second invoice of a period, of whatever tier, grants its whole allowance beside the first."""

    def whole(_: int, allowance_micro: int) -> int:
        return allowance_micro

    with swapped(plans, "top_up", whole):
        yield


@caught_by(test_ledger.test_expiry_leaves_what_is_pinned_until_it_is_free_again, Ledger)
def what_is_pinned_expires() -> Iterator[None]:
    """The sweep lets expire what a running hold has pinned."""

    def greedy(self: Draft, lot: Any) -> None:
        self._move("expired", f"lot:{lot.id}", lot.remaining)
        self._put(lot, 0, 0)
        self.free -= lot.free

    with swapped(Draft, "expire_lot", greedy):
        yield


@caught_by(test_ledger.test_a_share_of_a_refund_is_rounded_up, Ledger)
def refunds_are_rounded_down() -> Iterator[None]:
    """A share of a refund is rounded in the customer's favour."""
    removals = payments.removals

    def down(payment: Any) -> tuple[int, int]:
        refund, dispute = removals(payment)
        exact = payment.granted * min(payment.refunded, payment.total or payment.refunded)
        return exact // (payment.total or 1) if payment.refunded else refund, dispute

    with swapped(payments, "removals", down):
        yield


@caught_by(test_bonuses.test_the_job_grants_a_plan_its_bonus_once_a_day_for_twelve_months, of_pro)
def a_bonus_at_every_turn() -> Iterator[None]:
    """The day's bonus is granted again by everyone who comes: the day is not remembered."""
    given = bonuses._given

    def again(draft: Draft, day: Any, amount: int) -> Any:
        known = draft.bonus_day
        after, records = given(draft, day, amount)
        records = [
            replace(one, key=f"{one.key}:{one.seq}") if isinstance(one, CreditEntry) else one
            for one in records
            if not isinstance(one, DailyBonus)
        ]
        return after.with_credits(replace(after.credits, bonus_day=known)), records

    with swapped(bonuses, "_given", again):
        yield


@caught_by(
    test_applying_payments.test_a_checkout_whose_money_is_on_its_way_grants_nothing_yet,
    PureOrganization,
)
def unpaid_checkouts_are_granted() -> Iterator[None]:
    """A completed checkout is granted though its bank debit has not arrived."""
    checkout = applying._checkout

    def trusting(turn: Any, facts: Any) -> Any:
        return checkout(turn, replace(facts, is_paid=True))

    with swapped(applying, "_checkout", trusting):
        yield


@caught_by(histories_on_paper)
def keys_are_not_claimed() -> Iterator[None]:
    """A spending that is asked again after its answer was lost is spent twice."""
    unclaimed = replace(TABLES[CreditEntry], claim=False)
    with patch.dict(TABLES, {CreditEntry: unclaimed}):
        yield


@caught_by(a_process_that_dies_before_its_turn, sender, disk=True, on_paper=False)
def messages_are_handed_on_in_memory() -> Iterator[None]:
    """An event is kept without its message, and a crash comes before the turn of that."""

    async def forgotten(*_: object) -> None:
        """Write nothing."""

    with swapped(outbox, "put", forgotten):
        yield


@caught_by(
    test_applying_in_any_order.test_an_upgrade_at_a_months_end_brings_its_plan_and_its_credits
)
def the_period_that_ends_last_is_the_newest() -> Iterator[None]:
    """Of two paid periods the one that ends later counts, though it began before the other."""
    period = subscription._period

    def ends_earlier(draft: Draft, message: ResetAllowance) -> bool:
        return draft.period_end is not None and message.period_end < draft.period_end

    def by_end(one: Any) -> Any:
        began, rank, until, *rest = period(one)
        return until, rank, began, *rest

    with swapped(lots, "_is_older", ends_earlier), swapped(subscription, "_period", by_end):
        yield


@caught_by(test_old_invoices.test_a_month_that_nobody_used_and_that_is_over_is_nobodys_debt)
def what_expired_is_owed() -> Iterator[None]:
    """Reversing an invoice whose period is over takes what a newer one brought, as it did at first."""

    def owing(draft: Any, payment: Any, part: Any, share: int, account: str) -> Any:
        more, lot = share - part.removed, payments._lot(draft, payment, part)
        own = payment.payment_ref
        if more > 0:
            draft.owe(draft.burn(more, account, lambda one: one.reference == own), account)
        elif draft.lapses_at(lot) <= draft.at or payments._is_reset(draft, lot):
            id_ = f"restored:{draft.seq}:{part.lot_id}"
            ends = twelve_months_after(draft.at)
            longer = replace(lot, id=id_, kind="adjustment", remaining=0, amount=-more)
            draft.refill(replace(longer, expires_at=ends), -more, account)
        else:
            draft.refill(lot, -more, account)
        return replace(part, removed=share)

    with swapped(payments, "_reversed", owing):
        yield


# Five of changes of a plan.


@caught_by(
    test_changes.test_whoever_asks_is_told_of_a_failure_when_what_waited_is_back,
    *(test_changes.before_pro, "max_20x", test_changes.DECLINED),
    on_paper=False,
)
def what_waited_is_forgotten() -> Iterator[None]:
    """A downgrade that made way for an upgrade is not put back when the card is declined."""
    with swapped(changes, "_undo", lambda *_: None):
        yield


@caught_by(
    *(test_changes.test_an_upgrade_is_one_call_that_takes_off_what_waits, test_changes.before_pro),
    on_paper=False,
)
def a_key_for_each_request() -> Iterator[None]:
    """An upgrade is named by who asks for it: asked for again before its event is told, it is paid again."""
    with swapped(changes, "_upgrade_key", lambda *_: new_id("upgrade")):
        yield


@caught_by(
    test_changes.test_only_one_change_is_under_way_and_who_asks_for_it_again_waits_with_the_first,
    test_changes.max_5x,
    on_paper=False,
)
def two_changes_at_once() -> Iterator[None]:
    """A cancellation begins while an upgrade is on its way."""

    def forgetful(state: Any, message: Any, kept: Any) -> Any:
        return under_way.known(state, message.operation_id, kept)

    with swapped(changes, "_known", forgetful):
        yield


@caught_by(
    test_plan_calls.test_an_upgrade_that_was_made_is_found_by_whoever_does_not_know_of_it,
    a_subscriber,
    disk=True,
    on_paper=False,
)
def upgrades_are_sent_again_blindly() -> Iterator[None]:
    """What a process had sent when it was killed is sent again, though its key may be forgotten."""

    async def blind(_: ProcessorCalls, __: Any) -> None:
        return None

    with swapped(ProcessorCalls, "look_for_upgrade", blind):
        yield


@caught_by(
    test_plan_calls.test_an_upgrade_is_not_charged_when_what_was_shown_is_long_ago,
    a_subscriber,
    disk=True,
    on_paper=False,
)
def late_upgrades_are_charged() -> Iterator[None]:
    """An upgrade is charged when the processor is back, whatever it costs by then."""
    upgrade = ProcessorCalls.upgrade

    async def patient(self: ProcessorCalls, call: Any) -> Any:
        return await upgrade(self, replace(call, until=self._clock()))

    with swapped(ProcessorCalls, "upgrade", patient):
        yield


def main(*options: str) -> int:
    """List the planted bugs, or run what catches them."""
    for bug in BUGS:
        print(f"{bug.number:2} {bug.name}: {bug.wrong}\n   caught by {bug.test}")  # noqa: T201 - the list is what it is for
    if "--run" not in options:
        return 0
    command = [sys.executable, "-m", "pytest", "-v", "-k", "catches_it or finds_it", str(TESTS)]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
