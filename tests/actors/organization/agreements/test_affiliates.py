"""What an affiliate's code grants, and whom."""

from dataclasses import replace

import pytest

from tests.actors.organization.books import AT
from tolsey.actors.organization.agreements import affiliates
from tolsey.actors.organization.agreements.affiliates import AFFILIATE_BONUS
from tolsey.actors.organization.agreements.messages import RedeemAffiliateCode, Redeemed
from tolsey.actors.organization.ledger import lots
from tolsey.actors.organization.ledger.credits import twelve_months_after
from tolsey.actors.organization.ledger.messages import GrantCredits, Standing
from tolsey.actors.organization.state import OrganizationState
from tolsey.actors.refusals import NotFound, Refusal
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.money.affiliates import AffiliateRedemption, CodeUse

STATE = OrganizationState("org_1")
MESSAGE = RedeemAffiliateCode(
    redemption_id="redemption_1", code="BCDFGHJKLM", user_id="usr_bob", at=AT
)
USE = CodeUse(code_id="affiliate_1", affiliate_id="usr_ann", belongs=False, redeemed=False)


def test_a_code_grants_a_bonus_and_says_who_brought_whom_in() -> None:
    decision = affiliates.redeem(STATE, MESSAGE, USE)
    ends = twelve_months_after(AT)
    bonus = GrantCredits(
        key="affiliate:org_1", kind="bonus", amount=AFFILIATE_BONUS, at=AT, expires_at=ends
    )
    alone = lots.grant(STATE, bonus)
    assert decision.state == alone.state
    standing = Standing(seq=1, balance=AFFILIATE_BONUS, available=AFFILIATE_BONUS, held=0)
    assert decision.reply == Redeemed(AFFILIATE_BONUS, ends, standing)
    *ledger, redemption, audited = decision.records
    assert ledger == list(alone.records)
    assert redemption == AffiliateRedemption(
        id="redemption_1",
        organization_id="org_1",
        user_id="usr_bob",
        code_id="affiliate_1",
        affiliate_id="usr_ann",
        credits=AFFILIATE_BONUS,
        redeemed_at=AT,
    )
    assert isinstance(audited, AuditRecord)
    assert (audited.event, audited.organization_id, audited.actor) == (
        *("affiliate.redeemed", "org_1"),
        "usr_bob",
    )


@pytest.mark.parametrize(
    ("use", "status", "code"),
    [
        (CodeUse(code_id=None, affiliate_id=None, belongs=False, redeemed=False), 404, "not_found"),
        (CodeUse(code_id=None, affiliate_id=None, belongs=False, redeemed=True), 404, "not_found"),
        (replace(USE, affiliate_id="usr_bob"), 403, "own_code"),
        (replace(USE, belongs=True), 403, "own_organization"),
        (replace(USE, redeemed=True), 409, "already_redeemed"),
    ],
)
def test_a_code_is_refused_with_the_reason(use: CodeUse, status: int, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        affiliates.redeem(STATE, MESSAGE, use)
    assert (refused.value.status, refused.value.code) == (status, code)


def test_an_organization_that_is_not_there_is_granted_nothing() -> None:
    with pytest.raises(NotFound):
        affiliates.redeem(OrganizationState("org_0", exists=False), MESSAGE, USE)
