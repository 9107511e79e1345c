"""A process dies at each turn of its loop in turn while it carries out one milestone of a launch; the next goes on.

One milestone of each kind of executor, by the runner: from the turn that sends it, over its looks, its changes and
their results, to the turn that says it is done. Each time the shop and the milestone are as they were before.
"""

from collections import Counter
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from tests.campaigns.mortals import IN_A_ROW, STEP
from tests.campaigns.test_killed_launches import KilledLaunch, opened
from tolsey.actors.store.launch.messages import ContinueLaunch, RunMilestone
from tolsey.storage.database import Database, Row

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(3_600)]

MILESTONES: Final = {
    "operations.location": 0,
    "brand.kit": 0,
    "brand.assets": 1,
    "catalog.products": 1,
    "storefront.pages": 1,
    "catalog.publish": 2,
}
"""How many of a launch's messages came before its turn did."""
SHARES: Final = 4 if STEP == 1 else 1
"""So many tests share the turns of a milestone."""
STRIDE: Final = SHARES if STEP == 1 else 61
TRIED: Final = [
    (one, share)
    for one in (MILESTONES if STEP == 1 else ["operations.location"])
    for share in range(SHARES)
]
MOST: Final = 2_000
KEPT: Final = ("products", "collections", "pages", "discounts", "setup")
RESET: Final = (
    """
    UPDATE launch_milestones SET state = 'pending', run = 1, attempts = 0, step = 0, written = '{}',
        operations = '', stop = NULL, result = NULL, reason = NULL, detail = NULL, scope = NULL,
        not_before = NULL, queued_at = NULL, started_at = NULL, finished_at = NULL
    WHERE store_id = $1 AND milestone = $2 AND $3 <> ''
    """,
    "DELETE FROM launch_attempts WHERE store_id = $1 AND milestone = $2 AND $3 <> ''",
    "DELETE FROM store_contexts WHERE store_id = $1 AND module = 'texts.' || $2 AND $3 <> ''",
    "UPDATE store_launches SET launch_id = $3 WHERE store_id = $1 AND $2 <> ''",
)


async def reset(
    database: Database, launch: KilledLaunch, milestone: str, before: Any, id: str
) -> None:
    """Put the shop and a milestone back to where they were before its turn came, as of another launch."""
    for sql in RESET:
        await database.execute(sql, launch.owner.store_id, milestone, id)
    for name, value in before.items():
        setattr(launch.shop, name, deepcopy(value))


async def found(database: Database, launch: KilledLaunch, milestone: str) -> Row:
    (row,) = await database.fetch(
        "SELECT state, step, run, attempts, detail, reason FROM launch_milestones"
        " WHERE store_id = $1 AND milestone = $2",
        launch.owner.store_id,
        milestone,
    )
    return row


def again(milestone: str, launch: KilledLaunch) -> RunMilestone:
    """Run a milestone again, as a person does who looked at the shop."""
    return RunMilestone(
        milestone=milestone, user_id=launch.owner.user_id, is_forced=True, at=datetime.now(UTC)
    )


@pytest.mark.parametrize(("milestone", "share"), TRIED)
async def test_a_milestone_makes_its_things_once_whatever_turn_a_process_dies_at(
    database: Database,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: Any,
    *,
    milestone: str,
    share: int,
) -> None:
    died: Counter[str] = Counter()
    turn, outlived = -share, 0
    async with opened(database, database_url, redis_url, tmp_path, 0) as (launch, _):
        befores = []
        for message in launch.messages():
            befores.append({name: deepcopy(getattr(launch.shop, name)) for name in KEPT})
            await launch.forks.follow(launch.owner.store_id, message)
        before = befores[MILESTONES[milestone]]
        await reset(database, launch, milestone, before, "launch_spared")
        go_on = ContinueLaunch(at=datetime.now(UTC))
        await launch.forks.follow(launch.owner.store_id, go_on)
        launch.edit()
        spared = await found(database, launch, milestone)
        assert spared["state"] == "succeeded", tuple(spared)
        made = launch.made("launch_spared")
        while outlived < IN_A_ROW:
            turn += STRIDE
            assert turn < MOST
            id, edited = f"launch_turn_{turn}", launch.happened["edited"]
            await reset(database, launch, milestone, before, id)
            is_outlived = await launch.is_outlived(go_on, turn)
            outlived = outlived + 1 if is_outlived else 0
            row = await found(database, launch, milestone)
            died[f"{row['state']} {row['step']}"] += not is_outlived
            await launch.forks.follow(launch.owner.store_id, go_on)
            launch.edit()
            row = await found(database, launch, milestone)
            runs = 1
            if row["reason"] == "outcome_unknown":
                # The merchant wrote it before anybody looked: whose it is nobody can tell, until a person runs it again.
                assert launch.happened["edited"] > edited, tuple(row)
                await launch.forks.follow(launch.owner.store_id, again(milestone, launch))
                row, runs = await found(database, launch, milestone), 2
            told = (turn, *row, launch.forks.said.read_text()[-4_000:])
            # A stop of the process uses no attempt; a change that was lost with it may be looked for in a second one.
            assert (row["state"], row["run"]) == ("succeeded", runs), told
            assert row["attempts"] <= 2, told
            assert launch.made(id) == made, told
    with capsys.disabled():
        print(f"\n{milestone}: {turn} turns, died when it was {dict(died)}")  # noqa: T201 - what a campaign is for
    assert await database.fetch("SELECT FROM dead_letters") == []
