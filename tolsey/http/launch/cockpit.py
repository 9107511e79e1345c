"""The page of a launch: what holds it up, what waits for whom, and a page for each milestone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

import orjson
from pydantic import ValidationError
from quart import Blueprint, Response

from tolsey.actors.refusals import NotFound, Refusal
from tolsey.actors.store.launch.executors import BUILT
from tolsey.actors.store.launch.grants import grant_address
from tolsey.actors.store.launch.playbook import PLAYBOOK, PlaybookMilestone
from tolsey.http.answers.stores.launch import DocumentAnswer
from tolsey.http.launch import routes as api
from tolsey.http.launch import running
from tolsey.http.launch.picture import PICTURE, Node, Picture
from tolsey.http.launch.routes import CheckpointBody, RunBody
from tolsey.http.launch.standing import ALARMS, MilestoneStanding, behind, duration, standing, why
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.web.access import RANKS, caller, page
from tolsey.http.web.context import service
from tolsey.storage.commerce import connections, devstores, launches, stores
from tolsey.storage.commerce.launches import StepDuration
from tolsey.storage.commerce.stores import StoreRow
from tolsey.storage.records.commerce.devstores import DevStoreHolding
from tolsey.storage.records.commerce.launches import Launch, LaunchAttempt, LaunchMilestone

routes = Blueprint("launch_pages", __name__, url_prefix="/stores/<store_id>/launch")
answer_with_pages(routes)

Action = Literal["done", "undo", "skip", "unskip"]
UNDO_OF: Final[Mapping[str, str]] = {"approved": "undo", "skipped": "unskip"}


@dataclass(frozen=True, kw_only=True)
class SectionShown:
    """A part of the playbook with its milestones."""

    title: str
    milestones: Sequence[MilestoneStanding]

    @property
    def done(self) -> int:
        """How many of them are done."""
        return sum(one.is_done for one in self.milestones)


@dataclass(frozen=True, kw_only=True)
class HeldUp:
    """What goes on only once somebody did something, and what waits behind it."""

    one: MilestoneStanding
    behind: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class LaunchPage(Page):
    """A launch: how far it is, what holds it up, what waits for the reader, and the picture of all of it."""

    template = "launch/cockpit.html"
    has_script = True
    store: StoreRow
    may_act: bool
    launch: Launch
    standings: Mapping[str, MilestoneStanding]
    held: DevStoreHolding | None
    lets_in: bool
    grant_address: str | None
    version: str
    picture: Picture = PICTURE

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/stores/{self.store.id}/launch"

    @property
    def events(self) -> str:
        """Where the page hears that something moved since what it shows."""
        return f"{self.address}/events?seen={self.version}"

    @property
    def done(self) -> int:
        """How many milestones are done."""
        return sum(one.is_done for one in self.standings.values())

    @property
    def sections(self) -> Sequence[SectionShown]:
        """The eight parts, in their order."""
        return [
            SectionShown(
                title=_(section.title),
                milestones=[
                    self.standings[one.id]
                    for one in PLAYBOOK.milestones.values()
                    if one.section == section.id
                ],
            )
            for section in PLAYBOOK.sections
        ]

    @property
    def held_up(self) -> Sequence[HeldUp]:
        """What is blocked or failed."""
        return [
            HeldUp(one=one, behind=behind(self.launch, one.id))
            for one in self.standings.values()
            if one.is_held_up
        ]

    @property
    def alarms(self) -> Sequence[str]:
        """What people have to know of the shop."""
        return [_(ALARMS[one]) for one in self.launch.head.alarms.split()]

    @property
    def whole_reason(self) -> str:
        """Why nothing of it starts although something could."""
        return why(self.launch.head.reason, None, None)

    def those(self, kind: str) -> Sequence[MilestoneStanding]:
        """List what stands like that."""
        return [one for one in self.standings.values() if one.kind == kind]

    def said_of(self, one: MilestoneStanding) -> PlaybookMilestone:
        """Give what the playbook says of a milestone."""
        return PLAYBOOK.milestones[one.id]

    def line_of(self, before: str, after: str) -> str:
        """Tell how a line looks: done, held up, or neither."""
        one, other = self.standings[before], self.standings[after]
        if one.is_done:
            return "done"
        stuck = {held.one.id for held in self.held_up}
        is_stuck = before in stuck or any(one.title in held.behind for held in self.held_up)
        return "hot" if is_stuck and not other.is_done else ""

    def at(self, node: Node) -> MilestoneStanding:
        """Give what stands at a place of the picture."""
        return self.standings[node.id]


@dataclass(frozen=True, kw_only=True)
class MilestonePage(Page):
    """A milestone: how it stands and why, what can be done about it, and what it would send."""

    template = "launch/milestone.html"
    store: StoreRow
    may_act: bool
    launch: Launch
    one: LaunchMilestone
    standing: MilestoneStanding
    attempts: Sequence[LaunchAttempt]
    missing: Sequence[str]
    grant_address: str | None
    forecast: StepDuration | None
    documents: Sequence[DocumentAnswer] | None = None
    stopped: str = ""
    filled: Filled = field(default_factory=Filled)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/stores/{self.store.id}/launch/{self.one.milestone}"

    @property
    def known(self) -> PlaybookMilestone:
        """What the playbook says of it."""
        return PLAYBOOK.milestones[self.one.milestone]

    @property
    def is_built(self) -> bool:
        """Whether this version carries it out."""
        return self.one.milestone in BUILT

    @property
    def behind(self) -> Sequence[str]:
        """What waits for it."""
        return behind(self.launch, self.one.milestone)

    @property
    def acts(self) -> Sequence[str]:
        """What may be done about it by hand now."""
        found = list[str]()
        if self.known.is_human and self.standing.kind == "you":
            found.append("done")
        if self.known.is_skippable and not self.standing.is_done and self.standing.kind != "run":
            found.append("skip")
        undo = UNDO_OF.get(self.one.state)
        return [*found, undo] if undo else found

    @property
    def result(self) -> str:
        """What came out of it, as JSON for people."""
        if self.one.result is None:
            return ""
        return orjson.dumps(orjson.loads(self.one.result), option=orjson.OPT_INDENT_2).decode()

    @staticmethod
    def indented(values: Mapping[str, Any]) -> str:
        """Write variables for people."""
        return orjson.dumps(values, option=orjson.OPT_INDENT_2).decode()

    @property
    def usual_times(self) -> tuple[str, str]:
        """How long it took half of other stores, and nine in ten of them, in words."""
        assert self.forecast is not None  # noqa: S101 - the template asks only where there is one
        return duration(self.forecast.median_seconds), duration(self.forecast.p90_seconds)

    @property
    def began(self) -> datetime | None:
        """When it was begun last."""
        return self.one.started_at


async def _seen(store_id: str) -> tuple[StoreRow, bool]:
    """Find a store of the caller's, and tell whether they may act on its launch."""
    found = await stores.find_for(service().database, store_id, caller().user_id)
    if found is None:
        raise NotFound(
            "This store doesn't exist, or you don't have access to it. Check the link or the id."
        )
    row, role = found
    return row, RANKS[role] >= RANKS["admin"]


@routes.get("")
@page
async def show_launch(store_id: str) -> Response:
    """Show the launch; a store that has none is led to the form that begins it."""
    row, may_act = await _seen(store_id)
    database = service().database
    version = await launches.version(database, store_id)
    launch = await launches.find(database, store_id)
    if launch is None:
        return sent_on(f"/stores/{store_id}/launch/answers")
    held = (await devstores.holdings(database, [store_id])).get(store_id)
    connection = (await connections.load(database, [store_id]))[store_id].connection
    return shown(
        LaunchPage(
            store=row,
            may_act=may_act,
            launch=launch,
            standings={id: standing(launch, launch.milestones[id]) for id in PLAYBOOK.milestones},
            held=held,
            version=version,
            grant_address=grant_address(connection),
            lets_in=connection is not None
            and connection.access_token is not None
            and connection.refused_at is None,
        )
    )


@routes.get("/<milestone>")
@page
async def show_milestone(store_id: str, milestone: str) -> Response:
    """Show one milestone."""
    return shown(await _milestone(store_id, milestone))


@routes.post("/<milestone>/run")
@page
async def run_on_page(store_id: str, milestone: str) -> Response:
    """Run a milestone now, again where it was done, and show what became of it."""
    return await _ran(store_id, milestone, dry_run=False)


@routes.post("/<milestone>/rehearse")
@page
async def rehearse_on_page(store_id: str, milestone: str) -> Response:
    """Show what a milestone would send, and send nothing."""
    return await _ran(store_id, milestone, dry_run=True)


@routes.post("/<milestone>/<any(done, undo, skip, unskip):action>")
@page
async def decide_on_page(store_id: str, milestone: str, action: Action) -> Response:
    """Mark a milestone done or skip it, with a note, or take that back."""
    values = await forms.sent()
    said = {"storeId": store_id, "milestone": milestone, "action": action}
    note = values.get("note", "").strip()
    try:
        body = forms.read(CheckpointBody, {**said, "note": note} if note else said)
        await api.decide_checkpoint(data=body)
    except (Misfilled, Refusal) as wrong:
        again = await _milestone(store_id, milestone, filled=filled_again(values, wrong))
        return shown(again, refusal=wrong)
    return sent_on(f"/stores/{store_id}/launch/{milestone}")


async def _ran(store_id: str, milestone: str, *, dry_run: bool) -> Response:
    known = PLAYBOOK.milestones.get(milestone)
    if known is None:
        raise NotFound(
            "The playbook has no milestone with this name. Check the names in the launch overview."
        )
    try:
        body = RunBody(store_id=store_id, skill=known.skill, dry_run=dry_run, force=True)
        ran = await api.run_skill(data=body)
    except (ValidationError, Refusal) as wrong:
        refusal = (
            wrong
            if isinstance(wrong, Refusal)
            else NotFound(
                "This store doesn't exist, or you don't have access to it. Check the link or the id."
            )
        )
        again = await _milestone(store_id, milestone, filled=filled_again({}, refusal))
        return shown(again, refusal=refusal)
    if not dry_run:
        return sent_on(f"/stores/{store_id}/launch/{milestone}")
    found = await _milestone(
        store_id,
        milestone,
        documents=ran.documents or [],
        stopped=why(ran.reason, ran.scope, ran.detail),
    )
    return shown(found)


async def _milestone(store_id: str, milestone: str, **more: Any) -> MilestonePage:
    row, may_act = await _seen(store_id)
    launch = await running.launch_of(service(), store_id)
    one = launch.milestones.get(milestone)
    if one is None:
        raise NotFound(
            "The playbook has no milestone with this name. Check the names in the launch overview."
        )
    connection = (await connections.load(service().database, [store_id]))[store_id].connection
    forecast = await running.forecast(service(), launch)
    audited = launch.milestones["foundation.audit"].result
    missing = {} if audited is None else orjson.loads(audited)["missingScopes"]
    return MilestonePage(
        store=row,
        may_act=may_act,
        launch=launch,
        one=one,
        standing=standing(launch, one),
        attempts=await launches.attempts(service().database, store_id, milestone),
        missing=missing.get(milestone, ()),
        grant_address=grant_address(connection),
        forecast=next((step for step in forecast if step.milestone == milestone), None),
        **more,
    )
