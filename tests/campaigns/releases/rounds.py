"""Rounds of the campaign, one after the other until there were so many operations, and what came of each.

`python -m tests.campaigns.releases.rounds SEED OPERATIONS` runs them by hand; a round has servers of its own, goes up
and back, and is judged. What came of it is written down, so that a run that was stopped goes on with the next one.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from tests.campaigns.cluster.processes import CHECKOUT
from tests.campaigns.cluster.verdict import SAVED
from tests.campaigns.releases.campaign import (
    STEPS,
    Outcome,
    Replaced,
    Steps,
    campaign,
    code_before,
    meanwhile,
)

ROUND = 50_000
"""So many operations are judged together."""


async def rounds(
    operations: int,
    before: Path,
    *,
    seed: int = 1,
    steps: Steps = STEPS,
    say: Callable[[str], object] = print,
) -> list[dict[str, Any]]:
    """Run what is left of so many operations, each round with the next seed; answers what came of all."""
    record = SAVED / f"releases-{seed}-{_commit()}.jsonl"
    past = record.read_bytes().splitlines() if record.exists() else []
    results: list[dict[str, Any]] = [orjson.loads(line) for line in past]
    while (left := operations - sum(one["operations"] for one in results)) > 0:
        number = seed + len(results)
        outcome = await campaign(min(left, ROUND), before, seed=number, steps=steps, say=say)
        say(str(outcome))
        results.append(_written(number, outcome))
        SAVED.mkdir(parents=True, exist_ok=True)
        with record.open("ab") as out:
            out.write(orjson.dumps(results[-1]) + b"\n")
    say(summary(results))
    return results


def summary(results: list[dict[str, Any]]) -> str:
    """Add the rounds up."""
    operations = sum(one["operations"] for one in results)
    seconds = sum(one["seconds"] for one in results)
    found = sum(len(one["found"]) for one in results)
    ways = "".join(
        f"\n  {sender} to {receiver} " + " ".join(f"{name}={n}" for name, n in names.most_common())
        for (sender, receiver), names in crossed(results).items()
    )
    replaced = [Replaced(*one) for result in results for one in result["replaced"]]
    return (
        f"releases rounds={len(results)} operations={operations} findings={found}"
        f" a second={operations / seconds:.0f} {meanwhile(replaced)}{ways}"
    )


def crossed(results: list[dict[str, Any]]) -> dict[tuple[str, str], Counter[str]]:
    """Count how often each class crossed in all rounds, by the releases of its sender and its receiver."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for sender, receiver, name, count in chain.from_iterable(one["crossed"] for one in results):
        counts[sender, receiver][name] += count
    return counts


def taken(results: list[dict[str, Any]]) -> Counter[str]:
    """Count how often each class of message was taken in all rounds."""
    return sum((Counter(one["taken"]) for one in results), Counter())


def _commit() -> str:
    """Name the code that is tried: rounds of another are not counted."""
    told = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 - as developers have it
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    return told.stdout.strip()


def _written(seed: int, outcome: Outcome) -> dict[str, Any]:
    return {
        "seed": seed,
        "operations": outcome.operations,
        "seconds": round(outcome.seconds, 1),
        "told": dict(outcome.told),
        "taken": dict(outcome.taken),
        "crossed": [[*which, count] for which, count in sorted(outcome.crossed.items())],
        "replaced": [astuple(one) for one in outcome.replaced],
        "found": [list(one) for one in outcome.found],
    }


def main(seed: str, operations: str) -> int:
    """Run a campaign by hand."""
    with tempfile.TemporaryDirectory() as folder:
        before = code_before(Path(folder) / "before")
        if before is None:
            sys.exit("The clone does not have the release before: git fetch --unshallow")
        results = asyncio.run(rounds(int(operations), before, seed=int(seed)))
    found = [one for result in results for one in result["found"]]
    print(*found[:20], sep="\n")  # noqa: T201 - the figures are what a campaign is for
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
