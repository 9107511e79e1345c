"""Codes of affiliates, and the organizations they brought in."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from tolsey.storage.owners import EVIDENCE_OF_ORGANIZATION, MONEY, Belongs, RowOwner
from tolsey.storage.tables import Personal, stored


@dataclass(frozen=True, slots=True, kw_only=True)
class AffiliateCode:
    """A code that an affiliate hands out, and how many organizations redeemed it."""

    id: str
    code: str
    created_at: datetime
    redemptions: int


# The organization's once is claimed by the key of its ledger entry, the person's by this.
@stored(
    "affiliate_redemptions",
    key=("user_id",),
    claim=True,
    belongs=(
        EVIDENCE_OF_ORGANIZATION,
        Belongs(to=RowOwner.USER, by="(user_id = $1 OR affiliate_id = $1)", stays=MONEY),
    ),
    export="affiliateRedemptions",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class AffiliateRedemption:
    """An organization's one redemption ever, which is also that of the person who redeemed."""

    id: str
    organization_id: str
    user_id: Annotated[str, Personal.USER]
    code_id: str
    affiliate_id: Annotated[str, Personal.USER]
    credits: int
    redeemed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeUse:
    """What is known before a code is redeemed; without `code_id` there is no such code.

    `belongs`: the affiliate is a member of the redeeming organization. `redeemed`: the
    organization, or the person who redeems for it, has redeemed a code before.
    """

    code_id: str | None
    affiliate_id: str | None
    belongs: bool
    redeemed: bool
