"""What is agreed beside the plans on offer."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar

from tolsey.actors.organization.agreements import affiliates, contracts
from tolsey.actors.organization.agreements.messages import (
    RedeemAffiliateCode,
    SetContract,
    StartMonth,
)
from tolsey.actors.organization.ledger.part import about_payment
from tolsey.actors.organization.state import OrganizationState
from tolsey.runtime.actor import KindPart, gathers, on
from tolsey.storage.database import Database
from tolsey.storage.money import affiliates as affiliate_rows
from tolsey.storage.money import contracts as contract_rows
from tolsey.storage.records.money.affiliates import CodeUse


class Agreements(KindPart[OrganizationState]):
    """Contracts and the codes of affiliates; what is agreed is written by its turn."""

    owns: ClassVar[tuple[str, ...]] = ("contract",)

    def __init__(self, database: Database) -> None:
        self._database = database
        self.decides = (
            on(SetContract, contracts.agree),
            about_payment(database, StartMonth, contracts.start_month, attrgetter("payment_ref")),
            gathers(RedeemAffiliateCode, self._code_use, affiliates.redeem),
        )

    async def load(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """Read contracts."""
        found = await contract_rows.load(self._database, keys)
        return {key: {"contract": contract} for key, contract in found.items()}

    async def _code_use(self, state: OrganizationState, message: RedeemAffiliateCode) -> CodeUse:
        return await affiliate_rows.code_use(
            self._database, message.code, state.organization_id, message.user_id
        )
