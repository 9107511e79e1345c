"""Plans by contract: an operator writes down what was agreed (rules/plans#contracts)."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.organization.agreements.messages import (
    ContractPapers,
    ContractTerms,
    SetContract,
)
from tolsey.actors.organization.messages import organization
from tolsey.http.answers.money.billing import ContractAnswer
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import ApiModel, Whole, Why
from tolsey.http.web.context import ask, now

MOST_STORES: Final = 100_000
LARGEST_ALLOWANCE: Final = 100_000 * 1_000_000
"""In micro-USD; more than that a month, or a day, is a slip of the hand."""

Credits = Annotated[Whole, Field(ge=0, le=LARGEST_ALLOWANCE)]

routes = Blueprint("contracts", __name__, url_prefix="/api/admin/organizations")
tag_blueprint(routes, ["Credits"])


class ContractBody(ApiModel):
    """What was agreed, in micro-USD; the plan `free` ends it. No bound of stores: null.

    `kyc` and `signedContract` say where the manual check of the customer and the paper are filed.
    """

    plan: Literal["custom", "free"]
    stores_included: Annotated[Whole, Field(ge=0, le=MOST_STORES)] | None = None
    monthly_allowance: Credits | None = None
    daily_bonus: Credits | None = None
    kyc: Why | None = None
    signed_contract: Why | None = None
    reason: Why

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        amounts = (self.monthly_allowance, self.daily_bonus)
        if self.plan == "custom" and None in amounts:
            raise ValueError("a custom plan requires monthlyAllowance and dailyBonus")
        if self.plan == "free" and (self.stores_included, *amounts) != (None, None, None):
            raise ValueError(
                "the free plan takes no storesIncluded, monthlyAllowance or dailyBonus; leave"
                " them out"
            )
        return self

    @property
    def terms(self) -> ContractTerms | None:
        """What the contract grants; none when there shall be none."""
        if self.monthly_allowance is None or self.daily_bonus is None:
            return None
        return ContractTerms(self.stores_included, self.monthly_allowance, self.daily_bonus)


@routes.put("/<organization_id>/contract")
@administrator
async def put_contract(organization_id: str, data: ContractBody) -> ContractAnswer:
    """Put an organization under a contract, change its terms, or end it; audited.

    Its first month's allowance is granted at once. 409 `subscription_exists` while one pays.
    """
    papers = ContractPapers(data.kyc, data.signed_contract)
    message = SetContract(
        terms=data.terms, reason=data.reason, user_id=caller().user_id, at=now(), papers=papers
    )
    contract = await ask(organization(organization_id), message)
    return ContractAnswer.of(organization_id, contract)
