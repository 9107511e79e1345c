"""What a store forgets of a shop; it owns nothing, for forgetting is of what others own."""

from tolsey.actors.store.compliance import forgetting
from tolsey.actors.store.compliance.messages import (
    DestroySalt,
    ForgetCheckpointNote,
    ForgetLaunch,
    ForgetShopProfile,
    RedactShop,
)
from tolsey.actors.store.state import StoreState
from tolsey.runtime.actor import KindPart, on


class Compliance(KindPart[StoreState]):
    """Duties towards a shop that asks to be forgotten."""

    decides = (
        on(RedactShop, forgetting.redact),
        on(DestroySalt, forgetting.destroy_salt),
        on(ForgetShopProfile, forgetting.forget_profile),
        on(ForgetLaunch, forgetting.forget_launch),
        on(ForgetCheckpointNote, forgetting.forget_note),
    )
