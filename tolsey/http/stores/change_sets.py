"""What agents planned together for a shop: an owner or admin sees how far it is, stops and resumes it (rules/agents#many-at-once)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from quart import Blueprint, Response
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.editing.change_sets import state_of
from tolsey.actors.store.editing.messages import ResumeChangeSet, StopChangeSet
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import ListAnswer
from tolsey.http.answers.operators.operations import OperationAnswer, OperationBodyAnswer
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.templates import Page
from tolsey.http.stores.proposals import in_words
from tolsey.http.web.access import caller, page, session, store_of
from tolsey.http.web.context import ask, now, service
from tolsey.storage.commerce import agent_operations
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState

routes = Blueprint("change_sets", __name__, url_prefix="/api/stores/<store_id>/change-sets")
tag_blueprint(routes, ["Stores"])
pages = Blueprint("change_set_pages", __name__, url_prefix="/stores/<store_id>/change-sets")
answer_with_pages(pages)

LISTED: Final = timedelta(days=7)
"""How long a plan is listed; what became of each change is kept for longer."""
THINGS: Final[Mapping[str, str]] = {
    "product": marked("Product %(name)s"),
    "stock": marked("Stock of item %(name)s"),
    "order": marked("Order %(name)s"),
    "fulfilment": marked("Parcel %(name)s"),
    "discount": marked("Discount code %(name)s"),
    "collection": marked("Collection %(name)s"),
    "page": marked("Page %(name)s"),
}
STATES: Final[Mapping[str, tuple[str, str]]] = {
    OperationState.WAITING: ("idle", marked("Waits")),
    OperationState.STOPPED: ("warn", marked("Stopped")),
    OperationState.RUNNING: ("wait", marked("Under way")),
    OperationState.SENT: ("wait", marked("Under way")),
    OperationState.UNKNOWN: ("wait", marked("Being looked up")),
    OperationState.APPLIED: ("good", marked("Done")),
    OperationState.REJECTED: ("bad", marked("Not done")),
    OperationState.UNCLEAR: ("warn", marked("Look in the shop")),
}
WHOLE: Final[Mapping[str, tuple[str, str]]] = {
    "running": ("wait", marked("Under way")),
    "stopped": ("warn", marked("Stopped")),
    "applied": ("good", marked("Done")),
    "partly": ("warn", marked("Done in part")),
    "rejected": ("bad", marked("Not done")),
}


@dataclass(frozen=True, kw_only=True)
class ChangeLine:
    """One of the changes, as people read it."""

    title: str
    before: str
    after: str
    tone: str
    state: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class PlanLine:
    """What was planned together, in one line."""

    id: str
    created_at: datetime
    changes: int
    made: int
    tone: str
    state: str


@dataclass(frozen=True, kw_only=True)
class ChangeSetsPage(Page):
    """What agents planned of late."""

    template = "stores/change_sets.html"
    store: StoreRow
    plans: Sequence[PlanLine]


@dataclass(frozen=True, kw_only=True)
class ChangeSetPage(Page):
    """What was planned together: each change, and buttons to stop the rest or resume it."""

    template = "stores/change_set.html"
    store: StoreRow
    plan: PlanLine
    changes: Sequence[ChangeLine]
    may_stop: bool
    stopped_why: str
    may_resume: bool

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/stores/{self.store.id}/change-sets/{self.plan.id}"


def plan_line(changes: Sequence[AgentOperation]) -> PlanLine:
    """Sum up what was planned together."""
    tone, state = WHOLE[state_of(changes)]
    return PlanLine(
        id=changes[0].change_set or "",
        created_at=changes[0].created_at,
        changes=len(changes),
        made=sum(one.state == OperationState.APPLIED for one in changes),
        tone=tone,
        state=_(state),
    )


def change_line(change: AgentOperation) -> ChangeLine:
    """Say what a change is of, and what became of it."""
    thing, _slash, name = change.subject.partition("/")
    tone, state = STATES[change.state]
    return ChangeLine(
        title=_(THINGS[thing]) % {"name": name},
        before=_in_words(change.before),
        after=_in_words(change.after),
        tone=tone,
        state=_(state),
        # Why the rest is stopped is said once for all of it.
        detail=_(change.detail) if change.detail and change.state != OperationState.STOPPED else "",
    )


def _in_words(written: str | None) -> str:
    value: Any = None if written is None else orjson.loads(written)
    return "" if value is None else in_words(value)


def change_set_page(row: StoreRow, changes: Sequence[AgentOperation]) -> ChangeSetPage:
    """Show what was planned together."""
    states = {one.state for one in changes}
    why = [one.detail for one in changes if one.state == OperationState.STOPPED and one.detail]
    return ChangeSetPage(
        store=row,
        plan=plan_line(changes),
        changes=[change_line(one) for one in changes],
        stopped_why=_(why[0]) if why else "",
        may_stop=OperationState.WAITING in states,
        may_resume=OperationState.STOPPED in states,
    )


async def _of_store(store_id: str, change_set: str) -> tuple[AgentOperation, ...]:
    """Read what was planned together in a store of the caller's, who must be an owner or admin."""
    await store_of(store_id, at_least="admin")
    kept = await agent_operations.of_change_set(service().database, change_set)
    changes = tuple(one for one in kept if one.store_id == store_id)
    if not changes:
        raise NotFound(
            "This bulk change doesn't exist, or you don't have access to it. Check the link or"
            " the id."
        )
    return changes


async def _listed(store_id: str) -> Sequence[Sequence[AgentOperation]]:
    await store_of(store_id, at_least="admin")
    found = await agent_operations.change_sets_of(service().database, store_id, now() - LISTED)
    return list(found.values())


@routes.get("")
@session
async def list_change_sets(store_id: str) -> ListAnswer[OperationAnswer]:
    """List what agents planned together in the last seven days, newest first; for owners and admins."""
    found = await _listed(store_id)
    return ListAnswer(items=[OperationAnswer.of_many(one) for one in found], next_cursor=None)


@routes.get("/<change_set>")
@session
async def read_change_set(store_id: str, change_set: str) -> OperationBodyAnswer:
    """Tell how far what was planned together is, and the end of each change."""
    return await _told(store_id, change_set)


@routes.post("/<change_set>/stop")
@session
async def stop_change_set(store_id: str, change_set: str) -> OperationBodyAnswer:
    """Stop what has not begun; what is under way comes to its end. Only a person resumes it, within a day."""
    return await _steered(store_id, change_set, StopChangeSet)


@routes.post("/<change_set>/resume")
@session
async def resume_change_set(store_id: str, change_set: str) -> OperationBodyAnswer:
    """Let what was stopped go on, each change only if its thing is still as the plan showed it."""
    return await _steered(store_id, change_set, ResumeChangeSet)


async def _told(store_id: str, change_set: str) -> OperationBodyAnswer:
    changes = await _of_store(store_id, change_set)
    return OperationBodyAnswer(operation=OperationAnswer.of_many(changes))


async def _steered(
    store_id: str, change_set: str, wish: type[StopChangeSet] | type[ResumeChangeSet]
) -> OperationBodyAnswer:
    """Stop or resume what is in a store of the caller's, who must be an owner or admin."""
    await _of_store(store_id, change_set)
    asked = wish(change_set=change_set, user_id=caller().user_id, is_person=True, at=now())
    await ask(store(store_id), asked)
    return await _told(store_id, change_set)


@pages.get("")
@page
async def show_change_sets(store_id: str) -> Response:
    """Show what agents planned together of late."""
    row = await store_of(store_id, at_least="admin")
    plans = [plan_line(one) for one in await _listed(store_id)]
    return shown(ChangeSetsPage(store=row, plans=plans))


@pages.get("/<change_set>")
@page
async def show_change_set(store_id: str, change_set: str) -> Response:
    """Show how far what was planned together is."""
    row = await store_of(store_id, at_least="admin")
    return shown(change_set_page(row, await _of_store(store_id, change_set)))


@pages.post("/<change_set>/<any(stop, resume):action>")
@page
async def steer_on_page(store_id: str, change_set: str, action: str) -> Response:
    """Stop or resume, and show how far it is."""
    await _steered(store_id, change_set, StopChangeSet if action == "stop" else ResumeChangeSet)
    return sent_on(f"/stores/{store_id}/change-sets/{change_set}")
