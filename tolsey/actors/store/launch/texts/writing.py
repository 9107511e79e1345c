"""Decisions about texts of a launch: asked of the model, kept with what they cost, and gone on with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from tolsey.actors.organization.ledger.messages import ReleaseHold, SettleHold
from tolsey.actors.organization.messages import organization
from tolsey.actors.store.launch.dispatching import Silence, step
from tolsey.actors.store.launch.keeping import modules_of
from tolsey.actors.store.launch.messages import (
    StepWantsTexts,
    TextsWritten,
    ToldModule,
    WriteLaunchTexts,
)
from tolsey.actors.store.launch.results import at_step
from tolsey.actors.store.launch.texts.drafting import TextBrief
from tolsey.actors.store.state import StoreState
from tolsey.runtime.decision import Decision, Effect, Perform, Tell

MODULE: Final = "texts"
"""Before the milestone, the name of the module of a store's context that keeps what was written of it."""


def module_of(milestone: str) -> str:
    """Name the module that keeps the texts of a milestone."""
    return f"{MODULE}.{milestone}"


def kept_texts(modules: Mapping[str, Any], milestone: str) -> Mapping[str, Any] | None:
    """Find the texts of a milestone among the modules of its store."""
    found: Mapping[str, Any] | None = modules.get(module_of(milestone))
    return found


def wanted(state: StoreState, message: StepWantsTexts) -> Silence:
    """Have the model write what a step needs."""
    found = at_step(state, message.of)
    if found is None:
        return Decision(state, reply=None)
    launch, one = found
    head = launch.head
    call = WriteLaunchTexts(
        store_id=head.store_id,
        organization_id=head.organization_id,
        of=message.of,
        brief=message.brief,
        digest=TextBrief.read(message.brief).digest,
    )
    key = (
        f"launch-texts:{head.launch_id}:{one.milestone}:{one.run}:{one.attempts}:{one.step}"
        f":{one.started_at and one.started_at.isoformat()}"
    )
    return Decision(state, reply=None, effects=(Perform(call, key=key),))


def written(state: StoreState, message: TextsWritten) -> Silence:
    """Keep texts with what they cost in one commit, and take the next step; what came too late costs nothing."""
    found = at_step(state, message.of)
    if found is None:
        return Decision(state, reply=None, effects=_paid(state, message, cost=0))
    launch, one = found
    kept = {
        "digest": message.digest,
        "run": one.run,
        "by": "template" if message.because else "model",
        "because": message.because,
        "texts": orjson.loads(message.texts),
    }
    module = ToldModule(name=module_of(one.milestone), value=orjson.dumps(kept).decode())
    following = replace(one, step=one.step + 1, changed_at=message.at)
    launch = launch.with_milestone(following)
    return Decision(
        replace(state, launch=launch),
        reply=None,
        records=modules_of(launch, [module], message.at),
        effects=(step(launch, following), *_paid(state, message, cost=message.cost)),
    )


def _paid(state: StoreState, message: TextsWritten, *, cost: int) -> tuple[Effect, ...]:
    """Settle what was held: once, with the commit that keeps what it was for (rules/credits#holds)."""
    if message.hold_id is None or state.organization_id is None:
        return ()
    told = (
        SettleHold(message.hold_id, cost, message.at)
        if cost
        else ReleaseHold(message.hold_id, message.at)
    )
    key = f"launch-texts-paid:{message.hold_id}"
    return (Tell(organization(state.organization_id), told, key=key),)
