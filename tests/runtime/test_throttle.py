"""Jobs give way to those who wait for an answer."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence

import anyio
import pytest

from tests.timing import RestingTime
from tolsey.runtime.throttle import FIRST, LARGEST, SMALLEST, Throttle
from tolsey.storage.database import Database
from tolsey.storage.errors import StorageUnavailable
from tolsey.storage.lifecycle import retention


class Answers:
    """What those who wait for an answer see; while a job works they may get none."""

    def __init__(self) -> None:
        self.working = False
        self.late = False
        self.time = RestingTime()
        self.asked: list[int] = []

    async def probe(self) -> None:
        if self.working and self.late:
            raise StorageUnavailable("no answer in time")

    def throttle(self) -> Throttle:
        return Throttle(self.probe, self.time)

    async def work(self, rows: int) -> int:
        self.working = True
        self.asked.append(rows)
        await asyncio.sleep(0)  # whoever looks at answers looks now
        self.working = False
        return rows if len(self.asked) < 30 else 0


async def test_portions_shrink_while_answers_are_late_and_grow_again_after() -> None:
    answers = Answers()
    answers.late = True
    throttle = answers.throttle()
    async for _ in throttle.batches(answers.work):
        if len(answers.asked) == 10:
            assert answers.asked[-1] == SMALLEST
            answers.late = False
    assert answers.asked[:3] == [FIRST, FIRST // 2, FIRST // 4]
    assert answers.asked[-1] > FIRST


async def test_what_costs_now_much_and_now_little_without_a_job_is_not_laid_to_it() -> None:
    answers = Answers()
    looks = itertools.count()

    async def probe() -> None:
        answers.time.advance(0.05 if next(looks) % 3 == 0 else 0.004)  # a disk that others write to

    throttle = Throttle(probe, answers.time)
    async for _ in throttle.batches(answers.work):
        pass
    assert answers.asked[-1] > FIRST


async def test_no_portion_keeps_the_other_jobs_waiting_and_each_run_has_portions_of_its_own() -> (
    None
):
    answers, ended = Answers(), list[int]()
    throttle = answers.throttle()

    async def checking() -> AsyncIterator[int]:
        for number in range(12):
            answers.time.advance(0.2)
            ended.append(len(answers.asked))
            yield number

    async def check() -> None:
        async for _ in throttle.steps(checking()):
            pass

    async def delete() -> None:
        async for _ in throttle.batches(answers.work):
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check)
        tasks.start_soon(delete)
    assert ended == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3  # three steps take longer than 0.5 s
    assert answers.asked[:4] == [500, 625, 781, 976]


async def test_a_portion_never_outgrows_its_bound_and_rows_a_second_are_bounded() -> None:
    answers = Answers()
    throttle = answers.throttle()
    done = [count async for count in throttle.batches(answers.work)]
    assert max(answers.asked) == LARGEST
    assert done[-1] == 0
    for rows, rest in zip(done, answers.time.rests, strict=True):
        assert rest >= rows / 10_000


async def test_work_of_many_steps_rests_between_them_and_goes_on_where_it_was() -> None:
    answers = Answers()
    throttle = answers.throttle()
    steps = list[int]()
    portions = list[int]()

    async def work() -> AsyncIterator[int]:
        for number in range(60):
            answers.late = number < 40
            await answers.work(0)
            steps.append(number)
            yield number

    async for _ in throttle.steps(work()):
        portions.append(len(steps))
    assert portions[:4] == [25, 37, 43, 46]  # half as many while answers are late
    assert (portions[-1], steps) == (60, list(range(60)))
    assert len(answers.time.rests) == len(portions)


async def test_jobs_work_by_turns_and_items_are_done_once_each_in_order() -> None:
    answers = Answers()
    throttle = answers.throttle()
    at_work, done = 0, {"a": list[int](), "b": list[int]()}

    async def job(name: str, count: int) -> None:
        async def work(portion: Sequence[int]) -> None:
            nonlocal at_work
            at_work += 1
            assert at_work == 1
            await asyncio.sleep(0)
            done[name] += portion
            at_work -= 1

        reached = [at async for at in throttle.portions(list(range(count)), work)]
        assert reached[-1] == count

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(job, "a", 3 * FIRST)
        tasks.start_soon(job, "b", FIRST)
    assert done == {"a": list(range(3 * FIRST)), "b": list(range(FIRST))}


async def test_work_that_fails_fails_and_leaves_the_turn_to_the_next() -> None:
    throttle = Answers().throttle()

    async def broken(_: int) -> int:
        raise LookupError("broken")

    async def empty(_: int) -> int:
        return 0

    with pytest.raises(LookupError):
        [_ async for _ in throttle.batches(broken)]
    assert [count async for count in throttle.batches(empty)] == [0]


async def test_a_commit_that_changes_nothing_tells_what_a_commit_costs(database: Database) -> None:
    async with database.transaction() as tx:
        before = await tx.fetchval("SELECT pg_current_wal_flush_lsn()")
        await retention.commit(database)
        assert await tx.fetchval("SELECT pg_current_wal_flush_lsn() > $1", before)
