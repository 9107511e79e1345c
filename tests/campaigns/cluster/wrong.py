"""Ways to make a right history wrong, each with the rule that it must be seen to break."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from tests.campaigns.cluster.histories import KEYS, History
from tests.campaigns.cluster.linear import CREDIT, Call, Line
from tolsey.runtime.turns.mailbox import slot_of

Mutation = Callable[[History, random.Random], "History | None"]
MUTATIONS: dict[str, tuple[frozenset[str], Mutation]] = {}
"""Ways to make a right history wrong, and the rules one of which must then be broken."""


def mutation(*rules: str) -> Callable[[Mutation], Mutation]:
    """List a way to make a history wrong; it answers None when that history has no place for it."""

    def add(change: Mutation) -> Mutation:
        MUTATIONS[change.__name__] = (frozenset(rules), change)
        return change

    return add


def changed(history: History, old: Call, new: Call) -> History:
    return replace(history, calls=tuple(new if call is old else call for call in history.calls))


def rewritten(history: History, lines: Sequence[Line]) -> History:
    """Put other lines on disk, numbered as they come."""
    counts: dict[str, int] = {}
    numbered = []
    for order, line in enumerate(lines):
        counts[line.key] = counts.get(line.key, 0) + 1
        numbered.append(replace(line, version=counts[line.key], order=order))
    return replace(history, lines=tuple(numbered))


def effective(history: History, call: Call) -> int | None:
    """Tell the version that an answer speaks of."""
    if call.told == "reply":
        return call.version
    if call.told == "duplicate":
        return next(line.version for line in history.lines if line.op == call.op)
    return None


def at_version(history: History, call: Call, version: int) -> Call:
    total = sum(line.amount for line in history.of(call.key)[:version])
    return replace(call, version=version, total=total)


def answers(history: History, *, read: bool | None = None) -> list[Call]:
    return [
        call
        for call in history.calls
        if call.told == "reply" and (read is None or (call.what == "read") == read)
    ]


def written(history: History, told: str) -> list[Call]:
    """List the calls with this answer whose operation got no other that says it is on disk."""
    said: dict[str, set[str]] = {}
    for call in history.calls:
        said.setdefault(call.op, set()).add(call.told)
    return [
        call
        for call in history.calls
        if call.told == told and call.what != "read" and said[call.op] <= {told, "unknown", "none"}
    ]


@mutation("stale_read")
def a_read_answers_what_was_overwritten_before_it_was_called(
    history: History, luck: random.Random
) -> History | None:
    places = []
    for read in answers(history, read=True):
        known = [
            effective(history, call) or 0
            for call in history.calls
            if call.key == read.key and call.answered and call.answered < read.invoked
        ]
        if known and max(known) > 0:
            places.append((read, max(known)))
    if not places:
        return None
    read, newest = luck.choice(places)
    return changed(history, read, at_version(history, read, luck.randrange(newest)))


@mutation("phantom_read")
def a_read_answers_a_version_that_never_was(
    history: History, luck: random.Random
) -> History | None:
    reads = answers(history, read=True)
    if not reads:
        return None
    read = luck.choice(reads)
    beyond = len(history.of(read.key)) + luck.randrange(1, 4)
    return changed(history, read, replace(read, version=beyond, total=7))


@mutation("future_read", "stale_read")
def a_read_answers_what_was_called_only_after_it(
    history: History, luck: random.Random
) -> History | None:
    places = []
    for read in answers(history, read=True):
        for call in history.calls:
            if call.key == read.key and call.told == "reply" and call.what != "read":
                first = min(c.invoked for c in history.calls if c.op == call.op)
                if read.answered is not None and first > read.answered:
                    places.append((read, call.version))
    if not places:
        return None
    read, version = luck.choice(places)
    assert version is not None
    return changed(history, read, at_version(history, read, version))


@mutation("wrong_answer")
def an_answer_carries_a_wrong_total(history: History, luck: random.Random) -> History | None:
    told = answers(history)
    if not told:
        return None
    call = luck.choice(told)
    return changed(history, call, replace(call, total=(call.total or 0) + luck.choice((-5, 3))))


@mutation("wrong_answer", "order")
def a_write_answers_the_version_of_another(history: History, luck: random.Random) -> History | None:
    places = [call for call in answers(history, read=False) if len(history.of(call.key)) > 1]
    if not places:
        return None
    call = luck.choice(places)
    others = [v for v in range(1, len(history.of(call.key)) + 1) if v != call.version]
    return changed(history, call, at_version(history, call, luck.choice(others)))


def _dropped(history: History, luck: random.Random, told: str) -> History | None:
    places = [call for call in written(history, told) if call.what != "transfer"]
    if not places:
        return None
    gone = luck.choice(places).op
    return rewritten(history, [line for line in history.lines if line.op != gone])


@mutation("lost_write")
def an_answered_write_is_lost(history: History, luck: random.Random) -> History | None:
    return _dropped(history, luck, "reply")


@mutation("lost_write")
def a_write_answered_as_duplicate_never_was(
    history: History, luck: random.Random
) -> History | None:
    return _dropped(history, luck, "duplicate")


@mutation("lost_write")
def an_accepted_write_never_takes_effect(history: History, luck: random.Random) -> History | None:
    return _dropped(history, luck, "accepted")


@mutation("double_effect")
def a_write_takes_effect_twice(history: History, luck: random.Random) -> History | None:
    if not history.lines:
        return None
    lines = list(history.lines)
    again = luck.choice(lines)
    lines.insert(luck.randrange(lines.index(again) + 1, len(lines) + 1), again)
    return rewritten(history, lines)


@mutation("fork")
def two_lines_have_the_same_version(history: History, luck: random.Random) -> History | None:
    places = [line for line in history.lines if line.version > 1]
    if not places:
        return None
    fork = luck.choice(places)
    return replace(
        history,
        lines=tuple(
            replace(line, version=line.version - 1)
            if line.key == fork.key and line.version >= fork.version
            else line
            for line in history.lines
        ),
    )


@mutation("fork")
def a_version_is_missing(history: History, luck: random.Random) -> History | None:
    if not history.lines:
        return None
    gap = luck.choice(history.lines)
    return replace(
        history,
        lines=tuple(
            replace(line, version=line.version + 1)
            if line.key == gap.key and line.version >= gap.version
            else line
            for line in history.lines
        ),
    )


@mutation("order", "wrong_answer", "stale_read", "future_read")
def a_later_write_is_on_disk_before_an_earlier_one(
    history: History, luck: random.Random
) -> History | None:
    """Swap two neighbours one of which had its answer before the other was called."""
    ended = {call.op: call for call in answers(history, read=False)}
    first: dict[str, float] = {}
    for call in history.calls:
        first[call.op] = min(call.invoked, first.get(call.op, call.invoked))
    places = []
    for key in KEYS:
        lines = history.of(key)
        for one, two in pairwise(lines):
            done = ended.get(one.op)
            if done and done.answered and two.op in first and first[two.op] > done.answered:
                places.append((one, two))
    if not places:
        return None
    one, two = luck.choice(places)
    swap = {one: two, two: one}
    mixed = rewritten(history, [swap.get(line, line) for line in history.lines])
    where = {line.op: line.version for line in mixed.lines}
    calls = tuple(
        at_version(mixed, call, where[call.op])
        if call.told == "reply" and call.op in (one.op, two.op)
        else call
        for call in mixed.calls
    )
    return replace(mixed, calls=calls)


@mutation("epoch_order")
def an_old_epoch_commits_after_a_new_one(history: History, luck: random.Random) -> History | None:
    places = [line for line in history.lines if line.version > 1]
    if not places:
        return None
    late = luck.choice(places)
    lines = tuple(
        replace(line, epoch=line.epoch - 1000) if line is late else line for line in history.lines
    )
    return replace(history, lines=lines)


@mutation("two_owners")
def two_processes_commit_under_one_epoch(history: History, luck: random.Random) -> History | None:
    places = [
        line
        for line in history.lines
        if sum(o.slot == line.slot and o.epoch == line.epoch for o in history.lines) > 1
    ]
    if not places:
        return None
    second = luck.choice(places)
    lines = tuple(
        replace(line, owner="intruder") if line is second else line for line in history.lines
    )
    return replace(history, lines=lines)


@mutation("phantom_effect")
def nobody_called_what_is_on_disk(history: History, luck: random.Random) -> History | None:
    key = luck.choice(KEYS)
    lines = list(history.lines)
    last = history.of(key)[-1].epoch if history.of(key) else 0
    made = Line(key, slot_of(key), 0, "nobody's", 5, last, 0, f"owner{last}")
    return rewritten(history, [*lines, made])


@mutation("phantom_effect")
def what_had_no_effect_is_on_disk(history: History, luck: random.Random) -> History | None:
    refused = written(history, "none")
    refused = [call for call in refused if call.what in ("deposit", "accept")]
    if not refused:
        return None
    call = luck.choice(refused)
    last = history.of(call.key)[-1].epoch if history.of(call.key) else 0
    slot = slot_of(call.key)
    made = Line(call.key, slot, 0, call.op, call.amount, last, 0, f"owner{last}")
    return rewritten(history, [*history.lines, made])


def _credits(history: History) -> list[Line]:
    return [line for line in history.lines if line.op.endswith(CREDIT)]


@mutation("lost_transfer")
def a_transfer_never_arrives(history: History, luck: random.Random) -> History | None:
    if not _credits(history):
        return None
    gone = luck.choice(_credits(history))
    return rewritten(history, [line for line in history.lines if line is not gone])


@mutation("double_effect")
def a_transfer_arrives_twice(history: History, luck: random.Random) -> History | None:
    if not _credits(history):
        return None
    return rewritten(history, [*history.lines, luck.choice(_credits(history))])


@mutation("lost_transfer")
def a_transfer_arrives_at_another_account(history: History, luck: random.Random) -> History | None:
    if not _credits(history):
        return None
    astray = luck.choice(_credits(history))
    key = next(key for key in KEYS if key != astray.key)
    moved = replace(astray, key=key, slot=slot_of(key))
    return rewritten(history, [moved if line is astray else line for line in history.lines])


@mutation("lost_transfer")
def a_transfer_arrives_with_another_amount(history: History, luck: random.Random) -> History | None:
    if not _credits(history):
        return None
    short = luck.choice(_credits(history))
    cut = replace(short, amount=short.amount + 1)
    return rewritten(history, [cut if line is short else line for line in history.lines])
