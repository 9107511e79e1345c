"""What agents did in a store, and taking it back where the platform allows that (rules/agents#tools)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, cast
from urllib.parse import urlsplit

import orjson
from quart import Blueprint, Response, request

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.actors.store.launch.stops import LAUNCH_CLIENT
from tolsey.http.answers.operators.operations import OperationAnswer
from tolsey.http.chat.toolbox import ModelCall, ShownPlan, Toolbox
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.standings import Tone
from tolsey.http.layout.templates import Page
from tolsey.http.stores.change_sets import STATES, THINGS
from tolsey.http.stores.proposals import in_words
from tolsey.http.web.access import RANKS, caller, member_of, page, store_of
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery, cut
from tolsey.storage.commerce import agent_operations
from tolsey.storage.commerce.agent_operations import UNDO
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.oauth import clients
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState

pages = Blueprint("store_acts", __name__, url_prefix="/stores/<store_id>/acts")
answer_with_pages(pages)

LISTED: Final = 50
CHAT: Final = "chat"
DID: Final[Mapping[str, str]] = {
    "update_product": marked("Changed the texts"),
    "set_product_status": marked("Changed whether it is sold"),
    "change_price": marked("Changed prices"),
    "adjust_inventory": marked("Changed the stock"),
    "add_order_note": marked("Added to the note"),
    "tag_order": marked("Added tags"),
    "fulfil_order": marked("Sent parcels"),
    "track_fulfilment": marked("Changed the tracking"),
    "refund_order": marked("Gave money back"),
    "create_discount": marked("Made a discount code"),
    "save_collection": marked("Wrote a collection"),
    "save_page": marked("Wrote a page"),
    "save_memory": marked("Kept something in memory"),
    "delete_memory": marked("Forgot something"),
    "request_competitor_scan": marked("Had a competitor looked at"),
    "refresh_revenue": marked("Had the revenue read"),
    "run_launch_milestone": marked("Ran a step of the launch"),
    "request_launch_probe": marked("Had the launch looked at"),
}
OF_PERSON: Final = ("you", marked("Waits for you"))
WHY_NOT: Final[Mapping[str, str]] = {
    "add_order_note": marked("A note is only added to. Change it in the shop."),
    "tag_order": marked("Tags are only added. Take them off in the shop."),
    "fulfil_order": marked("The buyer was told. Cancel the parcel in the shop."),
    "track_fulfilment": marked("There was no tracking before, and it cannot be emptied."),
    "refund_order": marked("Money that went back stays back."),
    "create_discount": marked("End the code in the shop; buyers may have used it."),
    "save_collection": marked("It was new. Delete it in the shop."),
    "save_page": marked("It was new. Delete it in the shop."),
}
"""What to do where nothing of ours takes an act back."""


@dataclass(frozen=True, kw_only=True)
class ActLine:
    """One thing that was done, as people read it."""

    id: str
    at: datetime
    who: str
    what: str
    thing: str
    tone: Tone
    state: str
    detail: str
    may_undo: bool
    why_not: str
    undone_at: datetime | None
    change_set: str | None


@dataclass(frozen=True, kw_only=True)
class ActsPage(Page):
    """What agents did, the newest first."""

    template = "stores/acts.html"
    store: StoreRow
    acts: Sequence[ActLine]
    may_act: bool
    following: str | None
    came_from: str = ""
    current = "acts"


@dataclass(frozen=True, kw_only=True)
class UndoPage(Page):
    """What taking an act back would do, before it is done."""

    template = "stores/undo.html"
    store: StoreRow
    act: ActLine
    plan: ShownPlan | None
    wrong: str = ""

    @property
    def changes(self) -> Sequence[tuple[str, str, str]]:
        """Each value that would be another: its name, what it is, what it would be."""
        if self.plan is None:
            return []
        now, then = self.plan.before, self.plan.after
        names = dict.fromkeys((*now, *then))
        return [
            (name.replace("_", " "), in_words(now.get(name)), in_words(then.get(name)))
            for name in names
        ]


async def acts_of(
    store_id: str, before: tuple[datetime, str] | None, limit: int
) -> tuple[Sequence[ActLine], str | None]:
    """Read what agents did in a store from after an act that was listed, and the cursor of what follows."""
    database = service().database
    found = await agent_operations.acts_of(database, store_id, before, limit + 1)
    listed, following = cut(
        found, limit, key=lambda one: f"{one.created_at.isoformat()}|{one.operation_id}"
    )
    return await _lines(store_id, listed), following


async def _lines(store_id: str, acts: Sequence[AgentOperation]) -> Sequence[ActLine]:
    database = service().database
    undone = await agent_operations.taken_back(
        database, store_id, [one.operation_id for one in acts]
    )
    names = await clients.names_of(database, [one.client_id for one in acts])
    return [act_line(one, names, undone.get(one.operation_id)) for one in acts]


def act_line(
    act: AgentOperation, names: Mapping[str, str], taken_back: AgentOperation | None
) -> ActLine:
    """Tell what was done as people read it; `taken_back` is the operation that undid it."""
    thing, _slash, name = act.subject.partition("/")
    tone, state = STATES.get(act.state, OF_PERSON)
    is_made = act.state == OperationState.APPLIED
    may_undo = is_made and taken_back is None and _undo_of(OperationAnswer.of_edit(act)) is not None
    why_not = WHY_NOT.get(act.tool, "") if is_made and not may_undo and taken_back is None else ""
    known = THINGS.get(thing)
    return ActLine(
        id=act.operation_id,
        at=act.created_at,
        who=_who(act.client_id, names),
        what=_(DID[act.tool]) if act.tool in DID else act.tool,
        thing=name if known is None else _(known) % {"name": name},
        tone=cast("Tone", tone),
        state=_(state),
        detail=_(act.detail) if act.detail else "",
        may_undo=may_undo,
        why_not=_(why_not) if why_not else "",
        undone_at=None if taken_back is None else taken_back.created_at,
        change_set=act.change_set,
    )


def _who(client_id: str, names: Mapping[str, str]) -> str:
    """Name who did something: an agent by its name, what is ours by what it is."""
    if client_id.startswith(UNDO):
        return _("Taken back by a person")
    if client_id == CHAT:
        return _("Chat")
    if client_id == LAUNCH_CLIENT:
        return _("Launch")
    # A client that shows a document of itself is named by its address.
    return names.get(client_id) or urlsplit(client_id).hostname or _("An agent")


def _undo_of(told: OperationAnswer) -> Mapping[str, Any] | None:
    """Say what takes an operation back, as the route of operations tells it."""
    undo: Mapping[str, Any] | None = (told.result or {}).get("undo")
    return undo


@pages.get("")
@page
async def show_acts(store_id: str) -> Response:
    """Show what agents did in a store."""
    row = await store_of(store_id)
    before = PageQuery(cursor=request.args.get("cursor")).after_moment
    acts, following = await acts_of(store_id, before, LISTED)
    return shown(
        ActsPage(
            store=row,
            acts=acts,
            may_act=RANKS[await member_of(row.organization_id)] >= RANKS["admin"],
            following=following,
            came_from=request.args.get("from", ""),
        )
    )


@pages.post("/<operation_id>/undo")
@page
async def ask_undo(store_id: str, operation_id: str) -> Response:
    """Show what taking an act back would do: nothing is sent that changes anything."""
    row = await store_of(store_id, at_least="admin")
    act, undo = await _revocable(store_id, operation_id)
    written = orjson.dumps(undo["arguments"]).decode()
    # What is planned holds for the thing as it is now: two people who take it back at once do so once.
    call = ModelCall(id="undo", name=undo["tool"], arguments=written)
    use = await (await _toolbox(row, operation_id)).use(call)
    (line,) = await _lines(store_id, [act])
    if use.plan is None:
        return shown(UndoPage(store=row, act=line, plan=None, wrong=_said(use.text)), 409)
    return shown(UndoPage(store=row, act=line, plan=use.plan))


@pages.post("/<operation_id>/undone")
@page
async def undo(store_id: str, operation_id: str) -> Response:
    """Take an act back exactly as it was shown, and go back to what agents did."""
    row = await store_of(store_id, at_least="admin")
    act, _undo = await _revocable(store_id, operation_id)
    sealed = (await forms.sent()).get("plan", "")
    done = await (await _toolbox(row, operation_id)).confirm(sealed)
    if done["status"] in {"applied", "replayed"}:
        return sent_on(f"/stores/{store_id}/acts?from=undo")
    (line,) = await _lines(store_id, [act])
    wrong = _(
        done.get("detail")
        or "We don't know yet whether the shop applied this change. Reload the page in a moment."
    )
    return shown(UndoPage(store=row, act=line, plan=None, wrong=wrong), 409)


async def _revocable(store_id: str, operation_id: str) -> tuple[AgentOperation, Mapping[str, Any]]:
    """Read an act of a store with what takes it back. Raises NotFound; Conflict where nothing does any more."""
    database = service().database
    act = await agent_operations.find(database, store_id, operation_id)
    if act is None:
        raise NotFound(
            "This operation doesn't exist, has expired, or belongs to another user. Check its id."
        )
    if await agent_operations.taken_back(database, store_id, [operation_id]):
        raise Conflict("This change was already undone. Reload the page to see the current state.")
    undo = _undo_of(OperationAnswer.of_edit(act))
    if undo is None:
        raise Conflict("This change can't be undone here. Edit the item in the Shopify admin.")
    return act, undo


async def _toolbox(row: StoreRow, operation_id: str) -> Toolbox:
    return await service().chat.tools_of_person(row, caller().user_id, UNDO + operation_id)


def _said(text: str) -> str:
    """Say why a tool refused; it says so as JSON where it looked at the shop first."""
    try:
        told = orjson.loads(text)
    except orjson.JSONDecodeError:
        return _(text.partition("\n")[0])
    return _(told.get("detail") or told.get("code") or "")
