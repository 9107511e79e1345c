"""The decision to grant what an affiliate's code promises, once per organization and person."""

from typing import Final

from tolsey.actors.organization.agreements.messages import RedeemAffiliateCode, Redeemed
from tolsey.actors.organization.ledger import lots
from tolsey.actors.organization.ledger.credits import twelve_months_after
from tolsey.actors.organization.ledger.messages import GrantCredits
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import Conflict, Forbidden, NotFound
from tolsey.runtime.decision import Decision
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.money.affiliates import AffiliateRedemption, CodeUse

AFFILIATE_BONUS: Final = 5_000_000
"""In micro-USD: what an organization is granted for an affiliate's code."""


class AlreadyRedeemed(Conflict):
    """An organization redeems one code ever, and so does a person."""

    code = "already_redeemed"

    def __init__(self) -> None:
        super().__init__(
            "You or your organization already redeemed a code. Each can redeem only one."
        )


def redeem(
    state: OrganizationState, message: RedeemAffiliateCode, use: CodeUse
) -> Decision[OrganizationState, Redeemed]:
    """Grant the bonus, unless the affiliate would be bringing in themselves."""
    if use.code_id is None or use.affiliate_id is None:
        raise NotFound(
            "This code doesn't exist. Check its spelling, or ask the affiliate for a new one."
        )
    if use.affiliate_id == message.user_id:
        raise Forbidden(
            "You can't redeem your own affiliate code. Use a code from another affiliate.",
            code="own_code",
        )
    if use.belongs:
        raise Forbidden(
            "This code's affiliate belongs to your organization. Use a code from another"
            " affiliate.",
            code="own_organization",
        )
    if use.redeemed:
        raise AlreadyRedeemed
    organization_id = state.organization_id
    expires_at = twelve_months_after(message.at)
    key = f"affiliate:{organization_id}"
    grant = GrantCredits(
        key=key, kind="bonus", amount=AFFILIATE_BONUS, at=message.at, expires_at=expires_at
    )
    decision = lots.grant(state, grant)
    redemption = AffiliateRedemption(
        id=message.redemption_id,
        organization_id=organization_id,
        user_id=message.user_id,
        code_id=use.code_id,
        affiliate_id=use.affiliate_id,
        credits=AFFILIATE_BONUS,
        redeemed_at=message.at,
    )
    audited = audit_record(
        "affiliate.redeemed",
        message.redemption_id,
        organization_id,
        message.user_id,
        amount=AFFILIATE_BONUS,
        codeId=use.code_id,
        affiliate=use.affiliate_id,
    )
    standing = decision.state.credits.standing
    return Decision(
        decision.state,
        Redeemed(AFFILIATE_BONUS, expires_at, standing),
        records=(*decision.records, redemption, audited),
    )
