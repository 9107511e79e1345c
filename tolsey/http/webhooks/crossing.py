"""Deliveries whose store another process has: they cross as they came, and are read and decided there.

Whatever goes wrong on the way, the process that received one takes it as if nobody had been asked:
the delivery's unique row makes a second time a repeat.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog
from pydantic import TypeAdapter

from tolsey.actors.store.messages import Delivery
from tolsey.runtime.errors import RuntimeFault

log = structlog.get_logger()

OPERATION: Final = "take_delivery"


@dataclass(frozen=True, slots=True)
class CrossedDelivery:
    """A delivery that a secret of the store has signed, and for how long somebody waits."""

    store_id: str
    delivery: Delivery
    body: str
    seconds: float
    request_id: str | None = None


CROSSED: Final = TypeAdapter(CrossedDelivery)


class Processes(Protocol):
    """What crossing needs of the shard."""

    def elsewhere(self, key: str) -> str | None:
        """Name the living process, other than this one, that has the actors of a key."""
        ...

    async def call(
        self,
        process: str,
        operation: str,
        payload: Any = None,
        *,
        timeout: float = 5.0,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Any:
        """Let a process do something of its own."""
        ...


async def cross(processes: Processes, process: str, crossed: CrossedDelivery) -> bool | None:
    """Let another process take a delivery; False for a repeat, None when this one has to take it."""
    try:
        new: bool = await processes.call(
            process, OPERATION, CROSSED.dump_python(crossed, mode="json"), timeout=crossed.seconds
        )
    except (RuntimeFault, LookupError) as fault:
        log.info("commerce.webhook.not_crossed", store_id=crossed.store_id, why=repr(fault))
        return None
    return new
