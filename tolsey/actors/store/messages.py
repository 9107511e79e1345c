"""How a store is addressed; what it can be asked is in the `messages` of its parts."""

from enum import StrEnum

from tolsey.actors.store import KIND
from tolsey.runtime.messages import ActorId


def store(store_id: str) -> ActorId:
    """Address a store."""
    return ActorId(KIND, store_id)


class Outcome(StrEnum):
    """What became of a delivery."""

    APPLIED = "applied"
    IGNORED = "ignored"
