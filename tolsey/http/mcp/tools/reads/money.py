"""What the organization has and may do: credits, plan, and how much of its quota is left."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tolsey.actors import chain
from tolsey.actors.organization import plans
from tolsey.actors.organization.messages import ReadCredits, organization
from tolsey.actors.refusals import NotFound
from tolsey.http.billing.grants import key_of, spent_after
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.registry import READS, Tool
from tolsey.http.mcp.tools.answers import Money, dollars
from tolsey.http.mcp.tools.building import Answer, Nothing, tool
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.web import policies
from tolsey.http.web.context import Service
from tolsey.http.web.limits import of_organization
from tolsey.storage.commerce import stores
from tolsey.storage.money import credits
from tolsey.storage.records.money.credits import CreditEntry, CreditPosting

SCOPES: Final = frozenset({"billing:read"})


class CreditGrant(Answer):
    """Credits that were granted and are not used up."""

    kind: str
    remaining: Money
    expires_at: datetime


class CreditBalance(Answer):
    """What an organization has; `available` is the balance without what is held.

    The grants are those that are spent next.
    """

    balance: Money
    available: Money
    held: Money
    grants: list[CreditGrant]
    grants_total: int
    next_expiry: datetime | None
    next_cursor: str | None


class LedgerEntry(Answer):
    """One entry of the ledger; `amount` is what it moved the balance by."""

    id: str
    kind: str
    amount: Money
    at: datetime
    reference: str | None


class LedgerPage(Answer):
    """A part of the ledger."""

    items: list[LedgerEntry]
    next_cursor: str | None


class Quota(Answer):
    """How many calls any window of so many seconds takes, over all of the organization's agents."""

    window_seconds: int
    limit: int
    remaining: int


class PlanLimits(Answer):
    """What the plan allows; what is absent has no bound, or a contract says it."""

    plan: str
    name: str
    stores_used: int
    stores_included: int | None
    concurrent_workflows: int | None
    monthly_credits: Money | None
    daily_bonus: Money | None
    mcp_quotas: list[Quota]


class MoneyTools:
    """Reads an organization's credits and plan for whoever the gate admitted to its store."""

    ledger = Pages("list_credit_entries", int)
    grants = Pages("get_credit_balance", str, str, str)

    def __init__(self, service: Service) -> None:
        self._service = service

    def tools(self) -> Sequence[Tool]:
        """List the tools."""
        return [
            tool(
                "get_credit_balance",
                "Get the credits",
                "Reads the organization's credits in USD and when they expire.",
                arguments=PageArguments,
                answer=CreditBalance,
                run=self.balance,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "list_credit_entries",
                "List credit entries",
                "Lists the entries of the organization's credit ledger, newest first.",
                arguments=PageArguments,
                answer=LedgerPage,
                run=self.entries,
                scopes=SCOPES,
                hints=READS,
            ),
            tool(
                "get_plan_limits",
                "Get the plan's limits",
                "Tells what the plan allows and how many tool calls are left of each window.",
                arguments=Nothing,
                answer=PlanLimits,
                run=self.limits,
                scopes=SCOPES,
                hints=READS,
            ),
        ]

    async def balance(self, principal: Principal, asked: PageArguments) -> CreditBalance:
        """Read the credits."""
        to, after = organization(principal.organization_id), self.grants.after(asked)
        wanted = ReadCredits(self._service.clock(), spent_after("|".join(after or ())), asked.limit)
        found = await self._service.runtime.ask(to, wanted)
        return CreditBalance(
            balance=dollars(found.standing.balance),
            available=dollars(found.standing.available),
            held=dollars(found.standing.held),
            grants=[
                CreditGrant(
                    kind=grant.kind,
                    remaining=dollars(grant.remaining),
                    expires_at=grant.expires_at,
                )
                for grant in found.grants
            ],
            grants_total=found.total,
            next_expiry=found.next_expiry,
            next_cursor=found.following
            and self.grants.cursor(*key_of(found.following).split("|", 2)),
        )

    async def entries(self, principal: Principal, asked: PageArguments) -> LedgerPage:
        """List entries of the ledger."""
        found = await credits.entries(
            self._service.database,
            principal.organization_id,
            asked.limit + 1,
            self.ledger.number_after(asked),
        )
        part, following = self.ledger.cut(found, asked, lambda pair: (pair[0].seq,))
        return LedgerPage(items=[_entry(*pair) for pair in part], next_cursor=following)

    async def limits(self, principal: Principal, asked: Nothing) -> PlanLimits:
        """Tell what the plan allows."""
        del asked
        id = principal.organization_id
        found = (await stores.load(self._service.database, [id])).get(id)
        if found is None:
            raise NotFound("There is no such organization.")
        plan = plans.BY_CODE[found.plan]
        monthly, daily = plan.monthly_allowance_micro, plan.daily_bonus_micro
        return PlanLimits(
            plan=plan.code,
            name=plan.name,
            stores_used=sum(one.deleted_at is None for one in found.stores),
            stores_included=plans.stores_included(plan.code, found.stores_contracted),
            concurrent_workflows=plan.concurrent_workflows,
            monthly_credits=None if monthly is None else dollars(monthly),
            daily_bonus=None if daily is None else dollars(daily),
            mcp_quotas=await self.quotas(id, plan),
        )

    async def quotas(self, organization_id: str, plan: plans.Plan) -> list[Quota]:
        """Tell how many calls are left, this one counted."""
        wanted = policies.mcp(plan)
        used = await self._service.limits.used(wanted, of_organization(organization_id))
        return [
            Quota(
                window_seconds=policy.window_seconds,
                limit=policy.limit,
                remaining=max(policy.limit - count, 0),
            )
            for policy, count in zip(wanted, used, strict=True)
        ]


def _entry(entry: CreditEntry, postings: Sequence[CreditPosting]) -> LedgerEntry:
    moved = chain.balance_moved((one.debit, one.credit, one.amount) for one in postings)
    return LedgerEntry(
        id=str(entry.seq),
        kind=entry.kind,
        amount=dollars(moved),
        at=entry.at,
        reference=entry.reference,
    )
