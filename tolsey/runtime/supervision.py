"""What operators see of actors, and what they may do to them."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from tolsey.runtime.errors import Unavailable
from tolsey.runtime.mailbox import Cell
from tolsey.runtime.messages import ActorId
from tolsey.runtime.registry import Runtime

MASK = "•••"
SEALED_PREFIX = "v1."


class Supervision:
    """Looks at the actors of a runtime, and pauses, resumes or puts them to sleep."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def summaries(
        self, kind: str | None = None, slot: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Say of every actor that is awake how it is."""
        for cell in self._runtime.cells():
            if (kind is None or cell.id.kind == kind) and (slot is None or cell.slot == slot):
                yield self._summary(cell)

    async def inspect(self, actor: ActorId) -> dict[str, Any]:
        """Say everything of one actor: state with secrets masked, mailbox, last 50 turns."""
        cell = await self._runtime.wake(actor)
        return {
            **self._summary(cell),
            "state": masked(cell.state),
            "waiting": [envelope.turn.name for envelope in list(cell.queue or ())[:50]],
            "turns": [
                {
                    "message": span.message,
                    "milliseconds": round(span.seconds * 1000, 3),
                    "outcome": span.outcome,
                    "requestId": span.request_id,
                }
                for span in self._runtime.telemetry.last_of(actor)
            ],
        }

    async def pause(self, actor: ActorId) -> dict[str, Any]:
        """Let an actor take no more turns; its messages wait."""
        cell = await self._runtime.wake(actor)
        self._runtime.scheduler.paused[actor] = None
        return self._summary(cell)

    async def resume(self, actor: ActorId) -> dict[str, Any]:
        """Let a paused actor go on."""
        cell = await self._runtime.wake(actor)
        self._runtime.scheduler.resume(actor)
        return self._summary(cell)

    async def passivate(self, actor: ActorId) -> dict[str, Any]:
        """Put an actor to sleep. Raises Unavailable while something waits for it."""
        cell = await self._runtime.wake(actor)
        if not self._runtime.scheduler.passivate(cell):
            raise Unavailable("the actor is busy")
        return {**self._summary(cell), "status": "asleep"}

    def _summary(self, cell: Cell) -> dict[str, Any]:
        now = self._runtime.scheduler.loop.time()
        oldest = now - cell.queue[0].posted_at if cell.queue else 0.0
        return {
            "kind": cell.id.kind,
            "id": cell.id.key,
            "slot": cell.slot,
            "epoch": self._runtime.epochs.get(cell.slot),
            "version": cell.version,
            "status": self._status(cell),
            "mailboxDepth": cell.depth,
            "uncommitted": cell.pending,
            "oldestMessageSeconds": round(max(0.0, oldest), 3),
            "turnInProgress": cell.busy,
        }

    def _status(self, cell: Cell) -> str:
        if cell.id in self._runtime.scheduler.paused:
            return "paused"
        return "awake" if cell.hot else "cold"


def masked(value: Any, *, secret: bool = False) -> Any:
    """Show a value as JSON would hold it, with whatever is or may be a secret masked."""
    if value is None or isinstance(value, bool | int | float):
        return MASK if secret and value is not None else value
    if secret or isinstance(value, bytes):
        return MASK
    if isinstance(value, str):
        return MASK if value.startswith(SEALED_PREFIX) else str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, Enum):
        return value.value
    return _masked_parts(value)


def _masked_parts(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: masked(
                getattr(value, field.name), secret=bool(field.metadata.get("secret"))
            )
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {str(key): masked(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [masked(item) for item in value]
    return json.loads(json.dumps(value, default=str))
