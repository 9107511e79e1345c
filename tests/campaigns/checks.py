"""What must hold when a run is over: every answer against the disk, and the disk against itself."""

from collections import Counter
from collections.abc import Iterator

from tests.campaigns.account import Deposit, Mark, MarkRow, Move, Posting
from tests.campaigns.simulation import KEYS, Try, World

WRITTEN = ("reply", "accepted", "duplicate")
NEVER = ("none", "failed", "refused")


def check(world: World) -> None:
    """Add what is wrong to what the run found."""
    for rule in (lost_or_doubled, unsound_totals, unsound_journal, unsound_order, lost_money):
        world.run.found += rule(world)


def lost_or_doubled(world: World) -> Iterator[str]:
    """Every acknowledged effect is on disk exactly once; a refused one is not there at all."""
    postings: list[Posting] = world.disk.appended["sim_postings"]
    marks: list[MarkRow] = world.disk.appended["sim_marks"]
    written = Counter([posting.op for posting in postings] + [mark.op for mark in marks])
    tries: dict[str, list[Try]] = {}
    for attempt in world.run.tries:
        tries.setdefault(attempt.op, []).append(attempt)
    for op, attempts in tries.items():
        message, told = attempts[0].message, {attempt.told for attempt in attempts}
        writes = isinstance(message, Deposit | Mark | Move) or bool(getattr(message, "amount", 0))
        if not writes:
            continue
        if told & set(WRITTEN) and written[op] != 1:
            yield f"{op} was acknowledged and is {written[op]} times on disk"
        elif told <= set(NEVER) and written[op]:
            yield f"{op} had no effect, they said, and is on disk"
        elif written[op] > 1:
            yield f"{op} is {written[op]} times on disk"
        replies = sum(attempt.told == "reply" for attempt in attempts)
        if replies > 1:
            yield f"{op} took effect {replies} times, they said"
        if isinstance(message, Move) and written[f"in {op}"] != written[op]:
            yield f"{op} left {written[op]} times and arrived {written[f'in {op}']} times"


def unsound_totals(world: World) -> Iterator[str]:
    """The row of an account is the sum of its postings, numbered from one without a gap."""
    for key in KEYS:
        postings = [p for p in world.disk.appended["sim_postings"] if p.key == key]
        row = world.disk.rows.get(("sim_accounts", key))
        total, count = (row.total, row.count) if row else (0, 0)
        if total != sum(posting.amount for posting in postings):
            yield f"{key} has {total}, its postings say otherwise"
        if [posting.n for posting in postings] != list(range(1, count + 1)):
            yield f"{key} has {count} changes, its postings are {[p.n for p in postings]}"


def unsound_journal(world: World) -> Iterator[str]:
    """Versions are contiguous from one, and no epoch comes after a later one."""
    for id, lines in world.disk.journal.items():
        if [line.version for line in lines] != list(range(1, len(lines) + 1)):
            yield f"{id} has versions {[line.version for line in lines]}"
        epochs = [line.epoch for line in lines]
        if epochs != sorted(epochs):
            yield f"{id} has epochs {epochs}"


def unsound_order(world: World) -> Iterator[str]:
    """What arrived first is on disk first, for each process and account."""
    asks = Counter(attempt.op for attempt in world.run.tries)
    for key in KEYS:
        ops = [p.op for p in world.disk.appended["sim_postings"] if p.key == key]
        for process in world.processes:
            asked = {
                attempt.op
                for attempt in world.run.tries
                if attempt.process == process.name
                and attempt.told == "reply"
                and asks[attempt.op] == 1
            }
            arrived = process.runtime.arrivals
            order = [arrived[op] for op in ops if op in asked and op in arrived]
            if order != sorted(order):
                yield f"{key} took turns out of order: {order}"


def lost_money(world: World) -> Iterator[str]:
    """Nothing is in two places and nothing is nowhere."""
    postings: list[Posting] = world.disk.appended["sim_postings"]
    paid = sum(p.amount for p in postings if p.amount > 0 and not p.op.startswith("in "))
    held = sum(row.total for key, row in world.disk.rows.items() if key[0] == "sim_accounts")
    if paid != held:
        yield f"{paid} came in, {held} is there"
    if world.disk.lost:
        yield f"effects lost: {[row.key for row in world.disk.lost]}"
    if world.disk.dead:
        yield f"dead letters: {[row.key for row in world.disk.dead]}"
