"""What an organization can be asked about affiliates."""

from dataclasses import dataclass
from datetime import datetime

from tolsey.actors.organization.messages import Standing
from tolsey.runtime.messages import Message


@dataclass(frozen=True, slots=True)
class Redeemed:
    """What a code granted, in micro-USD, and what the organization has now."""

    credits: int
    expires_at: datetime
    standing: Standing


@dataclass(frozen=True, slots=True)
class RedeemAffiliateCode(Message[Redeemed]):
    """Somebody redeems an affiliate's code for the organization: once ever, a repeat is a Duplicate.

    404 for an unknown code, 403 for the affiliate's own, 409 `already_redeemed`.
    """

    redemption_id: str
    code: str
    user_id: str
    at: datetime
