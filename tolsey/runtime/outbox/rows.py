"""How effects are written into the outbox as rows, and where the rows wait."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from tolsey.runtime.codec import WireForm, encode, name_in
from tolsey.runtime.decision import Effect, Perform
from tolsey.runtime.messages import ActorId, Call
from tolsey.runtime.turns.mailbox import Cell, Envelope, slot_of
from tolsey.storage.records.runtime.turns import CallState, Known, OutboxRow, Unread


def rows_of(
    effects: Sequence[Effect], cell: Cell, envelope: Envelope, form: WireForm
) -> tuple[OutboxRow, ...]:
    """Write a turn's effects as outbox rows; each has its own key or one made from the turn's."""
    return tuple(
        row_of(
            effect,
            cell.id,
            f"{cell.id}:{envelope.id}:{n}",
            form=form,
            request_id=envelope.request_id,
            consumed=envelope.consumes,
        )
        for n, effect in enumerate(effects)
    )


def row_of(
    effect: Effect,
    owner: ActorId,
    fallback: str,
    *,
    form: WireForm,
    request_id: str | None = None,
    consumed: str | None = None,
) -> OutboxRow:
    """Write one effect as an outbox row; `consumed` is the row that goes in the same commit."""
    to, value = (owner, effect.call) if isinstance(effect, Perform) else (effect.to, effect.message)
    key = effect.key or fallback
    about = "" if isinstance(value, Call) else value.about
    return OutboxRow(
        key=f"{key}+" if key == consumed else key,
        slot=slot_of(to.key),
        kind=to.kind,
        actor_key=to.key,
        name=name_in(form, type(value)),
        payload=encode(value),
        due_at=effect.due_at,
        request_id=request_id,
        lane=value.lane if isinstance(value, Call) else None,
        sender=str(owner) if about else None,
        about=about,
    )


class OutboxStore(Protocol):
    """Where rows wait; `storage.runtime.outbox.Outbox` is the real one."""

    async def due(
        self, limit: int, but: Any, known: Known, slots: Sequence[int] | None = None
    ) -> list[OutboxRow]:
        """Read rows that are due and known, of actors in these slots."""

    async def begin(self, keys: Sequence[str]) -> Mapping[str, CallState]:
        """Note that work on rows begins; answer how far those are that are still there."""

    async def give_back(self, keys: Sequence[str]) -> None:
        """Take back that work on rows began."""

    async def unread(
        self, known: Known, keys: Any, waited: timedelta, slots: Sequence[int] | None = None
    ) -> list[Unread]:
        """Count rows that have waited so long and are not known, or are among the keys."""

    async def add(self, rows: Sequence[OutboxRow]) -> int:
        """Keep rows; answer how many were new."""

    async def replace(self, key: str, rows: Sequence[OutboxRow]) -> None:
        """Take a finished row away and put others in its place."""

    async def postpone(self, row: OutboxRow, seconds: float, error: str) -> None:
        """Try a row again later, with what it counts by now."""

    async def bury(
        self,
        row: OutboxRow,
        id: str,
        error: str,
        follow: Sequence[OutboxRow] = (),
        *,
        holds: bool = True,
    ) -> None:
        """Move a row to the dead letters, and put what follows in its place; say whether others wait behind it."""
