"""Which slots a process owns: one task beats, looks, takes, hands over, and says until when.

It reads the map of slots from PostgreSQL when it has changed, takes what nobody holds, hands over
what another should have, and renews the lease under which this process answers. Nothing else
changes what the process owns, so no two of these steps interleave.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

import structlog

from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.bus import Bus
from tolsey.runtime.shards.frames import operation_entry
from tolsey.runtime.shards.leases import BEATS, HELD, Observer, Witness
from tolsey.runtime.shards.membership import (
    FrameStreams,
    Heartbeat,
    Member,
    Presences,
    SlotMap,
    choose_key,
    read_line,
)
from tolsey.runtime.shards.placement import place
from tolsey.storage.cache import CacheUnavailable
from tolsey.storage.database import patience
from tolsey.storage.errors import StorageError
from tolsey.storage.records.runtime.slots import Holding

log = structlog.get_logger()

Answer = TypeVar("Answer")

MOVES_AT_ONCE = 128
"""How many slots are handed over together; their asks wait for one another."""

DRAIN_SHARE = 0.4
"""How much of a lease turns may take to end in a hand-over; there is no beat meanwhile."""

MAP_SHARE = 0.3
"""After this much of a lease this process beats beside the map and reads it again, whether it changed or not."""

PATIENCE_SHARE = 0.3
"""How much of a lease PostgreSQL may take to answer before the next beat."""


class Ownership:
    """What one process owns, and what it knows of the others."""

    def __init__(
        self,
        id: str,
        runtime: Runtime,
        presence: Presences,
        slots: SlotMap,
        mail: FrameStreams,
        *,
        lease_seconds: float,
        gone: Callable[[str], bool],
        witnesses: bool,
    ) -> None:
        self.id = id
        self.holdings: dict[int, Holding] = {}
        self.lost_data: list[Callable[[], None]] = []
        self.announce: Callable[[], None] = lambda: None
        """Called when the map, or who is there, has changed."""
        self.bus: Bus
        """Set once it is made: it is made with what listens to it."""
        self._runtime = runtime
        self._presence = presence
        self._slots = slots
        self._mail = mail
        self._lease_seconds = lease_seconds
        self._time = runtime.time
        self._observer = Observer(lease_seconds, gone, self._time.monotonic, me=id)
        self._witness = Witness(self._ended) if witnesses else None
        self._line = Heartbeat(
            0,
            socket.gethostname(),
            os.getpid(),
            self._time.now().isoformat(),
            keys=mail.key_ids,
        )
        self._lines: dict[str, Heartbeat] = {}
        self._texts: dict[str, str] = {}
        self._written: set[str | None] = {None}
        """What may stand in our line: what was written last, or tried to be written since."""
        self._server = ""
        self._changes = -1
        self._map_read_at = float("-inf")
        self._beaten_at = self._proven_at = float("-inf")
        """When the last beat was sent that Redis has, and that PostgreSQL has."""
        self._proofs = 0
        self._map_is_old = True
        self._away_since: float | None = None
        self._hurry = asyncio.Event()
        self._round_ended = asyncio.Event()

    # What it knows.

    def members(self) -> list[Member]:
        """List the processes of the deployment, as this one sees them."""
        held = [holding.owner for holding in self.holdings.values()]
        lines = {**{owner: Heartbeat(0, draining=True) for owner in held if owner}, **self._lines}
        return [
            Member(
                process,
                line.host,
                line.pid,
                line.since,
                line.draining,
                not self._observer.is_silent(process),
                round(self._observer.silent_seconds(process), 3),
                held.count(process),
            )
            for process, line in sorted(lines.items())
        ]

    async def joined(self) -> None:
        """Wait until this process has beaten and looked at the map for the first time."""
        await self._round_ended.wait()
        if self._away_since is not None:
            await self.round()

    async def round(self) -> None:
        """Wait until this process has beaten and looked at the map once more."""
        self._map_is_old = True
        for _ in range(2):  # the one that is under way may have looked already
            self._hurry.set()
            await self._round_ended.wait()

    @property
    def leased(self) -> bool:
        """Whether this process may answer for its actors now."""
        return self._time.monotonic() <= self._runtime.scheduler.lease_until

    @property
    def lease_left_seconds(self) -> float:
        """For how long this process may still answer for its actors without another beat."""
        return max(0.0, self._runtime.scheduler.lease_until - self._time.monotonic())

    @property
    def away_seconds(self) -> float:
        """For how long Redis or the map has been out of reach; 0 when it is not."""
        return 0.0 if self._away_since is None else self._time.monotonic() - self._away_since

    def others(self) -> Sequence[str]:
        """List the other living processes."""
        return [process for process in self._lines if process != self.id and self.is_alive(process)]

    def is_alive(self, process: str) -> bool:
        """Whether a process is there, as far as is known."""
        return process in self._lines and not self._observer.is_silent(process)

    def candidates(self) -> list[str]:
        """List who may own slots: who was seen beating lately and is not about to stop."""
        found = [
            process
            for process, line in self._lines.items()
            if not line.draining and process != self.id and self._observer.is_fresh(process)
        ]
        return found if self._line.draining else [*found, self.id]

    def retire(self) -> None:
        """Say that this process is about to stop: its slots go to the others from now on."""
        if not self._line.draining:
            self._line = replace(self._line, draining=True)
            self._hurry.set()

    def look(self) -> None:
        """Look at the map soon: somebody changed it."""
        self._map_is_old = True
        self._hurry.set()

    # The one task that changes what this process owns.

    async def run(self, sweep: Callable[[], None]) -> None:
        """Beat and act until cancelled; `sweep` is called after every round."""
        self._runtime.scheduler.lease_until = float("-inf")
        while True:
            self._hurry.clear()
            try:
                await self._beat_and_act()
                self._away_since = None
            except StorageError as error:
                if self._away_since is None:
                    self._away_since = self._time.monotonic()
                    log.warning("shard.away", error=repr(error))
            except Exception as error:
                log.exception("shard.failed", error=repr(error))
            sweep()
            ended, self._round_ended = self._round_ended, asyncio.Event()
            ended.set()
            await self._time.sleep(self._lease_seconds / BEATS, unless=self._hurry)

    async def _beat_and_act(self) -> None:
        if self._time.monotonic() - self._map_read_at > 2 * MAP_SHARE * self._lease_seconds:
            # Cut from PostgreSQL we can commit nothing: who can is to take our place.
            await self._read_map()
        await self._beat()
        proof_is_old = self._time.monotonic() - self._proven_at > MAP_SHARE * self._lease_seconds
        if self._map_is_old or proof_is_old or not self.leased:
            await self._prove()  # never without the beat before: cut from Redis we reach nobody
        await self._take_orphans()
        await self._hand_over()
        await self._forget_dead()
        if not await self._mail.keep():
            # Whoever thought us dead took them away, and our line may be back without a gap.
            await self._start_over(first=False)

    async def _in_time(self, work: Awaitable[Answer]) -> Answer:
        """Wait for PostgreSQL no longer than the lease allows; what hangs is given up with its connection."""
        with patience(PATIENCE_SHARE * self._lease_seconds):
            return await work

    async def _exchange(
        self, to: str | None, seen: Mapping[int, int], from_owner: str | None = None
    ) -> dict[int, int]:
        """Give slots to an owner; when that fails only the map knows whether it was done."""
        self._map_is_old = True
        given = await self._in_time(self._slots.take(to, seen, from_owner=from_owner))
        for slot, epoch in given.items():
            if slot in self.holdings:
                self.holdings[slot] = self.holdings[slot]._replace(epoch=epoch, owner=to)
        return given

    async def _beat(self) -> None:
        """Beat in Redis, and see who else is there."""
        self._line = replace(self._line, beat=self._line.beat + 1)
        line = self._line.encode()
        expected = set(self._written)
        self._written.add(line)
        sent = self._time.monotonic()
        look = await self._presence.beat(self.id, line)
        self._written = {line}
        if look.before not in expected or look.server != self._server:
            await self._start_over(first=not self._server)
        self._server = look.server
        self.bus.clock_offset = look.server_seconds - self._time.monotonic()
        self._beaten_at = sent
        if self.leased:  # one that ended begins anew with both beats, not with an old one
            await self._renew()
        if look.changes != self._changes:
            self._changes, self._map_is_old = look.changes, True
        joined = look.processes.keys() != self._lines.keys()
        self._texts = look.processes
        self._lines = {process: read_line(text) for process, text in look.processes.items()}
        self._observe()
        # Others may have read their keys before ours changed (rules/service#encryption-keys).
        announced = [self._lines[process].keys for process in self.others()]
        self._mail.seal_with(choose_key(self._mail.key_ids, announced))
        if self._witness is not None:
            self._witness.watch(p for p in self._lines if not self._observer.is_dead(p))
        if joined:
            self.announce()

    async def _prove(self) -> None:
        """Beat beside the map, then read it: whoever would take our slots sees the one or changes the other."""
        sent = self._time.monotonic()
        self._proofs += 1
        await self._in_time(self._slots.beat(self.id, self._proofs))
        await self._read_map()
        self._proven_at = sent
        await self._renew()

    async def _renew(self) -> None:
        """Answer for our actors for as long as both beats last."""
        until = min(self._beaten_at, self._proven_at) + HELD * self._lease_seconds
        if until < self._time.monotonic():
            return
        if not self.leased:
            await self._reclaim()
        self._runtime.scheduler.lease_until = until

    def _observe(self) -> None:
        holders = {holding.owner for holding in self.holdings.values() if holding.owner}
        self._observer.observe(self._texts, holders)

    async def _start_over(self, *, first: bool) -> None:
        """Redis knows nothing of us: it is new, was emptied or restarted, or we are new."""
        await self._mail.open(self.id)
        self._observer.start_over()
        self._map_is_old = True
        if not first:
            log.warning("shard.redis_lost_data")
            self._runtime.telemetry.counters["redis_data_lost"] += 1
            for hear in self.lost_data:
                hear()
        self.bus.resend()

    async def _reclaim(self) -> None:
        """Our lease had ended: what we held is ours only as far as nobody took it meanwhile."""
        held = dict(self._runtime.slots.epochs)
        if not held:
            return
        kept = await self._exchange(self.id, held, self.id)
        log.warning("shard.lease_lapsed", held=len(held), kept=len(kept))
        self._runtime.telemetry.counters["leases_lapsed"] += 1
        for slot, epoch in held.items():
            if slot not in kept:
                self._runtime.slots.lost(slot, epoch)
        self._runtime.slots.own(kept)
        for hear in self.lost_data:
            hear()
        self.bus.resend()

    async def _read_map(self) -> None:
        self._map_is_old = False  # whoever says otherwise meanwhile is heard
        asked_at = self._time.monotonic()
        try:
            self.holdings = await self._in_time(self._slots.read())
        except StorageError:
            self._map_is_old = True
            raise
        self._map_read_at = self._time.monotonic()
        beats = {one.owner: one.beat for one in self.holdings.values() if one.owner}
        self._observer.observe_map(beats, asked_at)
        self._observe()
        ours = {}
        for slot, (epoch, owner, *_) in self.holdings.items():
            held = self._runtime.slots.epochs.get(slot)
            if owner == self.id and held == epoch:
                continue
            if held is not None:  # it may be ours again, but others had it in between
                self._runtime.slots.lost(slot, held)
            if owner == self.id:
                ours[slot] = epoch
        if ours:
            self._runtime.slots.own(ours)
            self._runtime.telemetry.counters["slots_received"] += len(ours)
        self.announce()

    async def _take_orphans(self) -> None:
        """Take the slots that nobody alive holds and that are to be ours."""
        orphans = self._orphans(self._observer.may_be_dead)
        if any(owner is not None for owner in orphans.values()):
            # The map before the beat: whoever comes back to life between the two has a new epoch,
            # and our claim of the old one fails. Where nobody was, nobody comes back.
            await self._read_map()
            await self._beat()
            orphans = self._orphans(self._observer.is_dead)
        if not orphans:
            return
        seen = {slot: self.holdings[slot].epoch for slot in orphans}
        taken = await self._exchange(self.id, seen)
        self._runtime.slots.own(taken)
        self._runtime.telemetry.counters["slots_taken"] += len(taken)
        if taken:
            log.info("shard.took", slots=len(taken), of=sorted({str(o) for o in orphans.values()}))
        self.announce()
        await self.tell_change()

    def _orphans(self, is_dead: Callable[[str], bool]) -> dict[int, str | None]:
        # Each owner is judged once, not once for each of its slots: this is done at every beat.
        owners = {owner for _, owner, *_ in self.holdings.values()}
        dead = {owner for owner in owners if owner is None or is_dead(owner)}
        if not dead:
            return {}
        wanted = place(self.candidates(), self.holdings)
        return {
            slot: owner
            for slot, (_, owner, *_) in self.holdings.items()
            if owner in dead and wanted.get(slot) == self.id
        }

    async def _hand_over(self) -> None:
        """Give slots to the processes that are to own them now."""
        wanted = place(self.candidates(), self.holdings)
        leaving = [
            slot for slot in self._runtime.slots.epochs if wanted.get(slot, self.id) != self.id
        ]
        for at in range(0, len(leaving), MOVES_AT_ONCE):
            part = leaving[at : at + MOVES_AT_ONCE]
            if at:  # a hand-over may have waited for turns
                await self._beat()
            await self._runtime.slots.hand_over(
                part, partial(self._give, wanted), seconds=DRAIN_SHARE * self._lease_seconds
            )
            self.announce()

    async def _give(self, wanted: Mapping[int, str], held: Mapping[int, int]) -> None:
        receivers: dict[str, dict[int, int]] = {}
        for slot, epoch in held.items():
            receivers.setdefault(wanted[slot], {})[slot] = epoch
        for to, part in receivers.items():
            given = await self._exchange(to, part, self.id)
            self._runtime.telemetry.counters["slots_handed_over"] += len(given)
            paused = [list(actor) for actor in self._runtime.slots.paused_of(given)]
            self.bus.post((to, "in"), operation_entry("look", {"paused": paused}))
            log.info("shard.handed_over", slots=len(given), to=to)
        await self.tell_change()

    async def tell_change(self) -> None:
        """Let the others look at the map."""
        with suppress(CacheUnavailable):
            await self._presence.changed()
        for process in self.others():
            self.bus.post((process, "in"), operation_entry("look", {}))
        await asyncio.sleep(0)  # noqa: TID251 - it lets others run, and waits for no time

    async def _forget_dead(self) -> None:
        """Take away what is left of processes that ended and hold nothing any more."""
        held = {holding.owner for holding in self.holdings.values()}
        for process in list(self._lines):
            if process != self.id and process not in held and self._observer.is_dead(process):
                await self._presence.forget(process)
                await self._mail.drop(process)
                await self._in_time(self._slots.forget(process))

    def _ended(self, process: str) -> None:
        log.info("shard.peer_ended", process=process)
        self._observer.end(process)
        self.bus.fail(process)
        self.look()

    async def release(self) -> None:
        """Leave what is still ours to whoever comes; call it when no turn can commit any more."""
        self._runtime.slots.epochs.clear()
        await self._slots.release(self.id)
        await self._slots.forget(self.id)
        await self._presence.forget(self.id)
        await self.tell_change()
        await self._time.sleep(
            0.01
        )  # for the frames to leave; who misses them sees it a beat later
        if self._witness is not None:
            self._witness.close()
