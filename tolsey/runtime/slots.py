"""Which slots of all actors this process serves, and how they come and go."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import structlog

from tolsey.runtime.clock import Time
from tolsey.runtime.errors import NotOwner
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.outbox.dispatcher import Dispatcher
from tolsey.runtime.turns.mailbox import SLOTS, Cell, slot_of
from tolsey.runtime.turns.parking import Parking
from tolsey.runtime.turns.scheduler import Scheduler
from tolsey.storage.records.runtime.turns import OutboxRow

log = structlog.get_logger()


class Router(Protocol):
    """The way to actors that other processes own; `shards.routing.Routing` is the real one."""

    async def ask(
        self,
        to: ActorId,
        message: Message[Any],
        *,
        id: str,
        timeout: float,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Any:
        """Ask an actor at whoever owns it, which may be this process again by then."""

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know that they are on disk."""

    def wake(self, slots: Collection[int]) -> None:
        """Let the owners of these slots look at the outbox now."""


class HeldSlots:
    """The slots this process serves, each under the epoch it holds it under."""

    scheduler: Scheduler
    dispatcher: Dispatcher
    """Set by the runtime, whose parts know each other."""

    def __init__(self, epochs: Mapping[int, int], parking: Parking, time: Time) -> None:
        self.epochs = dict(epochs)
        self.leaving_cells: dict[ActorId, Cell] = {}
        """Actors whose turns still end here, though their slots are on their way to another process."""
        self.router: Router | None = None
        self._leaving: dict[int, int] = {}
        self._parking = parking
        self._time = time

    def owns(self, slot: int) -> bool:
        """Whether this process owns a slot."""
        return slot in self.epochs

    def owned(self) -> Sequence[int] | None:
        """List the slots this process owns; None for all of them."""
        return None if len(self.epochs) == SLOTS else list(self.epochs)

    def is_leaving(self, slot: int) -> bool:
        """Whether a slot is on its way to another process."""
        return slot in self._leaving

    def epoch_of(self, slot: int) -> int:
        """Name the epoch under which commits for a slot go to disk; -1 when it is not ours."""
        epoch = self.epochs.get(slot)
        return self._leaving.get(slot, -1) if epoch is None else epoch

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know of them."""
        if self.router is not None:
            self.router.forward(rows)

    def wake_outbox(self, slots: Collection[int] | None = None) -> None:
        """Look at the outbox now, at whoever owns these slots; None: here."""
        away = [slot for slot in slots or () if slot not in self.epochs]
        if slots is None or len(away) < len(slots):
            self.dispatcher.wake()
        if away and self.router is not None:
            self.router.wake(away)

    def own(self, epochs: Mapping[int, int]) -> None:
        """Serve slots from now on, under these epochs."""
        self.epochs.update(epochs)
        self.wake_outbox()

    def lost(self, slot: int, epoch: int) -> None:
        """Stop serving a slot that was ours under this epoch; another process owns it."""
        if self.epochs.get(slot) == epoch:
            log.warning("slot.lost", slot=slot, epoch=epoch)
            del self.epochs[slot]
            self._evict(self._cells_of({slot}))

    async def hand_over(
        self,
        slots: Collection[int],
        give: Callable[[Mapping[int, int]], Awaitable[None]],
        *,
        seconds: float = 5.0,
    ) -> None:
        """Let go of slots: end their turns, flush their commits, then call `give` with the epochs.

        New asks for them wait at the router meanwhile. What has not ended after `seconds` is left
        to the fence: its asker is sent to the new owner.
        """
        held = {slot: self.epochs.pop(slot) for slot in slots if slot in self.epochs}
        self._leaving.update(held)
        for cell in self._cells_of(held):
            del self.scheduler.cells[cell.id]
            if cell.id in self.scheduler.paused:
                self.scheduler.refuse([cell], NotOwner)
            self.leaving_cells[cell.id] = cell
        try:
            with self._time.move_on_after(seconds):
                while self._at_work(held):
                    await self._time.sleep(0.002)
            await give(held)
        finally:
            gone = [cell for cell in self.leaving_cells.values() if cell.slot in held]
            for slot in held:
                del self._leaving[slot]
            for cell in gone:
                del self.leaving_cells[cell.id]
            self._evict(gone)

    def paused_of(self, slots: Collection[int]) -> list[ActorId]:
        """List the paused actors of slots that leave, and keep them paused here no longer."""
        paused = [actor for actor in self.scheduler.paused if slot_of(actor.key) in slots]
        for actor in paused:
            del self.scheduler.paused[actor]
        return paused

    def _cells_of(self, slots: Collection[int]) -> list[Cell]:
        return [cell for cell in self.scheduler.cells.values() if cell.slot in slots]

    def _at_work(self, held: Mapping[int, int]) -> bool:
        return self.dispatcher.at_work(held) or any(
            cell.slot in held and (cell.busy or cell.queue or cell.pending)
            for cell in self.leaving_cells.values()
        )

    def _evict(self, cells: Iterable[Cell]) -> None:
        """Let go of cells; whoever still waits for one is told that the actor is elsewhere.

        Turns on their way to disk stay with the committer, which alone knows what becomes of them.
        """
        cells = list(cells)
        self.scheduler.refuse(cells, NotOwner)
        for cell in cells:
            if self.scheduler.cells.get(cell.id) is cell:
                del self.scheduler.cells[cell.id]
            cell.evict()
            self._parking.fail(cell.id, NotOwner)
