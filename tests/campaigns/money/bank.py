"""One customer's life at the payment processor: what people do there, and what time does."""

from datetime import datetime

from tests.actors.organization import processor
from tests.actors.organization.pure_organization import prorated
from tests.campaigns.money.proofs import (
    ALLOWANCES,
    CENT,
    ENDED,
    PLANS,
    Ended,
    Payment,
    Plan,
    Refunded,
    moment,
    month_later,
)
from tests.campaigns.money.teller import Teller, cents_of, price_of

HOUR = 3_600
LAST_DAYS = 28
"""From this day on a month that is bought may end before one that was bought the day before."""


class Bank(Teller):
    """Makes things happen; what is to be sent of them gathers in `outbox`."""

    # What people do.

    def buy_credits(self) -> None:
        """Buy credits, with a card or by a debit that is still on its way."""
        cents, n = self.chance.randrange(500, 9_000), next(self._numbers)
        said = self._ours(kind="credits", credits_cents=str(cents))
        intent = f"pi_{self.organization}_{n}"
        paid = self._luck(0.8)
        payment = Payment(intent, intent, cents + cents // 10, said, paid, cents)
        self.payments.append(payment)
        session = processor.checkout(
            id=f"cs_{self.organization}_{n}",
            customer=self._customer,
            payment_intent=intent,
            payment_status="paid" if paid else "unpaid",
            amount_subtotal=cents,
            amount_total=payment.total,
            metadata=said,
        )
        self._tell("checkout.session.completed", session, self._bought(payment) if paid else None)
        if paid:
            self._arrived(payment)

    def arrive(self) -> None:
        """Let a debit that was on its way arrive, or fail."""
        waiting = [one for one in self.payments if not one.paid and one.cents]
        if not waiting:
            return
        payment = self.chance.choice(waiting)
        if self._luck(0.3):
            payment.cents = 0
            body = self._intent(payment, status="requires_payment_method", amount_received=0)
            self._tell("payment_intent.payment_failed", body)
            return
        payment.paid = True
        self._arrived(payment)

    def subscribe(self) -> None:
        """Buy a plan."""
        if self.plan is not None:
            return
        plan, yearly = self.chance.choice(("pro", *PLANS[1:])), self._luck(0.2)
        n = next(self._numbers)
        self.plan = Plan(f"sub_{self.organization}_{n}", plan, yearly, self.at, self._after(yearly))
        session = processor.checkout(
            id=f"cs_{self.organization}_{n}",
            mode="subscription",
            customer=self._customer,
            subscription=self.plan.id,
            payment_intent=None,
            metadata=self._ours(plan=plan),
        )
        if moment(self.at).day >= LAST_DAYS:
            self.plan.second_thoughts = self.at + self.chance.randrange(6, 24) * HOUR
        self._tell("customer.subscription.created", self._subscription(status="incomplete"))
        self._tell("customer.subscription.updated", self._subscription())
        self._tell("checkout.session.completed", session)
        self._invoice("subscription_create", self._line())

    def upgrade(self) -> None:
        """Change to a dearer plan at once: mostly for a whole period, else for the rest of one."""
        plan = self.plan
        if plan is None or plan.status != "active" or plan.plan == PLANS[-1] or plan.ending:
            return
        before, plan.plan, plan.next_plan = plan.plan, self.chance.choice(_above(plan.plan)), None
        left = max(1, (plan.ends - self.at) * 100 // (plan.ends - plan.starts))
        unused = prorated(
            price_of(before, plan.yearly), -cents_of(before, plan) * left // 100, self.at
        )
        anew = self._luck(0.5) or plan.yearly or plan.owed is not None
        if anew:
            plan.starts, plan.ends = self.at, self._after(plan.yearly)
            charge = self._line()
            allowance = ALLOWANCES[plan.plan]
        else:
            cents = cents_of(plan.plan, plan) * left // 100
            charge = prorated(price_of(plan.plan, plan.yearly), cents, self.at, plan.ends)
            allowance = min(ALLOWANCES[plan.plan], ALLOWANCES[before] + cents * CENT)
        self._tell("customer.subscription.updated", self._subscription())
        if self._luck(0.15):
            plan.owed = self._owe("subscription_update", unused, charge)
            if not anew:
                plan.owed = None  # given up: the next period is paid at the new price
        else:
            self._invoice("subscription_update", unused, charge, allowance=allowance)

    def downgrade(self) -> None:
        """Change to a cheaper plan when the period is over."""
        plan = self.plan
        if plan is not None and plan.status == "active" and plan.plan != PLANS[1]:
            plan.next_plan = self.chance.choice(PLANS[1 : PLANS.index(plan.plan)])
            self._tell("customer.subscription.updated", self._subscription(schedule="sched_1"))

    def cancel(self) -> None:
        """End the plan with its period."""
        if self.plan is not None and self.plan.status == "active":
            self.plan.ending = True
            self._tell("customer.subscription.updated", self._subscription())

    def refund(self) -> None:
        """Give a part of a payment back, or what is left of it."""
        paid = [one for one in self._reversible if one.refunded < one.total]
        if not paid:
            return
        payment = self.chance.choice(paid)
        left = payment.total - payment.refunded
        payment.refunded += self.chance.choice((left, self.chance.randint(1, left)))
        body = processor.charge(
            id=payment.charge,
            payment_intent=payment.intent,
            customer=self._customer,
            amount=payment.total,
            amount_refunded=payment.refunded,
            metadata=payment.metadata,
        )
        self._tell("charge.refunded", body, Refunded(payment.name, payment.total, payment.refunded))

    def dispute(self) -> None:
        """Open a dispute or an inquiry of a payment, of a part of it or of all."""
        paid = [one for one in self._reversible if len(one.disputes) < 2]
        if not paid:
            return
        payment = self.chance.choice(paid)
        amount = self.chance.choice((payment.total, self.chance.randint(1, payment.total)))
        id = f"dp_{self.organization}_{next(self._numbers)}"
        inquiry = self._luck(0.3)
        status = "warning_needs_response" if inquiry else "needs_response"
        payment.disputes[id] = [amount, status]
        self._disputed(payment, id, "charge.dispute.created", "open")
        if self._luck(0.4):
            self.judge()

    def judge(self) -> None:
        """End a dispute; one that was lost may be won after all."""
        found = [
            (payment, id)
            for payment in self.payments
            for id, (_, status) in payment.disputes.items()
            if status.endswith("needs_response") or (status == "lost" and self._luck(0.3))
        ]
        if not found:
            return
        payment, id = self.chance.choice(found)
        was = payment.disputes[id][1]
        if was.startswith("warning"):
            end = "warning_closed"
        else:
            end = "won" if was == "lost" else self.chance.choice(("won", "lost"))
        payment.disputes[id][1] = end
        self._disputed(payment, id, "charge.dispute.closed", "lost" if end == "lost" else "won")

    # What time does.

    def advance(self, at: datetime) -> None:
        """Let time pass: periods end and are renewed, or not."""
        now = int(at.timestamp())
        if self.plan is not None and (self.plan.second_thoughts or now) < now:
            self.at = max(self.at, self.plan.second_thoughts or 0)
            self.plan.second_thoughts = None
            self.upgrade()
        while (plan := self.plan) is not None and plan.ends <= now:
            self.at = max(self.at, plan.ends)
            if plan.ending or plan.owed is not None:
                self._end(plan)
                continue
            plan.plan, plan.next_plan = plan.next_plan or plan.plan, None
            plan.starts, plan.ends = plan.ends, self._after(plan.yearly, plan.ends)
            if self._luck(0.15):
                plan.status = "past_due"
                self._tell("customer.subscription.updated", self._subscription())
                plan.owed = self._owe("subscription_cycle", self._line())
            else:
                self._tell("customer.subscription.updated", self._subscription())
                self._invoice("subscription_cycle", self._line())
        self.at = max(self.at, now)

    def settle_owed(self) -> None:
        """Pay an invoice that is owed, or let the plan end for it."""
        plan = self.plan
        if plan is None or plan.owed is None:
            return
        if plan.status == "past_due" and self._luck(0.3):
            self._end(plan)
            return
        plan.status = "active"
        self._tell("customer.subscription.updated", self._subscription())
        invoice, plan.owed = plan.owed[0], None
        self._invoice("subscription_cycle", self._line(), id=invoice)

    @property
    def right_plan(self) -> str:
        """Name the plan that the customer has a right to now."""
        plan = self.plan
        if plan is None or plan.paid_plan is None:
            return "free"
        return min(plan.paid_plan, plan.plan, key=PLANS.index)

    @property
    def credits_sold(self) -> int:
        """Tell the micro-USD of credits that were paid for before tax."""
        return sum(one.cents * CENT for one in self.payments if one.paid and one.cents)

    def month(self, starts: datetime, ends: datetime, at: datetime) -> tuple[datetime, datetime]:
        """Tell from when until when the month of a paid year stands that a moment is in."""
        months = 1
        while month_later(starts, months) <= at:
            months += 1
        return month_later(starts, months - 1), min(ends, month_later(starts, months))

    def allowance(self, plan: str) -> int:
        """Tell what a month of a plan brings."""
        return ALLOWANCES[plan]

    def _end(self, plan: Plan) -> None:
        plan.status, plan.paid_plan = "canceled", None
        over = self._subscription(ended_at=self.at)
        self._tell(ENDED, over, Ended(plan.id))
        self.plan = None


def _above(plan: str) -> tuple[str, ...]:
    return PLANS[PLANS.index(plan) + 1 :]
