"""Which process should own a slot: rendezvous hashing, so that whoever joins or leaves moves its share only.

Every process computes the same answer from the same members, and no one leads.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from tolsey.runtime.turns.mailbox import SLOTS
from tolsey.storage.records.runtime.slots import Holding


@lru_cache(maxsize=512)
def weights(process: str) -> tuple[int, ...]:
    """Weigh a process for every slot (Thaler and Ravishankar 1998: highest random weight)."""
    return tuple(
        int.from_bytes(blake2b(f"{process}/{slot}".encode(), digest_size=8).digest())
        for slot in range(SLOTS)
    )


def place(members: Sequence[str], holdings: Mapping[int, Holding]) -> Mapping[int, str]:
    """Say who of the members should own each slot; a pin to one of them decides."""
    heaviest = _heaviest(tuple(sorted(members)))
    pins = {
        slot: pinned for slot, (_, _, pinned, _) in holdings.items() if pinned and pinned in members
    }
    return {**heaviest, **pins} if pins else heaviest


@lru_cache(maxsize=4)
def _heaviest(members: tuple[str, ...]) -> Mapping[int, str]:
    if len(members) <= 1:  # who is alone need not be weighed
        return {slot: alone for alone in members for slot in range(SLOTS)}
    weighed = [(process, weights(process)) for process in members]
    return {
        slot: max(weighed, key=lambda one, at=slot: one[1][at])[0]  # type: ignore[misc]  # the default binds
        for slot in range(SLOTS)
    }
