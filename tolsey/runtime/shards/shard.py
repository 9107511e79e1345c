"""One process among many: its life in a deployment, and what its operators ask of it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import anyio
import orjson

from tolsey.runtime.codec import encode_error
from tolsey.runtime.messages import ActorId
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.bus import Bus, Tasks
from tolsey.runtime.shards.frames import Entry, operation_entry
from tolsey.runtime.shards.leases import is_gone, process_id
from tolsey.runtime.shards.membership import FrameStreams, Member, Presences, SlotMap
from tolsey.runtime.shards.ownership import Ownership
from tolsey.runtime.shards.routing import Journal, Routing
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.slots import Holding

LEASE_SECONDS = 5.0
LEAVE_SECONDS = 10.0

Operation = Callable[[Any], Awaitable[Any]]


class Shard:
    """A process among those of a deployment: an async context manager around its life there.

    Entering joins and takes a share of the slots; leaving hands them over, lets the runtime drain,
    and releases what is left.
    """

    def __init__(
        self,
        runtime: Runtime,
        presence: Presences,
        slots: SlotMap,
        mail: FrameStreams,
        answered: Journal,
        *,
        id: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        gone: Callable[[str], bool] = is_gone,
        witnesses: bool = True,
    ) -> None:
        self.id = id or process_id()
        self.operations: dict[str, Operation] = {"look": self._look, "poll": self._poll}
        """What this process does when another asks it: JSON in, JSON out."""
        self._runtime, self._time = runtime, runtime.time
        self._slots = slots
        self._mail = mail
        self._lease_seconds = lease_seconds
        self._tasks = Tasks()
        self._running: list[asyncio.Task[None]] = []
        self._ownership = Ownership(
            self.id,
            runtime,
            presence,
            slots,
            mail,
            lease_seconds=lease_seconds,
            gone=gone,
            witnesses=witnesses,
        )
        self.bus = self._ownership.bus = Bus(
            self.id, mail, self._take, runtime.telemetry, runtime.form, time=runtime.time
        )
        self._routing = Routing(self._ownership, runtime, self.bus, answered, self._tasks)
        self._ownership.announce = self._routing.announce

    async def __aenter__(self) -> Self:
        self._runtime.slots.router = self._routing
        sweep = lambda: self.bus.sweep(self._routing.owner_of)  # noqa: E731 - said once, here
        self._running = [
            asyncio.create_task(self._ownership.run(sweep), name="ownership"),
            asyncio.create_task(self.bus.run(), name="bus"),
        ]
        with self._time.move_on_after(self._lease_seconds):
            await self._ownership.joined()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            with self._time.move_on_after(LEAVE_SECONDS):
                await self.leave()
            await self._runtime.drain()
            owning, carrying = self._running
            await self._end(owning)
            with suppress(StorageError), self._time.move_on_after(2):
                await self._ownership.release()
            await self._end(carrying)
            with suppress(StorageError), self._time.move_on_after(1):
                await self._mail.drop(self.id)
            await self._tasks.close()

    async def _end(self, task: asyncio.Task[None]) -> None:
        while not task.done():  # a driver that is cancelled as it finishes may swallow it
            task.cancel()
            with self._time.move_on_after(0.2):
                await asyncio.wait({task})

    def retire(self) -> None:
        """Say that this process is about to stop: its slots go to the others from now on."""
        self._ownership.retire()

    async def leave(self) -> None:
        """Hand every slot to the others, and keep routing; with no others, keep them."""
        self.retire()
        while self._runtime.slots.epochs and self._ownership.candidates():
            await self.round()

    async def move(self, slot: int, to: str) -> None:
        """Hand a slot to a process and keep it there. Raises LookupError for an unknown process."""
        if to not in self._ownership.candidates():
            raise LookupError(to)
        await self._slots.pin(slot, to)
        await self._ownership.tell_change()
        await self.round()

    async def round(self) -> None:
        """Wait until this process has beaten and looked at the map once more."""
        await self._ownership.round()

    @property
    def holdings(self) -> dict[int, Holding]:
        """Who holds which slot, by our copy of the map."""
        return self._ownership.holdings

    @property
    def lost_data(self) -> list[Callable[[], None]]:
        """What is called when Redis lost data or was away: announcements may not have arrived."""
        return self._ownership.lost_data

    @property
    def leased(self) -> bool:
        """Whether this process may answer for its actors now."""
        return self._ownership.leased

    @property
    def lease_left_seconds(self) -> float:
        """For how long it may still answer for its actors without another beat."""
        return self._ownership.lease_left_seconds

    @property
    def away_seconds(self) -> float:
        """For how long Redis or the map has been out of reach; 0 when it is not."""
        return self._ownership.away_seconds

    def members(self) -> list[Member]:
        """List the processes of the deployment, as this one sees them."""
        return self._ownership.members()

    async def call(
        self,
        process: str,
        operation: str,
        payload: Any = None,
        *,
        timeout: float = 5.0,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Any:
        """Let a process do something of its own; JSON in, JSON out.

        Raises Unavailable when it is not there, LookupError for an operation that nobody knows,
        and what the operation raised.
        """
        if process == self.id:
            return await self.operations[operation](payload)
        if not self._ownership.is_alive(process):
            raise LookupError(process)
        flight = self.bus.fly(operation_entry(operation, payload), None, timeout)
        try:
            return orjson.loads(await self.bus.exchange(flight, process))
        finally:
            self.bus.end(flight)

    async def call_all(
        self, operation: str, payload: Any = None, *, seconds: float = 2.0
    ) -> dict[str, Any]:
        """Let every living process do something; answer what each of them said, errors as they are."""

        async def one(process: str) -> Any:
            try:
                return await self.call(process, operation, payload, timeout=seconds)
            except Exception as error:  # noqa: BLE001 - one silent process must not silence the others
                return error

        living = [self.id, *self._ownership.others()]
        return dict(zip(living, await asyncio.gather(*map(one, living)), strict=True))

    # What other processes send.

    def _take(self, sender: str, entry: Entry, age: float) -> None:
        if entry["is"] == "operation":
            self._tasks.start(self._operate(sender, entry))
        else:
            self._routing.take(sender, entry, age)

    async def _operate(self, sender: str, entry: Entry) -> None:
        number = entry["number"]
        try:
            done = await self.operations[entry["name"]](entry["payload"])
            answer = {"is": "reply", "number": number, "payload": orjson.dumps(done).decode()}
        except Exception as error:  # noqa: BLE001 - the one who asked is told
            answer = {"is": "error", "number": number, "error": encode_error(error)}
        if number:
            self.bus.post((sender, "re"), answer)

    async def _poll(self, _: Any) -> None:
        """Another process left work in the outbox."""
        self._runtime.slots.wake_outbox()

    async def _look(self, payload: Mapping[str, Any]) -> None:
        """Another process changed the map."""
        for kind, key in payload.get("paused", ()):
            self._runtime.scheduler.pause(ActorId(kind, key))
        self._ownership.look()
