"""Which process should own a slot: rendezvous hashing, so that whoever joins or leaves moves its share only.

Every process computes the same answer from the same members, and no one leads.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from tolsey.runtime.mailbox import SLOTS
from tolsey.storage.records.slots import Holding


@lru_cache(maxsize=512)
def weights(process: str) -> tuple[int, ...]:
    """Weigh a process for every slot (Thaler and Ravishankar 1998: highest random weight)."""
    return tuple(
        int.from_bytes(blake2b(f"{process}/{slot}".encode(), digest_size=8).digest())
        for slot in range(SLOTS)
    )


def place(members: Sequence[str], holdings: Mapping[int, Holding]) -> dict[int, str]:
    """Say who of the members should own each slot; a pin to one of them decides."""
    if not members:
        return {}
    weighed = [(process, weights(process)) for process in sorted(members)]
    return {
        slot: max(weighed, key=lambda one: one[1][slot])[0]
        if (pinned := holdings.get(slot, Holding(0)).pinned_to) not in members
        else str(pinned)
        for slot in range(SLOTS)
    }
