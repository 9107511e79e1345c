"""A job runs once for each due time, never twice at once."""

from datetime import UTC, datetime, timedelta

import pytest

from tolsey.actors.job import schedule
from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import JobEnded, RunJob, RunNow, Tick
from tolsey.actors.job.state import JobState
from tolsey.actors.refusals import NotFound
from tolsey.runtime.decision import Parked, Perform
from tolsey.storage.records.runtime.executions import Execution, ExecutionStarted

TEN = datetime(2026, 7, 1, 10, tzinfo=UTC)
JOB = "sync-verified-revenue"


def ended(execution_id: str, status: str = "completed") -> JobEnded:
    return JobEnded(
        execution_id=execution_id,
        status=status,
        outcome='{"listings": 1}',
        error=None,
        at=TEN + timedelta(minutes=1),
    )


def test_a_due_time_starts_a_run_that_waits_for_its_work() -> None:
    decision = schedule.tick(JobState(name=JOB), Tick(TEN, "run_1", TEN))

    assert decision.reply == Parked("run_1")
    assert decision.records == [
        ExecutionStarted(id="run_1", job=JOB, scheduled_at=TEN, trigger="schedule", started_at=TEN)
    ]
    assert decision.effects == [Perform(RunJob(JOB, "run_1", TEN), key="run:run_1")]


def test_a_due_time_that_was_run_answers_with_its_run() -> None:
    started = schedule.tick(JobState(name=JOB), Tick(TEN, "run_1", TEN)).state
    over = schedule.ended(started, ended("run_1")).state

    again = schedule.tick(over, Tick(TEN, "run_2", TEN + timedelta(minutes=5)))

    assert again.state is over
    assert isinstance(again.reply, Execution)
    assert again.reply.id == "run_1"
    assert not again.effects


def test_ticks_that_come_while_a_run_goes_on_become_one() -> None:
    started = schedule.tick(JobState(name=JOB), Tick(TEN, "run_1", TEN)).state
    eleven, noon = TEN + timedelta(hours=1), TEN + timedelta(hours=2)
    late = schedule.tick(started, Tick(eleven, "run_2", eleven)).state
    later = schedule.tick(late, Tick(noon, "run_3", noon))

    following = schedule.ended(later.state, ended("run_1"))

    assert later.reply == Parked("run_3")
    assert not later.effects
    assert (following.resolve or {})["run_1"].outcome == '{"listings": 1}'
    assert following.effects == [Perform(RunJob(JOB, "run_3", noon), key="run:run_3")]
    assert following.state.waiting is None


def test_an_operator_joins_the_run_that_goes_on() -> None:
    started = schedule.tick(JobState(name=JOB), Tick(TEN, "run_1", TEN)).state

    decision = schedule.run_now(started, RunNow("run_2", TEN))

    assert decision.reply == Parked("run_1")
    assert decision.state is started


def test_a_run_an_operator_wanted_does_not_use_up_the_due_time() -> None:
    manual = schedule.run_now(JobState(name=JOB), RunNow("run_1", TEN + timedelta(minutes=7))).state
    over = schedule.ended(manual, ended("run_1")).state

    decision = schedule.tick(over, Tick(TEN, "run_2", TEN + timedelta(minutes=8)))

    assert decision.reply == Parked("run_2")


def test_the_end_of_a_run_that_is_long_over_changes_nothing() -> None:
    state = JobState(name=JOB)

    assert schedule.ended(state, ended("run_0")).state is state


def test_a_job_that_there_is_not_is_none() -> None:
    with pytest.raises(NotFound):
        schedule.tick(JobState(name="no-such-job"), Tick(TEN, "run_1", TEN))


def test_a_timer_that_fires_a_moment_early_is_on_time() -> None:
    hourly = JOBS[JOB]

    assert hourly.due_at(TEN - timedelta(milliseconds=40)) == TEN
    assert hourly.due_at(TEN + timedelta(minutes=59)) == TEN
    assert hourly.next_at(TEN) == TEN + timedelta(hours=1)
