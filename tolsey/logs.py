"""Structured logs: one JSON object a line (colours on a terminal), and no secret in any of them."""

import atexit
import contextlib
import io
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any, Final

import structlog

from tolsey.scrubbing import MASK, scrub

SECRET_NAMES: Final = re.compile(
    r"secret|token|password|passwd|authorization|cookie|signature|api_?key|credential|private"
    r"|e_?mail|phone|mobile|card_?number|iban",
    re.IGNORECASE,
)
SHORTEST_CARD: Final = 10**11
PLAIN: Final = frozenset({bool, float, NoneType})
LIBRARIES_LEVEL: Final = logging.WARNING
"""From here on what libraries say is of interest to operators."""


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
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            # Before it is masked, also on a terminal: a traceback repeats what it was about.
            structlog.processors.format_exc_info,
            mask,
            # Nobody outside says what these are.
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(levels[level.upper()]),
        # One write a line: processes that share standard error must not cut into each other.
        logger_factory=structlog.WriteLoggerFactory(StandardError()),
        cache_logger_on_first_use=False,
    )
    listen_to_libraries()


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
    """Take out what has the name or the look of a secret, or leads to a person (rules/service#logs)."""
    for name, value in event.items():
        event[name] = _clean(value, is_secret=_is_secret(name))
    return event


@lru_cache(1024)
def _is_secret(name: str) -> bool:
    return SECRET_NAMES.search(name) is not None


def _clean(value: Any, *, is_secret: bool = False) -> Any:
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is int:
        return MASK if value > SHORTEST_CARD and scrub(str(value)) == MASK else value
    if isinstance(value, Mapping):
        return {
            scrub(str(key)): _clean(item, is_secret=is_secret or _is_secret(str(key)))
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item, is_secret=is_secret) for item in value]
    return MASK if is_secret else scrub(value if isinstance(value, str) else repr(value))


class Libraries(logging.Handler):
    """Takes what libraries say by `logging` as events of our own, so that nothing of it goes unmasked."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log it."""
        try:
            said = record.getMessage()
        except (TypeError, ValueError):  # its arguments are not those of its text
            said = str(record.msg)
        log = structlog.get_logger()
        tell = log.error if record.levelno >= logging.ERROR else log.warning
        tell("library", logger=record.name, said=said, exc_info=record.exc_info)


def listen_to_libraries() -> None:
    """Have warnings, and what libraries log, said as our own events."""
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, Libraries)]:
        root.removeHandler(handler)
    root.addHandler(Libraries(LIBRARIES_LEVEL))
    logging.captureWarnings(capture=True)


def tell_last_words() -> None:
    """Mask what an uncaught error of the process or of a thread repeats."""

    def tell(error: BaseException) -> None:
        StandardError().write(scrub("".join(traceback.format_exception(error))))

    sys.excepthook = lambda _, error, __: tell(error)
    threading.excepthook = lambda told: tell(told.exc_value) if told.exc_value else None
