"""A process among the others of its deployment: its share of the slots, and what they tell one another."""

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from tolsey.http.oauth.agents import Agents
from tolsey.http.operators.measures.exposition import ProcessCollector
from tolsey.http.webhooks.directory import TELL_SECONDS
from tolsey.runtime.shards.oversight import Oversight
from tolsey.runtime.shards.shard import Shard
from tolsey.service.parts import Parts
from tolsey.settings import Settings
from tolsey.storage.runtime import slots
from tolsey.storage.runtime.presence import Presence
from tolsey.storage.runtime.slots import Slots
from tolsey.storage.runtime.streams import Streams


async def prepare_shard(
    stack: AsyncExitStack, settings: Settings, redis_url: str, parts: Parts
) -> Shard:
    """Create this process's shard; it joins the deployment and takes slots when it is entered."""
    stored = Slots(parts.database)
    deployment = await stored.deployment()
    presence = Presence(redis_url, deployment)
    stack.push_async_callback(presence.close)
    streams = Streams(redis_url, deployment, parts.vault)
    stack.push_async_callback(streams.close)
    shard = Shard(
        parts.runtime,
        presence,
        stored,
        streams,
        partial(slots.reply_of, parts.database),
        lease_seconds=settings.lease_seconds,
    )
    parts.shard = shard
    _agree(shard, parts)
    return shard


def _agree(shard: Shard, parts: Parts) -> None:
    """Say what the processes tell and ask one another, beside messages to actors."""
    directory = parts.directory

    async def forget_shop(shop_domain: str) -> None:
        directory.forget(shop_domain)

    async def tell_others(shop_domain: str) -> None:
        await shard.call_all("forget_shop", shop_domain, seconds=TELL_SECONDS)

    directory.tell_others = tell_others

    async def refused_deliveries(shop_domain: str) -> dict[str, Any] | None:
        found = directory.refused(shop_domain)
        if found is None:
            return None
        return {"count": found.count, "lastAt": found.last_at.isoformat()}

    shard.operations |= {
        "forget_shop": forget_shop,
        "refused_deliveries": refused_deliveries,
        "agents_refused": parts.requests.agents_refused,
        "metrics": ProcessCollector(parts.runtime, shard, parts.requests).families,
    }
    shard.lost_data.append(directory.forget_all)
    Oversight(shard, parts.runtime).offer()


def agents_of(stack: AsyncExitStack, settings: Settings, shard: Shard, parts: Parts) -> Agents:
    """Guard the stores' endpoints; whom one process lets in, all forget when it ends."""

    async def tell_others() -> None:
        # The name is on the wire: processes of the release before know no other.
        await shard.call_all("forget_guests", seconds=TELL_SECONDS)

    async def forget(payload: Any) -> None:
        del payload
        agents.access_tokens.forget_here()

    agents = Agents.of(settings, parts.database, parts.clock, tell_others)
    stack.push_async_callback(agents.close)
    shard.operations["forget_guests"] = forget
    return agents


def last_alive(shard: Shard, lease_seconds: float) -> int:
    """Count the processes that are there, or were when Redis was last heard of."""
    silence = shard.away_seconds + lease_seconds
    return sum(one.alive or one.silent_seconds <= silence for one in shard.members())
