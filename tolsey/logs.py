"""Structured logs: one JSON object a line (colours on a terminal), and no secret in any of them."""

import atexit
import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import structlog

SECRET_NAMES = re.compile(
    r"secret|token|password|passwd|authorization|cookie|api_?key|credential|private|e_?mail|phone",
    re.IGNORECASE,
)
SECRET_VALUES = re.compile(
    r"shp(?:at|ss|ca|pa|ua)_\w+|(?:sk|rk|pk)_(?:live|test)_\w+|whsec_\w+|bei_[\w-]+|(?:reset|invite)_[\w-]{20,}|Bearer\s+\S+"
    r"|\bv1\.[\w-]+\.[\w-]{16,}|s1:[0-9a-f]{16,}|[\w.+-]+@[\w-]+\.[\w.-]+",
)
MASK = "[masked]"


class StandardError(io.StringIO):
    """Standard error as it is at each write: a test or a supervisor may replace it."""

    def write(self, text: str) -> int:
        """Write to what is standard error now; a full disk or a closed pipe stops no service."""
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Push what was written out."""
        with contextlib.suppress(OSError):
            sys.stderr.flush()


def configure(level: str = "info") -> None:
    """Send the service's events of a level or more to standard error; ValueError for no level."""
    atexit.register(discard_unwritable)
    levels = logging.getLevelNamesMapping()
    if level.upper() not in levels:
        raise ValueError("must be debug, info, warning, error or critical")
    terminal = sys.stderr.isatty()
    renderer: Any = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if terminal
        else structlog.processors.JSONRenderer()
    )
    shown = [] if terminal else [structlog.processors.format_exc_info]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *shown,
            mask,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(levels[level.upper()]),
        # One write a line: processes that share standard error must not cut into each other.
        logger_factory=structlog.WriteLoggerFactory(StandardError()),
        cache_logger_on_first_use=False,
    )


def discard_unwritable() -> None:
    """Point standard error at nothing when what waits there cannot be written.

    The interpreter flushes it once more as it ends, and makes of a failure then an exit status of 120.
    """
    try:
        sys.stderr.flush()
    except OSError:
        with contextlib.suppress(OSError), Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())


def mask(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take out what has the name or the look of a secret or a person's address."""
    for name, value in event.items():
        event[name] = MASK if _is_secret(name, value) else _clean(value)
    return event


def _is_secret(name: str, value: Any) -> bool:
    return bool(SECRET_NAMES.search(name)) and isinstance(value, str | bytes)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return SECRET_VALUES.sub(MASK, value)
    if isinstance(value, dict):
        return {
            key: MASK if _is_secret(str(key), item) else _clean(item) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
