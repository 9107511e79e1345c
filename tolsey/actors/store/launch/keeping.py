"""What turns of a launch write beside it: facts, modules, the audit log; and the launch itself, or that there is none."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.actors.store.launch.messages import (
    BeginLaunch,
    ChangeLaunchSpec,
    ToldFact,
    ToldModule,
)
from tolsey.actors.store.memory import remembering
from tolsey.actors.store.memory.messages import KeepFact
from tolsey.actors.store.memory.remembering import Facts
from tolsey.actors.store.state import StoreState
from tolsey.storage.records.commerce.launches import (
    Launch,
    StoreContextModule,
)
from tolsey.storage.records.journal import audit_record
from tolsey.storage.records.memory import MemorySource

SYSTEM: Final = "system"


def remembered(
    state: StoreState, launch: Launch, told: Sequence[ToldFact], facts: Facts, at: datetime
) -> tuple[StoreState, Sequence[Any]]:
    """Write facts into the store's memory; what a merchant told stays as they told it (rules/shops#memory)."""
    records = list[Any]()
    for one in told:
        keep = KeepFact(
            fact_id=one.fact_id,
            key=one.key,
            value=one.value,
            source=MemorySource.LAUNCH,
            user_id=launch.head.begun_by or SYSTEM,
            at=at,
        )
        try:
            kept = remembering.keep_fact(state, keep, facts)
        except Refusal:
            continue
        state, facts = kept.state, kept.state.facts or facts
        records += kept.records
    return state, records


def modules_of(
    launch: Launch, told: Sequence[ToldModule], at: datetime
) -> Sequence[StoreContextModule]:
    """Write down modules of the store's context."""
    return [
        StoreContextModule(
            store_id=launch.head.store_id,
            organization_id=launch.head.organization_id,
            module=one.name,
            value=one.value,
            changed_at=at,
        )
        for one in told
    ]


def told_password(launch: Launch, told: BeginLaunch | ChangeLaunchSpec) -> Launch:
    """Keep the password of the storefront that a merchant told now; without one the former stays."""
    if told.storefront_password is None:
        return launch
    return launch.with_head(storefront_password=told.storefront_password, changed_at=told.at)


def audit(state: StoreState, event: str, who: str, **metadata: Any) -> Any:
    """Write down what somebody did with a launch."""
    return audit_record(f"launch.{event}", state.store_id, state.organization_id, who, **metadata)


def launch_of(state: StoreState) -> Launch:
    """Give the launch of a store, or refuse."""
    if state.launch is None:
        raise not_begun()
    return state.launch


def not_begun() -> NotFound:
    """Say that a store has no launch yet."""
    return NotFound(
        "This store's launch hasn't been started. Start it with POST /api/wizard/store/launch.",
        code="launch_not_begun",
    )
