"""The organization: its plan, limits and credits, one message at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import structlog
from rpds import HashTrieMap

from tolsey.actors.organization import KIND, credits, operations, stores, workflows
from tolsey.actors.organization.agreements import affiliates, contracts
from tolsey.actors.organization.agreements.messages import RedeemAffiliateCode, Redeemed
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
    AwaitOperation,
    CancelPlan,
    ChangePlan,
    GiveBackPayment,
    ReadSubscription,
    RecordBillingAct,
)
from tolsey.actors.organization.billing.payment_events.catalogue import restore
from tolsey.actors.organization.credits import Credits
from tolsey.actors.organization.files import exports
from tolsey.actors.organization.files.messages import AskForExport, ExportGivenUp, ExportKept
from tolsey.actors.organization.ledger import answers, bonuses, holds, lots, payments
from tolsey.actors.organization.ledger.answers import CheckAnswer
from tolsey.actors.organization.messages import (
    AdjustCredits,
    ClaimWorkflow,
    CloseStore,
    ExpireCredits,
    ExtendHold,
    GrantCredits,
    GrantDailyBonus,
    HoldCredits,
    OpenStore,
    PaymentObserved,
    ReadCredits,
    ReleaseHold,
    ReleaseWorkflow,
    ResetAllowance,
    SetContract,
    SettleHold,
    SpendCredits,
    Standing,
    StartMonth,
)
from tolsey.actors.organization.open_lots import OpenLots
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import Actor, Turn, handles, on
from tolsey.runtime.decision import Decision
from tolsey.storage.chat import generations
from tolsey.storage.commerce import stores as store_rows
from tolsey.storage.database import Database
from tolsey.storage.money import affiliates as affiliate_rows
from tolsey.storage.money import contracts as contract_rows
from tolsey.storage.money import credits as credit_rows
from tolsey.storage.money import payment_events as payment_event_rows
from tolsey.storage.money import subscriptions as subscription_rows
from tolsey.storage.money.credits import Books
from tolsey.storage.records.money.subscription import OrganizationTerms
from tolsey.storage.records.runtime.operations import Operation
from tolsey.storage.runtime import operations as operation_rows
from tolsey.storage.runtime import workflows as workflow_rows

log = structlog.get_logger()

Reply = TypeVar("Reply")


class OrganizationActor(Actor[OrganizationState]):
    """Organizations."""

    kind: ClassVar[str] = KIND
    rank: ClassVar[int] = 2  # stores ask their organization, never the other way
    decides: ClassVar[Sequence[Turn[OrganizationState]]] = (
        on(OpenStore, stores.open_store),
        on(CloseStore, stores.close_store),
        on(SpendCredits, lots.spend),
        on(HoldCredits, holds.hold),
        on(ExtendHold, holds.extend),
        on(SettleHold, holds.settle),
        on(ReleaseHold, holds.release),
        on(ReadCredits, lots.read),
        on(ExpireCredits, lots.expire),
        on(AdjustCredits, lots.adjust),
        on(GrantDailyBonus, bonuses.grant),
        on(SetContract, contracts.agree),
        on(ClaimWorkflow, workflows.claim),
        on(ReleaseWorkflow, workflows.release),
        on(SubscriptionEndedNow, returns.ended),
        on(ReadSubscription, acts.read),
        on(RecordBillingAct, acts.record),
        on(PlanChangeMade, changes.made),
        on(PlanChangeRefused, changes.refused),
        on(ExportKept, exports.kept),
        on(ExportGivenUp, exports.given_up),
        on(PaymentEventGivenUp, applying.give_up),
    )

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    @handles(StartMonth)
    async def start_month(
        self, state: OrganizationState, message: StartMonth
    ) -> Decision[OrganizationState, bool]:
        """Grant a month's allowance."""
        known = await self._knowing(state, message.paid.payment_ref if message.paid else None)
        return _kept(state, known, contracts.start_month(known, message))

    @handles(GrantCredits)
    async def grant_credits(
        self, state: OrganizationState, message: GrantCredits
    ) -> Decision[OrganizationState, Standing]:
        """Grant credits."""
        known = await self._knowing(state, message.reference)
        return _kept(state, known, lots.grant(known, message))

    @handles(RedeemAffiliateCode)
    async def redeem_affiliate_code(
        self, state: OrganizationState, message: RedeemAffiliateCode
    ) -> Decision[OrganizationState, Redeemed]:
        """Grant what an affiliate's code promises."""
        use = await affiliate_rows.code_use(
            self._database, message.code, state.organization_id, message.user_id
        )
        return affiliates.redeem(state, message, use)

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

    @handles(GiveBackPayment)
    async def give_back_payment(
        self, state: OrganizationState, message: GiveBackPayment
    ) -> Decision[OrganizationState, Operation]:
        """Begin to give a payment back."""
        known = await self._knowing(state, message.payment_ref)
        kept = await operation_rows.find(self._database, message.operation_id)
        paid_at = (known.subscription and known.subscription.paid_at) or message.at
        chatted = await generations.has_chatted(self._database, state.organization_id, paid_at)
        return _kept(state, known, returns.begin(known, message, kept, has_chatted=chatted))

    @handles(ChangePlan)
    async def change_plan(
        self, state: OrganizationState, message: ChangePlan
    ) -> Decision[OrganizationState, Operation]:
        """Begin to change the plan."""
        kept = await operation_rows.find(self._database, message.operation_id)
        return changes.change(state, message, kept)

    @handles(CancelPlan)
    async def cancel_plan(
        self, state: OrganizationState, message: CancelPlan
    ) -> Decision[OrganizationState, Operation]:
        """Begin to let the subscription end with its period."""
        kept = await operation_rows.find(self._database, message.operation_id)
        return changes.cancel(state, message, kept)

    @handles(AskForExport)
    async def ask_for_export(
        self, state: OrganizationState, message: AskForExport
    ) -> Decision[OrganizationState, Operation]:
        """Begin to write an export."""
        kept = await operation_rows.find(self._database, message.operation_id)
        return exports.begin(state, message, kept)

    @handles(AwaitOperation)
    async def await_operation(
        self, state: OrganizationState, message: AwaitOperation
    ) -> Decision[OrganizationState, Operation]:
        """Let whoever asks wait for the end of an operation."""
        kept = await operation_rows.find(self._database, message.operation_id)
        return operations.wait(state, message.operation_id, kept)

    @handles(RefundMade)
    async def refund_made(
        self, state: OrganizationState, message: RefundMade
    ) -> Decision[OrganizationState, None]:
        """Go on after a refund."""
        known = await self._knowing(state, message.payment_ref)
        return _kept(state, known, returns.made(known, message))

    @handles(RefundRefused)
    async def refund_refused(
        self, state: OrganizationState, message: RefundRefused
    ) -> Decision[OrganizationState, None]:
        """Free what was kept for a refund that will not be."""
        known = await self._knowing(state, message.payment_ref)
        return _kept(state, known, returns.refused(known, message))

    @handles(ReturnGivenUp)
    async def return_given_up(
        self, state: OrganizationState, message: ReturnGivenUp
    ) -> Decision[OrganizationState, None]:
        """Say how far giving a payment back came."""
        known = await self._knowing(state, message.payment_ref)
        return _kept(state, known, returns.given_up(known, message))

    @handles(CheckAnswer)
    async def check_answer(
        self, state: OrganizationState, message: CheckAnswer
    ) -> Decision[OrganizationState, None]:
        """Look whether an answer of the chat is still being made."""
        is_left = await generations.is_left(self._database, message.generation_id)
        if is_left is None:
            return Decision(state, None)
        return answers.check(state, message, is_left=is_left)

    @handles(ApplyPaymentEvent)
    async def apply_payment_event(
        self, state: OrganizationState, message: ApplyPaymentEvent
    ) -> Decision[OrganizationState, Applied]:
        """Do what the payment processor said, whole, in one commit."""
        known = await self._knowing(state, applying.payment_of(message))
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
        return _kept(state, known, decision)

    @handles(PaymentEventReceived)
    async def receive_payment_event(
        self, state: OrganizationState, message: PaymentEventReceived
    ) -> Decision[OrganizationState, Applied]:
        """Do what the payment processor said, or ask it first for what that leaves out."""
        told = completing.as_told(message, None)
        known = await self._knowing(state, applying.payment_of(told))
        payment_id = completing.paid_invoice(known, restore(message.type, message.facts))
        if payment_id is not None:
            invoice_id = await payment_event_rows.invoice_paid_by(
                self._database, state.organization_id, payment_id
            )
            told = replace(told, payment_ref=invoice_id)
        asked = completing.lacking(known, message, told.payment_ref)
        if asked is not None:
            return Decision(state, completing.STALE, effects=(asked,))
        return await self.apply_payment_event(state, told)

    async def _knowing(
        self, state: OrganizationState, payment_ref: str | None
    ) -> OrganizationState:
        """Remember a payment that has been at rest: what is not in memory is on disk as it was."""
        if payment_ref is None or payment_ref in state.credits.payments:
            return state
        found = await credit_rows.payment(self._database, state.organization_id, payment_ref)
        if found is None:
            return state
        payments = state.credits.payments.insert(payment_ref, found)
        return replace(state, credits=replace(state.credits, payments=payments))

    async def load(self, keys: Sequence[str]) -> Mapping[str, OrganizationState]:
        """Read plans, stores, and what is open in the books."""
        found = await store_rows.load(self._database, keys)
        books = await credit_rows.load(self._database, keys)
        agreed = await contract_rows.load(self._database, keys)
        claims = await workflow_rows.load(self._database, keys)
        billed = await subscription_rows.load(self._database, keys)
        asked = await operation_rows.load(self._database, keys)
        return {
            key: OrganizationState(
                key,
                found[key].plan,
                found[key].stores_contracted,
                found[key].stores,
                credits=opened(books[key]),
                contract=agreed.get(key),
                workflows=claims.get(key, {}),
                created_at=billed[key].created_at,
                subscription=billed[key].subscription,
                operations=asked.get(key, ()),
            )
            if key in found and key in billed
            else OrganizationState(key, exists=False)
            for key in keys
        }

    def changes(self, old: OrganizationState, new: OrganizationState) -> Iterable[Any]:
        """List the stores that were opened or closed, and what moved in the books."""
        yield from credits.changes(new.organization_id, old.credits, new.credits)
        if new.stores is not old.stores:
            before = {store.id: store for store in old.stores}
            yield from (store for store in new.stores if before.get(store.id) != store)
        if new.subscription is not None and new.subscription is not old.subscription:
            yield new.subscription
        if new.operations is not old.operations:
            yield from (one for one in new.operations if one not in old.operations)
        if (new.plan, new.stores_contracted) != (old.plan, old.stores_contracted):
            yield OrganizationTerms(
                id=new.organization_id, plan=new.plan, stores_contracted=new.stores_contracted
            )


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


def _kept(
    state: OrganizationState,
    known: OrganizationState,
    decision: Decision[OrganizationState, Reply],
) -> Decision[OrganizationState, Reply]:
    """Keep the very state when nothing was decided, so that a repeat costs no commit."""
    if decision.state is not known:
        return decision
    return Decision(state, decision.reply, decision.records, decision.effects)
