"""What a store can be asked about the shop that it was handed, and the look at whose that is."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from tolsey.actors.store.connection.messages import Connect
from tolsey.runtime.messages import Call, LaneName, Message, Patience
from tolsey.storage.records.commerce.devstores import DevStoreState


@dataclass(frozen=True, slots=True, kw_only=True)
class DevStoreView:
    """A shop of the pool as the merchant sees it who has it."""

    shop_domain: str
    state: DevStoreState
    email: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDevStore(Message[DevStoreView]):
    """A store is handed a shop of the pool whose app let us in; a store has one at most.

    Whoever comes second for the same shop is told that this is a duplicate, and nothing of it happened.
    """

    connect: Connect


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTransfer(Message[DevStoreView]):
    """The merchant wants the shop to be their own, invited by an address."""

    email: str
    user_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowTransfer(Message[None]):
    """It may be known by now whether the merchant took the shop over."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSeen(Message[None]):
    """What a shop's plan is called now; None where nobody could find out."""

    shop_domain: str
    plan_name: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTransfer(Call[PlanSeen]):
    """Read what the plan of a shop is called."""

    lane: ClassVar[LaneName] = "platform"
    patience: ClassVar[Patience | None] = Patience(waits=(5.0, 30.0), tries=2)
    """The next tick looks again."""

    store_id: str
    shop_domain: str
    organization_id: str

    def given_up(self, why: str, at: datetime) -> PlanSeen:
        """Know nothing of it."""
        del why
        return PlanSeen(shop_domain=self.shop_domain, plan_name=None, at=at)
