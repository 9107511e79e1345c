"""Processes die at turns of their loop, one after the other, while a store is launched and its merchant edits the shop.

The next process goes on. The shop is as a launch leaves it that nothing disturbed: each thing was made once, what the
merchant changed stands, and no death used an attempt.
"""

import os
import random
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.campaigns.mortals import Mortals, mortals
from tests.http.launch.merchant import SPEC
from tests.http.people import settings_of
from tests.mcp.tools.two_stores import SHOPS, Owner, connect, settle
from tolsey.actors.store.launch.effects import told_modules
from tolsey.actors.store.launch.messages import BeginLaunch, DecideCheckpoint
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.runtime.messages import Message
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import (
    ALL_SCOPES,
    LAUNCH_SCOPES,
    WRITE_SCOPES,
    Shop,
    ShopSpec,
)
from tolsey.service import running
from tolsey.storage.database import Database

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1_800)]

IS_LONG: Final = bool(os.environ.get("CAMPAIGN_SECONDS"))
SEEDS: Final = range(1, 13 if IS_LONG else 2)
DEATHS: Final = 30 if IS_LONG else 6
"""So often processes die in a row before one is let live."""
TURNS: Final = (60, 600, 3_000)
"""A process dies at one of so many turns: soon, in the middle, or late if ever."""
EDITED: Final = "<p>In our own words.</p>"
DECIDED: Final = ("brand.approve", "catalog.review")
"""What a person decides on the way; each sets off the next part."""
UNTOUCHED: Final = frozenset({"launch.preflight", "launch.verify"})
"""What runs by itself only after somebody ordered."""
OWN_TO_A_SHOP: Final = re.compile(r"(^|_)ids?$|I[dD]$|(^|_)at$|At$|_key$|^staged$|^product$")
NUMBERED: Final = re.compile(r"gid://shopify/(\w+)/\d+")


@dataclass
class KilledLaunch:
    """A store that is launched by processes that die, and the shop in which it is."""

    platform: Platform
    owner: Owner
    forks: Mortals
    luck: random.Random
    happened: Counter[str] = field(default_factory=Counter)

    @property
    def shop(self) -> Shop:
        return self.platform.shop(SHOPS[self.owner.name])

    def messages(self) -> Sequence[Message[Any]]:
        """Say what a launch is told that goes as far as it does before somebody orders."""
        at, user_id = datetime.now(UTC), self.owner.user_id
        spec = {**SPEC, "products": [{"title": "Blanket", "price": "120", "stock": 3}]}
        begin = BeginLaunch(
            launch_id=f"launch_{self.owner.name}",
            user_id=user_id,
            digest="d",
            modules=told_modules({"onboardingSpec": spec, "givenBrandKit": {}, "brandKit": {}}),
            facts=(),
            at=at,
        )
        decisions = [
            DecideCheckpoint(milestone=one, action="done", user_id=user_id, note=None, at=at)
            for one in DECIDED
        ]
        return (begin, *decisions)

    async def launch(self, *, deaths: int) -> None:
        """Launch the store as far as it goes before somebody orders."""
        for message in self.messages():
            for _ in range(deaths):
                if await self.is_outlived(message):
                    break
            await self.forks.follow(self.owner.store_id, message)
            self.edit()

    async def is_outlived(self, message: Message[Any], turn: int = 0) -> bool:
        """Ask a process that dies at a turn, drawn if it is none, unless it is done by then."""
        turn = turn or self.luck.randrange(1, self.luck.choice(TURNS))
        code = await self.forks.ask(self.owner.store_id, message, dies_at=turn)
        assert code in {0, -signal.SIGKILL}, self.forks.said.read_text()[-4_000:]
        # What a dead process sent last comes to the shop before what the next one asks.
        async with httpx.AsyncClient() as client:
            for _ in range(3):
                await client.get(f"{self.platform.url}/{self.shop.domain}/")
        self.happened["outlived" if code == 0 else "died"] += 1
        self.edit()
        return code == 0

    def edit(self) -> None:
        """Have the merchant write the page about themselves as soon as there is one."""
        for page in self.shop.pages.values():
            if page.handle == "about" and page.body != EDITED:
                page.body = EDITED
                self.happened["edited"] += 1

    def made(self, name: str = "") -> Any:
        """Say all that is in the shop, without the numbers and the name by which it is known there."""
        shop = self.shop
        kept = {
            "products": list(shop.products.values()),
            "collections": list(shop.collections.values()),
            "pages": list(shop.pages.values()),
            "discounts": shop.discounts,
            "setup": shop.setup,
        }
        return plain(kept, name or self.owner.name)


def plain(thing: Any, name: str, around: frozenset[int] = frozenset()) -> Any:
    """Write something as values that two shops of the same launch have in common, without what it lies in."""
    if is_dataclass(thing) and not isinstance(thing, type):
        thing = {one.name: getattr(thing, one.name) for one in fields(thing)}
    if isinstance(thing, Mapping):
        kept = [
            (str(key), value) for key, value in thing.items() if not OWN_TO_A_SHOP.search(str(key))
        ]
        told = [(key, plain(value, name, around)) for key, value in kept if id(value) not in around]
        return sorted(
            told if not all(key.isdecimal() for key, _ in told) else [one for _, one in told],
            key=repr,
        )
    if isinstance(thing, (list, tuple, set, frozenset)):
        return sorted((plain(one, name, around | {id(one)}) for one in thing), key=repr)
    if isinstance(thing, str):
        return NUMBERED.sub(r"\1", thing).replace(name, "")
    return repr(thing)


@asynccontextmanager
async def opened(
    database: Database, database_url: str, redis_url: str, folder: Path, seed: int
) -> AsyncIterator[tuple[KilledLaunch, KilledLaunch]]:
    """Connect two stores to shops that have nothing yet."""
    scopes = (*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES)
    platform = Platform()
    for domain in SHOPS.values():
        spec = ShopSpec(
            domain=domain, client_id=domain, scopes=scopes, maximum_points=1e9, restore_rate=1e9
        )
        platform.add_shop(spec)
    async with platform.serve():
        given = {"database_url": database_url, "redis_url": redis_url}
        settings = settings_of(**given, commerce_url_template=platform.url_template)
        owners = []
        async with running(settings, timers=False) as started:
            for place, name in enumerate(SHOPS, 1):
                owner = await settle(started.service, name, place * 1_000_000, datetime.now(UTC))
                token = platform.shop(SHOPS[name]).issue_token(platform.now())
                await connect(started.service, owner, token.text, scopes)
                owners.append(owner)
            await database.execute("DELETE FROM launch_milestones")
            await database.execute("DELETE FROM store_launches")
        async with mortals("store", database_url, platform.url_template, folder) as forks:
            luck = random.Random(seed)  # noqa: S311 - the same seed, the same deaths
            ann, bob = (KilledLaunch(platform, owner, forks, luck) for owner in owners)
            yield ann, bob


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_launch_makes_each_thing_once_whatever_turns_its_processes_die_at(
    database: Database, database_url: str, redis_url: str, tmp_path: Path, capsys: Any, *, seed: int
) -> None:
    async with opened(database, database_url, redis_url, tmp_path, seed) as (killed, spared):
        await spared.launch(deaths=0)
        await killed.launch(deaths=DEATHS)
        with capsys.disabled():
            print(f"\nseed {seed}: {dict(killed.happened)}")  # noqa: T201 - what a campaign is for
        assert killed.happened["died"] > 0
        rows = await database.fetch("SELECT * FROM launch_milestones")
        for row in rows:
            if PLAYBOOK.milestones[row["milestone"]].is_human or row["milestone"] in UNTOUCHED:
                continue
            told = (row["store_id"], row["milestone"], row["state"], row["detail"])
            assert row["state"] == "succeeded", (told, killed.forks.said.read_text()[-4_000:])
            # A stop of the process uses no attempt; a change that was lost with it may be looked for in a second one.
            assert row["run"] == 1, told
        assert killed.made() == spared.made()
        assert len(repr(killed.made())) > 2_000, killed.made()
        (about,) = [one for one in killed.shop.pages.values() if one.handle == "about"]
        assert about.body == EDITED
    assert await database.fetch("SELECT FROM dead_letters") == []
