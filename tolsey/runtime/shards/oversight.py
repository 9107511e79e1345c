"""What operators see of all processes at once, and do to an actor wherever it is.

Every process answers for itself when another asks it (`Shard.operations`); whichever process an
operator's request has reached gathers the answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Any, Literal

from tolsey.runtime.admin import Rank, Sort
from tolsey.runtime.errors import NotOwner, ShardUnavailable
from tolsey.runtime.messages import ActorId
from tolsey.runtime.registry import Runtime
from tolsey.runtime.shards.routing import UNOWNED
from tolsey.runtime.shards.shard import Shard
from tolsey.runtime.turns.mailbox import slot_of

Act = Literal["inspect", "pause", "resume", "passivate", "drain"]

GATHER_SECONDS = 2.0
"""How long a process that does not answer is waited for."""

ACT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Gathered:
    """The first actors of an order among all processes."""

    rows: list[tuple[Rank, dict[str, Any]]]
    silent: list[str]
    """The processes that did not answer, whose actors are not among the rows."""


class Oversight:
    """Looks at the actors of every process, and acts on one wherever it is."""

    def __init__(self, shard: Shard, runtime: Runtime) -> None:
        self._shard = shard
        self._runtime = runtime

    def offer(self) -> None:
        """Let other processes ask this one for what it knows of itself."""
        self._shard.operations |= {
            "vitals": self._vitals,
            "actors": self._actors,
            "actor": self._actor,
        }

    async def vitals(self) -> dict[str, dict[str, Any] | None]:
        """Tell how every living process is; none for one that does not answer."""
        answers = await self._shard.call_all("vitals", seconds=GATHER_SECONDS)
        return {
            process: None if isinstance(answer, BaseException) else answer
            for process, answer in answers.items()
        }

    async def actors(
        self,
        limit: int,
        *,
        kind: str | None = None,
        slot: int | None = None,
        sort: Sort = "mailbox",
        after: Rank | None = None,
    ) -> Gathered:
        """List actors that are awake in any process: the first so many of an order, after a place."""
        wanted = {"limit": limit, "kind": kind, "slot": slot, "sort": sort, "after": after}
        answers = await self._shard.call_all("actors", wanted, seconds=GATHER_SECONDS)
        lists = [
            [((float(rank[0]), *rank[1:]), {**row, "process": process}) for rank, row in answer]
            for process, answer in answers.items()
            if not isinstance(answer, BaseException)
        ]
        rows = list(islice(merge(*lists, key=lambda one: one[0]), limit))
        return Gathered(
            rows,
            [process for process, answer in answers.items() if isinstance(answer, BaseException)],
        )

    async def actor(self, act: Act, to: ActorId) -> dict[str, Any]:
        """Look at an actor or act on it at whoever owns it; raises what it raises there."""
        try:
            return await self._at_owner(act, to)
        except NotOwner:
            await self._shard.round()
            return await self._at_owner(act, to)

    async def _at_owner(self, act: Act, to: ActorId) -> dict[str, Any]:
        slot = slot_of(to.key)
        holding = self._shard.holdings.get(slot)
        owner = self._shard.id if self._runtime.slots.owns(slot) else holding and holding.owner
        if owner is None:
            raise ShardUnavailable(UNOWNED)
        try:
            answers = await self._shard.call(owner, "actor", [act, *to], timeout=ACT_SECONDS)
        except LookupError as error:
            if error.args != (owner,):
                raise
            raise NotOwner from error  # it has left, and nobody has taken the slot yet
        return {**answers, "process": owner}

    # What this process tells of itself.

    async def _vitals(self, _: Any) -> dict[str, Any]:
        runtime, bus = self._runtime, self._shard.bus
        return {
            "slots": len(runtime.slots.epochs),
            "actors": runtime.admin.awake,
            "leaseLeftSeconds": round(self._shard.lease_left_seconds, 3),
            "awaySeconds": round(self._shard.away_seconds, 3),
            "lag": {
                "busSeconds": round(bus.lag_seconds, 3),
                "mailbox": runtime.admin.waiting,
                "uncommitted": runtime.admin.uncommitted,
                "unread": [
                    {
                        "message": f"{found.kind}.{found.name}",
                        "rows": found.rows,
                        "waitedSeconds": round(found.waited.total_seconds()),
                    }
                    for found in runtime.admin.unread
                ],
            },
            "waitingCalls": {
                name: lane.waiting for name, lane in runtime.admin.lanes if lane.waiting
            },
            "inFlight": {"asks": bus.in_flight, "effects": runtime.admin.effects_in_flight},
        }

    async def _actors(self, wanted: Mapping[str, Any]) -> list[tuple[Rank, dict[str, Any]]]:
        after = wanted["after"]
        return await self._runtime.admin.first(
            wanted["limit"],
            kind=wanted["kind"],
            slot=wanted["slot"],
            sort=wanted["sort"],
            after=after and (float(after[0]), *after[1:]),
        )

    async def _actor(self, wanted: tuple[Act, str, str]) -> dict[str, Any]:
        act, kind, key = wanted
        acts = {
            "inspect": self._runtime.admin.inspect,
            "pause": self._runtime.admin.pause,
            "resume": self._runtime.admin.resume,
            "passivate": self._runtime.admin.passivate,
            "drain": self._runtime.admin.drain,
        }
        return await acts[act](ActorId(kind, key))


def ranges(slots: Iterable[int]) -> str:
    """Write slots shortly: `0-3,7,9-11`."""
    parts: list[list[int]] = []
    for slot in sorted(slots):
        if parts and parts[-1][-1] == slot - 1:
            parts[-1][1:] = [slot]
        else:
            parts.append([slot])
    return ",".join("-".join(map(str, part)) for part in parts)
