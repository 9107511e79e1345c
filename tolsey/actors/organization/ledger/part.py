"""The credits of an organization: what of the books is in memory, and who writes in them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeVar

from rpds import HashTrieMap

from tolsey.actors.organization.ledger import answers, bonuses, credits, holds, lots, payments
from tolsey.actors.organization.ledger.answers import CheckAnswer
from tolsey.actors.organization.ledger.credits import Credits
from tolsey.actors.organization.ledger.messages import (
    AdjustCredits,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    GrantDailyBonus,
    HoldCredits,
    PaymentObserved,
    ReadCredits,
    ReleaseHold,
    ResetAllowance,
    SettleHold,
    SpendCredits,
)
from tolsey.actors.organization.ledger.open_lots import OpenLots
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import KindPart, Turn, gathers, on
from tolsey.runtime.decision import Decision
from tolsey.runtime.messages import Message
from tolsey.storage.chat import generations
from tolsey.storage.database import Database
from tolsey.storage.money import credits as credit_rows
from tolsey.storage.money.credits import Books

Asked = TypeVar("Asked", bound=Message[Any])
Reply = TypeVar("Reply")

PAYMENT: Final = attrgetter("payment_ref")
"""The payment that a message names."""


class Ledger(KindPart[OrganizationState]):
    """Credits and everything that grants, spends, pins or takes them back."""

    owns: ClassVar[tuple[str, ...]] = ("credits",)

    def __init__(self, database: Database) -> None:
        self._database = database
        paid_with = attrgetter("reference")
        self.decides = (
            on(SpendCredits, lots.spend),
            on(HoldCredits, holds.hold),
            on(ExtendHold, holds.extend),
            on(SettleHold, holds.settle),
            on(ReleaseHold, holds.release),
            on(ReadCredits, lots.read),
            on(ExpireCredits, lots.expire),
            on(AdjustCredits, lots.adjust),
            on(GrantDailyBonus, bonuses.grant),
            about_payment(database, GrantCredits, lots.grant, paid_with),
            about_payment(database, ResetAllowance, lots.reset_allowance, paid_with),
            about_payment(database, PaymentObserved, payments.observe, PAYMENT),
            gathers(CheckAnswer, self._is_left, answers.check),
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read what is open in the books."""
        books = await credit_rows.load(self._database, keys)
        return {key: {"credits": opened(found)} for key, found in books.items()}

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List what moved in the books."""
        return credits.changes(new.organization_id, old.credits, new.credits)

    async def _is_left(self, _: OrganizationState, message: CheckAnswer) -> bool | None:
        return await generations.is_left(self._database, message.generation_id)


def about_payment(
    database: Database,
    message: type[Asked],
    decide: Callable[[OrganizationState, Asked], Decision[OrganizationState, Reply]],
    payment_of: Callable[[Asked], str | None],
) -> Turn[OrganizationState]:
    """Have a function answer a message about a payment, which may have been at rest."""

    @wraps(decide)
    async def gathered(
        state: OrganizationState, message: Asked
    ) -> Decision[OrganizationState, Reply]:
        known = await recalled(database, state, payment_of(message))
        return unless_unmoved(state, known, decide(known, message))

    return Turn(message, gathered, gathers=True)


async def recalled(
    database: Database, state: OrganizationState, payment_ref: str | None
) -> OrganizationState:
    """Remember a payment that has been at rest: what is not in memory is on disk as it was."""
    if payment_ref is None or payment_ref in state.credits.payments:
        return state
    found = await credit_rows.payment(database, state.organization_id, payment_ref)
    if found is None:
        return state
    remembered = state.credits.payments.insert(payment_ref, found)
    return state.with_credits(replace(state.credits, payments=remembered))


def unless_unmoved(
    state: OrganizationState,
    known: OrganizationState,
    decision: Decision[OrganizationState, Reply],
) -> Decision[OrganizationState, Reply]:
    """Keep the very state when nothing was decided over what was `recalled`: a repeat costs no commit."""
    if decision.state is not known:
        return decision
    return Decision(state, decision.reply, decision.records, decision.effects)


def opened(books: Books) -> Credits:
    """Open the books that were read."""
    account = books.account
    if account is None:
        return credits.NONE
    lots = OpenLots(books.lots)
    live = {one.id: credits.hold_of(one) for one in books.holds}
    return Credits(
        account.seq,
        account.hash,
        free=sum(lot.free for lot in books.lots),
        held=sum(lot.pinned for lot in books.lots),
        debt=account.debt,
        due_at=credits.due_at(lots, live, credits.awaited(account.period_end, account.renewed_by)),
        period_start=account.period_start,
        period_end=account.period_end,
        allowance=account.allowance,
        renewed_by=account.renewed_by,
        bonus_day=books.bonus_day,
        lots=lots,
        holds=live,
        payments=HashTrieMap({one.payment_ref: one for one in books.payments}),
    )
