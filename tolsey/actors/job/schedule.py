"""Decisions about runs: one for each due time, never two at once, ticks coalesce."""

from dataclasses import replace
from datetime import datetime

from tolsey.actors.job.catalogue import JOBS
from tolsey.actors.job.messages import JobEnded, RunJob, RunNow, Tick, TickOfNewJob
from tolsey.actors.job.state import JobState, Waiting
from tolsey.actors.refusals import NotFound
from tolsey.runtime.decision import Decision, Parked, Perform
from tolsey.storage.records.runtime.executions import Execution, ExecutionStarted


def tick(state: JobState, message: Tick | TickOfNewJob) -> Decision[JobState, Execution]:
    """Start the run of a due time, unless it was run; while another runs, only remember it."""
    _check(state.name)
    last = state.last
    if last is not None and last.scheduled_at >= message.due_at:
        return Decision(state, Parked(last.id) if last.finished_at is None else last)
    if state.running is None:
        return _start(state, message.due_at, message.execution_id, "schedule", message.at)
    if state.waiting is not None and state.waiting.due_at >= message.due_at:
        return Decision(state, Parked(state.waiting.execution_id))
    waiting = Waiting(message.due_at, message.execution_id)
    return Decision(replace(state, waiting=waiting), Parked(message.execution_id))


def run_now(state: JobState, message: RunNow) -> Decision[JobState, Execution]:
    """Start a run an operator wants, or join the one that goes on."""
    _check(state.name)
    if state.running is not None:
        return Decision(state, Parked(state.running.id))
    return _start(state, message.at, message.execution_id, "manual", message.at)


def ended(state: JobState, message: JobEnded) -> Decision[JobState, None]:
    """Write down how a run ended, answer who waited, start the tick that came meanwhile."""
    running = state.running
    if running is None or running.id != message.execution_id:
        return Decision(state, None)
    over = replace(
        running,
        status=message.status,
        finished_at=message.at,
        outcome=message.outcome,
        error=message.error,
    )
    last = over if over.trigger == "schedule" else state.last
    after = replace(state, running=None, last=last)
    resolve = {over.id: over}
    if state.waiting is None:
        return Decision(after, None, [over], resolve=resolve)
    waiting = state.waiting
    after = replace(after, waiting=None)
    next_run = _start(after, waiting.due_at, waiting.execution_id, "schedule", message.at)
    records = [over, *next_run.records]
    return Decision(next_run.state, None, records, next_run.effects, resolve)


def _start(
    state: JobState, due_at: datetime, execution_id: str, trigger: str, at: datetime
) -> Decision[JobState, Execution]:
    started = ExecutionStarted(
        id=execution_id, job=state.name, scheduled_at=due_at, trigger=trigger, started_at=at
    )
    running = Execution(
        id=execution_id, job=state.name, scheduled_at=due_at, trigger=trigger, started_at=at
    )
    last = running if trigger == "schedule" else state.last
    return Decision(
        replace(state, running=running, last=last),
        Parked(execution_id),
        [started],
        [Perform(RunJob(state.name, execution_id, due_at), key=f"run:{execution_id}")],
    )


def _check(name: str) -> None:
    if name not in JOBS:
        raise NotFound(
            f"There is no job named {name}. List the jobs with GET /api/admin/crons.",
            code="unknown_job",
        )
