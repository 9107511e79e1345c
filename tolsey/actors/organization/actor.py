"""The organization: its plan, limits and credits, one message at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from tolsey.actors.organization import credits, holds, lots, payments, stores
from tolsey.actors.organization.credits import Credits
from tolsey.actors.organization.messages import (
    KIND,
    AdjustCredits,
    CloseStore,
    CreditsView,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    HoldCredits,
    OpenStore,
    PaymentObserved,
    ReadCredits,
    ReleaseHold,
    ResetAllowance,
    Settled,
    SettleHold,
    SpendCredits,
    Standing,
    StoreOpened,
)
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.storage import credits as credit_rows
from tolsey.storage import stores as store_rows
from tolsey.storage.credits import Books
from tolsey.storage.database import Database


class OrganizationActor(Actor[OrganizationState]):
    """Organizations."""

    kind: ClassVar[str] = KIND
    rank: ClassVar[int] = 2  # stores ask their organization, never the other way

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    @handles(OpenStore)
    def open_store(
        self, state: OrganizationState, message: OpenStore
    ) -> Decision[OrganizationState, StoreOpened]:
        """Open a store within the plan."""
        return stores.open_store(state, message)

    @handles(CloseStore)
    def close_store(
        self, state: OrganizationState, message: CloseStore
    ) -> Decision[OrganizationState, bool]:
        """Close a store whose memory is purged."""
        return stores.close_store(state, message)

    @handles(SpendCredits)
    def spend_credits(
        self, state: OrganizationState, message: SpendCredits
    ) -> Decision[OrganizationState, Standing]:
        """Use up what a thing costs."""
        return lots.spend(state, message)

    @handles(HoldCredits)
    def hold_credits(
        self, state: OrganizationState, message: HoldCredits
    ) -> Decision[OrganizationState, Standing]:
        """Pin what something will cost."""
        return holds.hold(state, message)

    @handles(ExtendHold)
    def extend_hold(
        self, state: OrganizationState, message: ExtendHold
    ) -> Decision[OrganizationState, Standing]:
        """Pin more, or lengthen the lease."""
        return holds.extend(state, message)

    @handles(SettleHold)
    def settle_hold(
        self, state: OrganizationState, message: SettleHold
    ) -> Decision[OrganizationState, Settled]:
        """Pay out of a hold."""
        return holds.settle(state, message)

    @handles(ReleaseHold)
    def release_hold(
        self, state: OrganizationState, message: ReleaseHold
    ) -> Decision[OrganizationState, Settled]:
        """Free a hold."""
        return holds.release(state, message)

    @handles(ReadCredits)
    def read_credits(
        self, state: OrganizationState, message: ReadCredits
    ) -> Decision[OrganizationState, CreditsView]:
        """Show the credits."""
        return lots.read(state, message)

    @handles(ExpireCredits)
    def expire_credits(
        self, state: OrganizationState, message: ExpireCredits
    ) -> Decision[OrganizationState, Standing]:
        """Let go of what is due."""
        return lots.expire(state, message)

    @handles(AdjustCredits)
    def adjust_credits(
        self, state: OrganizationState, message: AdjustCredits
    ) -> Decision[OrganizationState, Standing]:
        """Give or take by an administrator's hand."""
        return lots.adjust(state, message)

    @handles(GrantCredits)
    async def grant_credits(
        self, state: OrganizationState, message: GrantCredits
    ) -> Decision[OrganizationState, Standing]:
        """Grant credits."""
        known = await self._knowing(state, message.reference)
        return _kept(state, known, lots.grant(known, message))

    @handles(ResetAllowance)
    async def reset_allowance(
        self, state: OrganizationState, message: ResetAllowance
    ) -> Decision[OrganizationState, Standing]:
        """Start a period's allowance."""
        known = await self._knowing(state, message.reference)
        return _kept(state, known, lots.reset_allowance(known, message))

    @handles(PaymentObserved)
    async def observe_payment(
        self, state: OrganizationState, message: PaymentObserved
    ) -> Decision[OrganizationState, Standing]:
        """Follow a payment's refunds and disputes."""
        known = await self._knowing(state, message.payment_ref)
        return _kept(state, known, payments.observe(known, message))

    async def _knowing(
        self, state: OrganizationState, payment_ref: str | None
    ) -> OrganizationState:
        """Remember a payment that has been at rest: what is not in memory is on disk as it was."""
        if payment_ref is None or payment_ref in state.credits.payments:
            return state
        found = await credit_rows.payment(self._database, state.organization_id, payment_ref)
        if found is None:
            return state
        payments = {**state.credits.payments, payment_ref: found}
        return replace(state, credits=replace(state.credits, payments=payments))

    async def load(self, keys: Sequence[str]) -> Mapping[str, OrganizationState]:
        """Read plans, stores, and what is open in the books."""
        found = await store_rows.load(self._database, keys)
        books = await credit_rows.load(self._database, keys)
        return {
            key: OrganizationState(
                key,
                found[key].plan,
                found[key].stores_contracted,
                found[key].stores,
                credits=opened(books[key]),
            )
            if key in found
            else OrganizationState(key, exists=False)
            for key in keys
        }

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List the stores that were opened or closed, and what moved in the books."""
        yield from credits.changes(new.organization_id, old.credits, new.credits)
        if new.stores is not old.stores:
            before = {store.id: store for store in old.stores}
            yield from (store for store in new.stores if before.get(store.id) != store)


def opened(books: Books) -> Credits:
    """Open the books that were read."""
    account = books.account
    if account is None:
        return credits.NONE
    lots = {lot.id: lot for lot in sorted(books.lots, key=credits.spending_order)}
    live = {one.id: credits.hold_of(one) for one in books.holds}
    return Credits(
        account.seq,
        account.hash,
        free=sum(lot.free for lot in lots.values()),
        held=sum(lot.pinned for lot in lots.values()),
        debt=account.debt,
        due_at=credits.due_at(lots, live),
        period_end=account.period_end,
        allowance=account.allowance,
        lots=lots,
        holds=live,
        payments={one.payment_ref: one for one in books.payments},
    )


def _kept(
    state: OrganizationState,
    known: OrganizationState,
    decision: Decision[OrganizationState, Standing],
) -> Decision[OrganizationState, Standing]:
    """Keep the very state when nothing was decided, so that a repeat costs no commit."""
    return Decision(state, decision.reply) if decision.state is known else decision
