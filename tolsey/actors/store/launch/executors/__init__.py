"""What carries out the milestones of a launch that run by themselves (rules/launch#executors).

An executor is a generator: it yields what it has to know of the shop and returns what came out. It
calls nothing itself, so that the same answers always lead to the same end.
"""

from collections.abc import Mapping
from typing import Final

from tolsey.actors.store.launch.executors import assets, audit, brand, location, shipping
from tolsey.actors.store.launch.executors.work import Executor

EXECUTORS: Final[Mapping[str, Executor]] = {
    "foundation.audit": audit.audit,
    "brand.kit": brand.draft,
    "brand.assets": assets.upload,
    "operations.location": location.set_up,
    "operations.shipping": shipping.set_up,
}
BUILT: Final = frozenset(EXECUTORS)
"""The milestones that have an executor."""
