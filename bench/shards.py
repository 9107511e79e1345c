"""What several processes give, what a crossing costs, and how long a store waits for a new owner.

Deliveries go to the service as it is served, behind one port; asks go to counters in processes that
a Shard joins, and to those of xoscar and Ray, which each run in the form that was fastest for them.
Everything shares one machine: with as few cores as it has, more processes can only show what they
cost, not what they gain elsewhere, and processor time for each delivery says what that would be.
"""

import os
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from bench import behind_port, crossings, mapping, measure, takeovers
from bench.cluster import Cluster, opened

PROCESSES = (1, 2, 4)
LOST_MACHINES = 5
PARTS = ("mapping", "deliveries", "apart", "spread", "crossings", "deaths", "handovers")


async def compare(
    urls: list[str], redis_url: str, folder: Path, parts: list[str], *, quick: bool
) -> None:
    """Run the parts that use counters."""
    clusters: list[Cluster] = [await opened(url, redis_url, folder) for url in urls]
    if "spread" in parts:
        await crossings.spread(dict(zip(PROCESSES, clusters, strict=False)), quick=quick)
    first, *others = clusters
    if "crossings" in parts:
        await crossings.compare(first, quick=quick)
    if "deaths" in parts:
        await takeovers.deaths(first, others[: 1 if quick else LOST_MACHINES], quick=quick)
    if "handovers" in parts:
        await takeovers.hand_overs(first, quick=quick)


def main() -> None:
    parser = measure.arguments(__doc__ or "")
    parser.add_argument("--only", choices=PARTS, action="append", help="one part, or several")
    given = parser.parse_args()
    parts = given.only or list(PARTS)
    measure.machine("uvloop")
    print(f"Every process, both servers and the askers share the {os.cpu_count()} cores.")
    if "mapping" in parts:
        mapping.report()
    if parts == ["mapping"]:
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tolsey-bench-")))
        server_url, redis_url = stack.enter_context(measure.servers())
        if redis_url is None:
            parser.error("with DATABASE_URL it needs REDIS_URL")
        if "deliveries" in parts:
            behind_port.compare(PROCESSES, server_url, redis_url, folder, quick=given.quick)
        if "apart" in parts:
            behind_port.apart(PROCESSES[-1], server_url, redis_url, folder, quick=given.quick)
        if set(parts) - {"mapping", "deliveries", "apart"}:
            databases = range(1 + LOST_MACHINES)
            urls = [stack.enter_context(measure.database(server_url)) for _ in databases]
            work = partial(compare, urls, redis_url, folder, parts, quick=given.quick)
            measure.run(work, "uvloop")


if __name__ == "__main__":
    main()
