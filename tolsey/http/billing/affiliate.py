"""Affiliates: the codes they hand out, and organizations that redeem one."""

import secrets
from typing import Annotated, Final

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization.agreements.affiliates import AlreadyRedeemed
from tolsey.actors.organization.agreements.messages import RedeemAffiliateCode
from tolsey.actors.organization.ledger.messages import ReadCredits
from tolsey.actors.organization.messages import organization
from tolsey.actors.refusals import Conflict, Unprocessable
from tolsey.http.answers.base import Created, ListAnswer, list_of
from tolsey.http.answers.money.payouts import AffiliateCodeAnswer, RedemptionAnswer
from tolsey.http.billing.payout_accounts import require_verified_account
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, member_of, session
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent
from tolsey.runtime.errors import Duplicate, TurnFailed
from tolsey.storage.money import affiliates

ALPHABET: Final = "23456789BCDFGHJKLMNPQRSTVWXYZ"
"""No vowels, which would spell words, and no 0 or 1, which look like letters."""
CODE_CHARACTERS: Final = 10
"""48 bits: nobody finds one at three attempts an hour."""

routes = Blueprint("affiliate", __name__, url_prefix="/api/affiliate")
tag_blueprint(routes, ["Affiliates"])


class Redemption(ApiModel):
    """A code, and for which organization; it may be left out by who runs only one."""

    code: Annotated[str, Field(min_length=1, max_length=64)]
    organization_id: Annotated[str, Field(max_length=128)] | None = None

    @property
    def plain(self) -> str:
        """The code as it is kept, however it was typed."""
        return "".join(self.code.split()).replace("-", "").upper()


@routes.post("/codes")
@session
@idempotent
async def create_code() -> tuple[AffiliateCodeAnswer, Created]:
    """Make a code that the caller can hand out; they need a verified payout account."""
    await require_verified_account()
    code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARACTERS))
    kept = await affiliates.add_code(
        service().database, new_id("affiliate"), caller().user_id, code, now()
    )
    if kept is None:
        raise Conflict(
            f"You already have {affiliates.CODES_PER_PERSON} affiliate codes, the maximum. Use one of them.",
            code="too_many_codes",
        )
    return AffiliateCodeAnswer.read(kept), 201


@routes.get("/codes")
@session
async def list_codes(query_args: PageQuery) -> ListAnswer[AffiliateCodeAnswer]:
    """List the caller's codes with how often each was redeemed, newest first."""
    found = await affiliates.codes_of(
        service().database, caller().user_id, query_args.after or None, query_args.limit + 1
    )
    return list_of(
        found, query_args.limit, key=lambda kept: kept.id, answer=AffiliateCodeAnswer.read
    )


@routes.post("/redeem")
@session
@limits.limited(policies.AFFILIATE_REDEEM)
@idempotent
async def redeem(data: Redemption) -> tuple[RedemptionAnswer, Created]:
    """Redeem a code: once for an organization, once for a person, never one's own."""
    organization_id = await _organization(data.organization_id)
    redemption_id, user_id = new_id("redemption"), caller().user_id
    message = RedeemAffiliateCode(
        redemption_id=redemption_id, code=data.plain, user_id=user_id, at=now()
    )
    try:
        await ask(organization(organization_id), message)
    except (AlreadyRedeemed, Duplicate, TurnFailed) as error:
        # Done by a request of this Idempotency-Key whose answer was lost, or done before.
        if await affiliates.redemption(service().database, redemption_id) is None:
            use = await affiliates.code_use(
                service().database, data.plain, organization_id, user_id
            )
            raise AlreadyRedeemed if use.redeemed else error from None
    kept = await affiliates.redemption(service().database, redemption_id)
    if kept is None:
        raise LookupError(redemption_id)
    credits = await ask(organization(kept.organization_id), ReadCredits(now()))
    standing = credits.standing
    return RedemptionAnswer.read(kept, balance=standing.balance, available=standing.available), 201


async def _organization(wanted: str | None) -> str:
    """Find which organization is meant, by one who may decide for it."""
    if wanted is not None:
        await member_of(wanted, at_least="admin")
        return wanted
    found = await affiliates.organizations_run_by(service().database, caller().user_id)
    if len(found) != 1:
        raise Unprocessable(
            "You belong to several organizations. Send `organizationId` to choose the one that"
            " redeems the code.",
            code="invalid_request",
            errors=[{"field": "organizationId", "message": "is required"}],
        )
    return found[0]
