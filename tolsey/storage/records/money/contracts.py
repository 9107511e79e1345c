"""Plans by contract, as the turns of their organization write them down."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.storage.owners import EVIDENCE_OF_ORGANIZATION
from tolsey.storage.tables import stored


@stored(
    "contracts",
    key=("organization_id",),
    belongs=EVIDENCE_OF_ORGANIZATION,
    export="contracts",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What was agreed with an organization: micro-USD a month and a day.

    Months are counted from `since`. How many stores it includes stands with its plan. `kyc` and
    `signed_contract` say where the check of who the customer is and the signed paper are filed.
    """

    organization_id: str
    monthly_allowance: int
    daily_bonus: int
    since: datetime
    ended_at: datetime | None
    kyc: str | None = None
    signed_contract: str | None = None
