"""What a map of 1,024 slots costs when many processes share it: a part of `bench/shards.py`.

Nothing runs: placement is the runtime's own function, and lines are those that processes write.
"""

from collections import Counter
from datetime import UTC, datetime
from time import perf_counter

from bench import measure
from bench.cluster import LEASE_SECONDS
from tolsey.runtime.shards.leases import BEATS
from tolsey.runtime.shards.membership import Heartbeat
from tolsey.runtime.shards.placement import place
from tolsey.runtime.turns.mailbox import SLOTS

FLEETS = (4, 16, 32, 64, 128, 256)
SAMPLES = 10


def report() -> None:
    """Print how even the shares are, and what finding out costs."""
    rows = []
    for number in FLEETS:
        fullest, emptiest, took = [], [], []
        for fleet in range(SAMPLES):
            processes = [f"{fleet:012x}-{n}-{n}-{n:08x}" for n in range(number)]
            place(processes, {})  # weighs each process once, as the first of many calls does
            started = perf_counter()
            shares = Counter(place(processes, {}).values())
            took.append(perf_counter() - started)
            fullest.append(max(shares.values()))
            emptiest.append(min(shares.get(one, 0) for one in processes))
        line = Heartbeat(1_000_000, "app-1.example", 12345, datetime.now(UTC).isoformat()).encode()
        answer = number * (len(line) + len(processes[0]))
        mean = SLOTS / number
        rows.append(
            (
                f"{number}",
                f"{sum(fullest) / SAMPLES / mean:.2f}",
                f"{sum(emptiest) / SAMPLES / mean:.2f}",
                1000 * sum(took) / SAMPLES,
                answer / 1000,
                answer * number * BEATS / LEASE_SECONDS / 1e6,
            )
        )
    measure.table(
        f"{SLOTS:,} slots shared by many processes (means of {SAMPLES} fleets; share of the fullest and"
        " the emptiest over the mean; milliseconds to place all; what beats read from Redis)",
        ["processes", "fullest", "emptiest", "place ms", "KB a beat", "MB/s of all"],
        rows,
    )
