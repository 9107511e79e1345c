"""The way of an ask to its actor, whichever process has it by the time the ask arrives.

Who asks guesses the owner by its copy of the map. Who is asked and is not the owner looks at the
map anew before it says so. An ask that was sent before is looked up in the journal first: the turn
that it caused may be on disk, with the reply that was lost.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol

import structlog

from tolsey.runtime.codec import decode, decode_reply, encode, encode_error, encode_reply
from tolsey.runtime.errors import DeadlineExceeded, NotOwner, ShardUnavailable, Stopping
from tolsey.runtime.messages import NAMES, ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.bus import MOVED, Bus, Flight, Tasks
from tolsey.runtime.shards.frames import FIELDS, Entry, operation_entry
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.runtime.turns.scheduler import CHAIN, LAPSED, REQUEST_ID
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.slots import Holding
from tolsey.storage.records.runtime.turns import OutboxRow

log = structlog.get_logger()

HOLD_SECONDS = 2.0
"""How long an ask waits for a slot to get an owner before it is refused."""

REMEMBERED_ASKS = 20_000
UNOWNED = "a shard without an owner"

Journal = Callable[[str, str, str], Awaitable[str | None]]
"""Reads what an ask from another process was answered, by kind, key and message id."""


class ShardStanding(Protocol):
    """What routing needs to know of the shard."""

    id: str
    holdings: dict[int, Holding]

    @property
    def leased(self) -> bool:
        """Whether this process may answer for its actors."""

    def is_alive(self, process: str) -> bool:
        """Whether a process is there, as far as is known."""

    async def round(self) -> None:
        """Look at the map anew."""


class Routing:
    """Finds the owner of an actor, asks it, and takes what others ask of actors here."""

    def __init__(
        self, shard: ShardStanding, runtime: Runtime, bus: Bus, answered: Journal, tasks: Tasks
    ) -> None:
        self._shard = shard
        self._runtime = runtime
        self._bus = bus
        self._answered = answered
        self._tasks = tasks
        self._changed = asyncio.Event()
        self._serving: dict[tuple[str, int], None] = {}
        self._served: OrderedDict[tuple[str, int], None] = OrderedDict()

    # What this process asks (`registry.Router`).

    async def ask(
        self,
        to: ActorId,
        message: Message[Any],
        *,
        id: str,
        timeout: float,  # noqa: ASYNC109 - the deadline travels with the message
    ) -> Any:
        """Ask an actor at whoever owns it. Raises what `Runtime.ask` raises."""
        slot = slot_of(to.key)
        chain = [list(actor) for actor in CHAIN.get()]
        entry: Entry = {
            "is": "ask",
            "kind": to.kind,
            "key": to.key,
            "message": NAMES[type(message)],
            "payload": encode(message),
            "id": id,
            "chain": chain,
            "request_id": REQUEST_ID.get(),
            "epoch": -1,
        }
        flight = self._bus.fly(entry, slot, timeout)
        try:
            while True:
                owner = await self._owner(slot, flight)
                if owner == self._shard.id:
                    try:
                        return await self._ask_here(to, message, id, flight)
                    except NotOwner:
                        await self._shard.round()
                        continue
                if slot in self._shard.holdings:
                    flight.entry["epoch"] = self._shard.holdings[slot].epoch
                answer = await self._bus.exchange(flight, owner)
                if answer is not MOVED:
                    return decode_reply(type(message), answer)
                if self.owner_of(slot) == owner:
                    await self._shard.round()  # it knows better than our copy of the map
        finally:
            self._bus.end(flight)

    async def _ask_here(self, to: ActorId, message: Message[Any], id: str, flight: Flight) -> Any:
        if flight.sends:
            try:
                reply = await self._on_disk(to, id)
            except StorageError as error:
                raise ShardUnavailable(f"storage: {error}", outcome="unknown") from error
            if reply is not None:
                return decode_reply(type(message), reply)
        left = flight.until - asyncio.get_running_loop().time()
        return await self._runtime.receive(
            to, message, id=id, timeout=left, chain=CHAIN.get(), request_id=REQUEST_ID.get()
        )

    async def _owner(self, slot: int, flight: Flight) -> str:
        """Wait for a slot to have a living owner; an ask that was sent waits to its deadline."""
        loop = asyncio.get_running_loop()
        hold = flight.until if flight.sends else min(flight.until, loop.time() + HOLD_SECONDS)
        while True:
            if self._runtime.slots.owns(slot):
                if self._shard.leased:
                    return self._shard.id
            elif not self._runtime.slots.is_leaving(slot):
                owner = self._elsewhere(slot)
                if owner is not None:
                    return owner
            changed = self._changed
            left = hold - loop.time()
            if left <= 0 or (not self._shard.leased and not flight.sends):
                if flight.sends:
                    raise DeadlineExceeded("no owner in time")
                raise ShardUnavailable(UNOWNED if self._shard.leased else LAPSED)
            await self._runtime.time.sleep(left, unless=changed)

    def owner_of(self, slot: int) -> str | None:
        """Name the process that owns a slot, by our copy of the map; none when nobody does."""
        if self._runtime.slots.owns(slot):
            return self._shard.id
        holding = self._shard.holdings.get(slot)
        return holding.owner if holding is not None else None

    def _elsewhere(self, slot: int) -> str | None:
        """Name the other, living process that owns a slot; none when there is none."""
        owner = self.owner_of(slot)
        if owner is None or owner == self._shard.id or not self._shard.is_alive(owner):
            return None
        return owner

    def announce(self) -> None:
        """Say that the map, or who is there, has changed."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def forward(self, rows: Sequence[OutboxRow]) -> None:
        """Let the owners of rows know that they are on disk; their polls find what is lost."""
        for row in rows:
            owner = self._elsewhere(row.slot)
            if owner is not None:
                entry = {name: getattr(row, name) for name in FIELDS["row"]}
                self._bus.post((owner, "in"), {"is": "row", **entry})

    def wake(self, slots: Collection[int]) -> None:
        """Let the owners of these slots look at the outbox now."""
        for owner in dict.fromkeys(map(self._elsewhere, slots)):
            if owner is not None:
                self._bus.post((owner, "in"), operation_entry("poll", None))

    # What others ask of actors here.

    def take(self, sender: str, entry: Entry, age: float) -> None:
        """Take an ask or a row that another process sent."""
        if entry["is"] == "row":
            self._take_row(entry)
            return
        about = (sender, entry["number"])
        left = entry["seconds"] - age
        if left <= 0 or about in self._serving:
            return  # nobody waits for it any more, or it is being answered
        self._serving[about] = None
        # Under this very epoch nobody but us can have taken it; under another somebody may have.
        slot = slot_of(entry["key"])
        here = self._runtime.slots.epochs.get(slot)
        again = entry["again"] or about in self._served or entry["epoch"] != here
        if not again and self._runtime.slots.owns(slot):
            self._begin(about, entry, left)
        else:
            self._tasks.start(self._begin_later(about, entry, left, again=again))

    def _take_row(self, entry: Entry) -> None:
        if self._runtime.slots.owns(entry["slot"]):
            self._runtime.dispatch((OutboxRow(**{name: entry[name] for name in FIELDS["row"]}),))

    async def _begin_later(
        self, about: tuple[str, int], entry: Entry, left: float, *, again: bool
    ) -> None:
        """Take an ask that may not be for us, or may have been taken before."""
        slot, to = slot_of(entry["key"]), ActorId(entry["kind"], entry["key"])
        try:
            if not self._runtime.slots.owns(slot) and not (
                entry["chain"] and self._runtime.slots.is_leaving(slot)
            ):
                await self._shard.round()
            if again and self._runtime.slots.owns(slot):
                reply = await self._on_disk(to, entry["id"])
                if reply is not None:
                    self._reply(about, {"is": "reply", "payload": reply})
                    return
        except StorageError as error:
            # A former copy may have taken effect; nobody can say now.
            unknown = ShardUnavailable(f"storage: {error}", outcome="unknown")
            self._reply(about, {"is": "error", "error": encode_error(unknown)})
            return
        self._begin(about, entry, left)

    def _begin(self, about: tuple[str, int], entry: Entry, left: float) -> None:
        try:
            message = self._read(entry)
            future = self._runtime.receive(
                ActorId(entry["kind"], entry["key"]),
                message,
                id=entry["id"],
                timeout=left,
                chain=tuple(ActorId(*actor) for actor in entry["chain"]),
                request_id=entry["request_id"],
            )
        except (NotOwner, Stopping):
            self._reply(about, {"is": "moved"})
        except Exception as error:  # noqa: BLE001 - the one who asks is told
            self._reply(about, {"is": "error", "error": encode_error(error)})
        else:
            future.add_done_callback(lambda done: self._answer(about, type(message), done))

    def _read(self, entry: Entry) -> Message[Any]:
        """Read what is asked. Raises ShardUnavailable for what this version does not take."""
        name, kind = entry["message"], entry["kind"]
        try:
            message: Message[Any] = decode(name, kind, entry["payload"])
            self._runtime.kinds[kind].turns[type(message)]
        except (LookupError, ValueError) as error:
            log.warning("bus.not_known", name=name, kind=kind, why=type(error).__name__)
            self._runtime.telemetry.counters["asks_not_known"] += 1
            why = f"its process is of a version that does not take this {name}"
            raise ShardUnavailable(why) from error
        return message

    def _answer(
        self, about: tuple[str, int], message: type[Message[Any]], done: asyncio.Future[Any]
    ) -> None:
        error = ShardUnavailable("cancelled") if done.cancelled() else done.exception()
        if error is None:
            payload = encode_reply(message, done.result())
            self._reply(about, {"is": "reply", "payload": payload})
        elif isinstance(error, NotOwner | Stopping):
            self._reply(about, {"is": "moved"})
        else:
            self._reply(about, {"is": "error", "error": encode_error(error)})

    def _reply(self, about: tuple[str, int], answer: Entry) -> None:
        self._serving.pop(about, None)
        self._served[about] = None
        while len(self._served) > REMEMBERED_ASKS:
            self._served.popitem(last=False)
        self._runtime.telemetry.counters["bus_served"] += 1
        self._bus.post((about[0], "re"), {**answer, "number": about[1]})

    async def _on_disk(self, to: ActorId, id: str) -> str | None:
        """Read what an ask was answered that may have been taken before."""
        self._runtime.telemetry.counters["replies_looked_up"] += 1
        return await self._answered(to.kind, to.key, id)
