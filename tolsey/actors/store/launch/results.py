"""Decisions about what came of a milestone's steps: written, finished, or stopped and why."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Final

import orjson

from tolsey.actors.refusals import Refusal
from tolsey.actors.store.connection.messages import ReconcileSubscriptions
from tolsey.actors.store.editing import operations
from tolsey.actors.store.launch import graph
from tolsey.actors.store.launch.dispatching import Silence, advanced, attempt, outcome, step, waiter
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.keeping import modules_of, remembered
from tolsey.actors.store.launch.messages import (
    LaunchWriteEnded,
    StepFinished,
    StepOf,
    StepStopped,
    StepWrites,
)
from tolsey.actors.store.launch.stops import COVERED, stop_of_write
from tolsey.actors.store.memory.remembering import Facts
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Effect, Perform
from tolsey.storage.records.commerce.agent_operation import OperationState
from tolsey.storage.records.commerce.launches import Launch, LaunchMilestone, MilestoneState

MOST_STEPS: Final = 12
"""A milestone that still finds something to change after so many looks is tried again later."""
UNSETTLED: Final = MilestoneStop(
    kind="retryable",
    reason="not_settled",
    detail="The shop doesn't show the changes that were sent. Check the shop, then run this again.",
)


def finished(state: StoreState, message: StepFinished, facts: Facts) -> Silence:
    """Keep what came out of a milestone, and go on with what waited for it."""
    found = at_step(state, message.of)
    if found is None:
        return Decision(state, reply=None)
    launch, one = found
    done = graph.moved(
        one,
        "ok",
        message.at,
        finished_at=message.at,
        result=message.result,
        operations="",
        stop=None,
    )
    launch = launch.with_milestone(done)
    if message.draft_hash is not None:
        launch = launch.with_head(draft_hash=message.draft_hash, changed_at=message.at)
    state, told = remembered(state, launch, message.facts, facts, message.at)
    records = (*told, *modules_of(launch, message.modules, message.at), attempt(done, "succeeded"))
    effects = _subscribed(state, message.at) if message.lacks_topics else ()
    return advanced(
        state,
        launch,
        message.at,
        reply=None,
        records=records,
        effects=effects,
        resolve={waiter(done.milestone): outcome(launch, done)},
    )


def _subscribed(state: StoreState, at: datetime) -> Sequence[Effect]:
    """Have the shop tell us of everything that it should."""
    connection = state.connection
    if connection is None:
        return ()
    call = ReconcileSubscriptions(state.store_id, connection.connected_at, state.organization_id)
    return (Perform(call, key=f"reconcile-subscriptions:{state.store_id}:{at.isoformat()}"),)


def writes(state: StoreState, message: StepWrites) -> Silence:
    """Have the changes made by the machine that makes those of agents, each as an operation of its own."""
    found = at_step(state, message.of)
    if found is None:
        return Decision(state, reply=None)
    launch, one = found
    effects, records, begun = list[Effect](), list[Any](), list[str]()
    for wish in message.writes:
        try:
            decided = operations.begin(state, wish, None)
        except Refusal:
            # So many are on their way that no more fit: the next step finds what is left.
            break
        state = decided.state
        effects += decided.effects
        records += decided.records
        begun.append(wish.operation_id)
    if not begun:
        busy = MilestoneStop(
            kind="retryable",
            reason="overloaded",
            detail="Too many changes of this store are in progress. Try again in a minute.",
        )
        return _stopped(state, launch, one, busy, message.at)
    waiting = replace(one, operations=" ".join(begun), stop=None, changed_at=message.at)
    after = replace(state, launch=launch.with_milestone(waiting))
    return Decision(after, reply=None, records=records, effects=effects)


def write_ended(state: StoreState, message: LaunchWriteEnded) -> Silence:
    """Take the next step once it is known what became of all changes of this one."""
    launch = state.launch
    one = launch.milestones.get(message.milestone) if launch else None
    if launch is None or one is None or message.operation_id not in one.waits_for:
        return Decision(state, reply=None)
    left = tuple(id for id in one.waits_for if id != message.operation_id)
    stop = _kept_stop(one) or stop_of_write(message)
    written = one.written
    is_there = message.state == OperationState.APPLIED or message.platform_code in COVERED
    if is_there:
        known = orjson.loads(one.written)
        written = orjson.dumps({**known, message.subject: message.version}).decode()
    kept = None if stop is None else orjson.dumps(asdict(stop)).decode()
    one = replace(one, operations=" ".join(left), written=written, stop=kept, changed_at=message.at)
    launch = launch.with_milestone(one)
    if left:
        return Decision(replace(state, launch=launch), reply=None)
    if stop is not None:
        return _stopped(state, launch, one, stop, message.at)
    if one.step + 1 >= MOST_STEPS:
        return _stopped(state, launch, one, UNSETTLED, message.at)
    following = replace(one, step=one.step + 1)
    launch = launch.with_milestone(following)
    return Decision(replace(state, launch=launch), reply=None, effects=(step(launch, following),))


def stopped(state: StoreState, message: StepStopped) -> Silence:
    """Say what becomes of a milestone whose step could not be done."""
    found = at_step(state, message.of)
    if found is None:
        return Decision(state, reply=None)
    return _stopped(state, *found, message.stop, message.at)


def _stopped(
    state: StoreState, launch: Launch, one: LaunchMilestone, stop: MilestoneStop, at: datetime
) -> Silence:
    after = graph.stopped(one, stop, at)
    launch = launch.with_milestone(after)
    ended = replace(attempt(one, stop.kind), changed_at=at, reason=stop.reason, detail=stop.detail)
    return advanced(
        state,
        launch,
        at,
        reply=None,
        records=(ended,),
        resolve={waiter(one.milestone): outcome(launch, after)},
    )


def at_step(state: StoreState, of: StepOf) -> tuple[Launch, LaunchMilestone] | None:
    """Find the milestone of a step, unless it is further by now."""
    launch = state.launch
    one = launch.milestones.get(of.milestone) if launch else None
    if launch is None or one is None or one.state != MilestoneState.RUNNING:
        return None
    if of.launch_id not in {"", launch.head.launch_id}:
        return None
    is_same = (one.run, one.attempts, one.step) == (of.run, of.attempt, of.step)
    return (launch, one) if is_same and not one.waits_for else None


def _kept_stop(one: LaunchMilestone) -> MilestoneStop | None:
    return None if one.stop is None else MilestoneStop(**orjson.loads(one.stop))
