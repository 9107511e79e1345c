"""What the organization has and may do: credits, plan, and how much of its quota is left."""

from datetime import datetime
from typing import Final

from tolsey.actors.organization import plans
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import NotFound
from tolsey.http.answers.money.credits import (
    CreditsAnswer,
    LedgerEntryAnswer,
    PlanAnswer,
    key_of,
    spent_after,
)
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.answers import Amount, Dollars, Id
from tolsey.http.mcp.tools.building import Nothing, ReadTools, ToolAnswer, ToolPage, reads
from tolsey.http.mcp.tools.pages import PageArguments, Pages
from tolsey.http.web import policies
from tolsey.http.web.limits import of_organization
from tolsey.storage.commerce import stores
from tolsey.storage.money import credits

SCOPES: Final = frozenset({"billing:read"})


class CreditGrant(ToolAnswer):
    """Credits that were granted and are not used up."""

    kind: str
    remaining: Dollars
    expires_at: datetime


class CreditBalance(ToolAnswer):
    """What an organization has; `available` is the balance without what is held.

    The grants are those that are spent next.
    """

    balance: Dollars
    available: Dollars
    held: Dollars
    grants: list[CreditGrant]
    grants_total: int
    next_expiry: datetime | None
    next_cursor: str | None


class LedgerEntry(ToolAnswer):
    """One entry of the ledger; `amount` is what it moved the balance by."""

    id: Id
    kind: str
    amount: Dollars
    at: datetime
    reference: str | None


class Quota(ToolAnswer):
    """How many calls any window of so many seconds takes, over all of the organization's agents."""

    window_seconds: int
    limit: int
    remaining: int


class PlanLimits(ToolAnswer):
    """What the plan allows; what is absent has no bound, or a contract says it."""

    plan: str
    name: str
    stores_used: int
    stores_included: int | None
    concurrent_workflows: int | None
    monthly_credits: Amount
    daily_bonus: Amount
    mcp_quotas: list[Quota]


class MoneyTools(ReadTools):
    """Reads an organization's credits and plan for whoever the gate admitted to its store."""

    ledger = Pages("list_credit_entries", int)
    grants = Pages("get_credit_balance", str, str, str)

    @reads(
        "get_credit_balance",
        "Get the credits",
        "Reads the organization's credits in USD and when they expire.",
        scopes=SCOPES,
    )
    async def balance(self, principal: Principal, asked: PageArguments) -> CreditBalance:
        """Read the credits."""
        to, after = organization(principal.organization_id), self.grants.after(asked)
        wanted = ReadCredits(self._service.clock(), spent_after("|".join(after or ())), asked.limit)
        found = await self._service.runtime.ask(to, wanted)
        answer = CreditsAnswer.of(found)
        return CreditBalance.read(
            answer,
            grants=[CreditGrant.read(grant) for grant in answer.grants],
            next_cursor=found.following
            and self.grants.cursor(*key_of(found.following).split("|", 2)),
        )

    @reads(
        "list_credit_entries",
        "List credit entries",
        "Lists the entries of the organization's credit ledger, newest first.",
        scopes=SCOPES,
    )
    async def entries(self, principal: Principal, asked: PageArguments) -> ToolPage[LedgerEntry]:
        """List entries of the ledger."""
        found = await credits.entries(
            self._service.database,
            principal.organization_id,
            asked.limit + 1,
            self.ledger.number_after(asked),
        )
        entries = [LedgerEntryAnswer.of(pair) for pair in found]
        return self.ledger.part(entries, asked, key=lambda one: (one.seq,), show=_entry)

    @reads(
        "get_plan_limits",
        "Get the plan's limits",
        "Tells what the plan allows and how many tool calls are left of each window.",
        scopes=SCOPES,
    )
    async def limits(self, principal: Principal, asked: Nothing) -> PlanLimits:
        """Tell what the plan allows."""
        del asked
        id = principal.organization_id
        found = (await stores.load(self._service.database, [id])).get(id)
        if found is None:
            raise NotFound(
                "This organization doesn't exist, or you don't belong to it. Check the id."
            )
        plan = plans.BY_CODE[found.plan]
        return PlanLimits.read(
            PlanAnswer.of(plan),
            plan=plan.code,
            stores_used=sum(one.deleted_at is None for one in found.stores),
            stores_included=plans.stores_included(plan.code, found.stores_contracted),
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


def _entry(entry: LedgerEntryAnswer) -> LedgerEntry:
    return LedgerEntry.read(entry, id=entry.seq)
