"""A turn between its decision and the disk: what it changes, and which rows it alone may write."""

from collections.abc import Sequence
from typing import Any

import structlog

from tolsey.runtime.codec import encode_reply
from tolsey.runtime.decision import Decision, Parked
from tolsey.runtime.turns.mailbox import Cell, Envelope
from tolsey.runtime.turns.way_back import way_back
from tolsey.storage.records.runtime.turns import OutboxRow
from tolsey.storage.tables import TABLES

log = structlog.get_logger()


class PendingTurn:
    """A turn that was taken and is not yet on disk."""

    __slots__ = (
        "after",
        "before",
        "cell",
        "claims",
        "decision",
        "envelope",
        "error",
        "open",
        "outbox",
        "voids",
        "writes",
    )

    def __init__(
        self,
        cell: Cell,
        envelope: Envelope,
        decision: Decision[Any, Any] | None,
        outbox: Sequence[OutboxRow] = (),
        error: BaseException | None = None,
    ) -> None:
        self.cell = cell
        self.envelope = envelope
        self.decision = decision
        self.outbox = outbox
        self.error = error
        self.open = True
        self.before = cell.state
        self.voids = decision is not None and decision.state is not cell.state
        self.after = cell.state if decision is None else decision.state
        self.writes = decision is not None and bool(
            self.voids or decision.records or outbox or envelope.consumes
        )
        self.claims = _claims(decision, envelope)

    @property
    def reply(self) -> str | None:
        """What was answered, as it is kept for whoever asks once more."""
        if self.decision is None or isinstance(self.decision.reply, Parked):
            return None
        return encode_reply(type(self.envelope.message), self.decision.reply)

    @property
    def way_back(self) -> bytes | None:
        """How the state before it is made again of the one after it."""
        try:
            return way_back(self.before, self.after)
        except Exception:  # what is kept for operators never fails a turn
            log.exception("history.not_kept", actor=str(self.cell.id))
            return None


def _claims(decision: Decision[Any, Any] | None, envelope: Envelope) -> tuple[Any, ...]:
    claims: list[Any] = [("outbox", envelope.consumes)] if envelope.consumes else []
    if decision is not None:
        for record in decision.records:
            part = TABLES[type(record)]
            if part.claim:
                claims.append((part.name, part.key_of(record)))
    return tuple(claims)
