"""The lines that processes write of themselves, as their peers read them."""

from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Line:
    """What a process says of itself at every beat."""

    beat: int
    host: str = ""
    pid: int = 0
    since: str = ""
    draining: bool = False
    """True when it is about to stop: it gets no more slots."""

    def encode(self) -> str:
        """Write it as JSON text."""
        return orjson.dumps(self).decode()


def read_line(text: str) -> Line:
    """Read a line; what cannot be read is a line of a process that takes no slots."""
    try:
        fields: dict[str, Any] = orjson.loads(text)
        return Line(
            int(fields["beat"]),
            str(fields.get("host", "")),
            int(fields.get("pid", 0)),
            str(fields.get("since", "")),
            bool(fields.get("draining", False)),
        )
    except (ValueError, KeyError, TypeError):
        return Line(0, draining=True)


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the deployment, as another one sees it."""

    id: str
    host: str
    pid: int
    since: str
    draining: bool
    alive: bool
    silent_seconds: float
    """For how long its beats have not been seen."""
    slots: int
