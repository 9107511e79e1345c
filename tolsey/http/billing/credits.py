"""Credits: what an organization has, every entry of its ledger, and an operator's hand in it."""

from typing import Annotated, Final, Literal

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization.ledger.messages import GRANTS_SHOWN, AdjustCredits, ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.money.credits import (
    AdjustedAnswer,
    CreditsAnswer,
    LedgerEntryAnswer,
    UrlAnswer,
    spent_after,
)
from tolsey.http.billing import acts as billing
from tolsey.http.web.access import administrator, caller, member_of, session
from tolsey.http.web.api_model import ApiModel, Whole, Why
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import MAXIMUM_LIMIT, PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.runtime.errors import Duplicate
from tolsey.storage.money import credits

LARGEST_ADJUSTMENT: Final = 100_000 * 1_000_000
"""In micro-USD; more than that in one go is a slip of the hand."""

OrganizationId = Annotated[str, Field(max_length=128)]

routes = Blueprint("credits", __name__, url_prefix="/api")
tag_blueprint(routes, ["Credits"])


class CreditsQuery(PageQuery):
    """Whose credits, and which part of the grants."""

    organization_id: OrganizationId
    limit: Annotated[int, Field(ge=1, le=MAXIMUM_LIMIT)] = GRANTS_SHOWN


class LedgerQuery(PageQuery):
    """Which part of whose ledger."""

    organization_id: OrganizationId


class Adjustment(ApiModel):
    """Credits that an operator gives (above zero) or takes (below), in micro-USD, and why."""

    organization_id: OrganizationId
    amount: Annotated[Whole, Field(ge=-LARGEST_ADJUSTMENT, le=LARGEST_ADJUSTMENT)]
    reason: Why


class Dollars(ApiModel):
    """An amount before tax, in cents: credits are sold in USD alone."""

    amount: Whole
    currency: Literal["USD"]


class Purchase(ApiModel):
    """How many credits an organization buys."""

    organization_id: OrganizationId
    amount: Dollars


@routes.get("/credits")
@session
async def get_credits(query_args: CreditsQuery) -> CreditsAnswer:
    """Show an organization's credits in micro-USD, and the grants that are spent next."""
    await member_of(query_args.organization_id)
    wanted = ReadCredits(now(), spent_after(query_args.after), query_args.limit)
    found = await ask(organization(query_args.organization_id), wanted)
    return CreditsAnswer.of(found)


@routes.get("/credits/ledger")
@session
async def get_ledger(query_args: LedgerQuery) -> ListAnswer[LedgerEntryAnswer]:
    """List the entries of an organization's ledger, newest first."""
    await member_of(query_args.organization_id)
    found = await credits.entries(
        service().database,
        query_args.organization_id,
        query_args.limit + 1,
        query_args.after_number or None,
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda pair: str(pair[0].seq),
        answer=LedgerEntryAnswer.of,
    )


@routes.post("/credits/purchase")
@session
@idempotent
async def purchase_credits(data: Purchase) -> UrlAnswer:
    """Open the processor's page on which credits are bought, for 5 to 5,000 USD before tax."""
    return UrlAnswer(url=await billing.buy_credits(data.organization_id, data.amount.amount))


@routes.post("/admin/credits/adjust")
@administrator
@idempotent
async def adjust_credits(data: Adjustment) -> AdjustedAnswer:
    """Give an organization credits, or take some that are available; audited."""
    to = organization(data.organization_id)
    message = AdjustCredits(
        key=new_id("adjustment"),
        amount=data.amount,
        reason=data.reason,
        user_id=caller().user_id,
        at=now(),
    )
    try:
        standing = await ask(to, message)
    except Duplicate:  # done by a request of this Idempotency-Key whose answer was lost
        standing = (await ask(to, ReadCredits(now()))).standing
    return AdjustedAnswer.read(standing, id=message.key, organization_id=data.organization_id)
