"""The launch of a store: how far each milestone is, and what it waits for (rules/launch#milestones)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tolsey.actors.refusals import NotFound
from tolsey.http.answers.stores.launch import MilestoneAnswer, milestones_of
from tolsey.http.launch import running
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.building import Nothing, ReadTools, ToolAnswer, ToolArguments, reads
from tolsey.http.mcp.tools.shop_words import ShopText, ShopValues

SCOPES: Final = frozenset({"launch:read"})


class LaunchStep(ToolAnswer):
    """A milestone in the list of all."""

    id: str
    title: str
    section: str
    kind: str
    state: str
    reason: str | None
    waits_for: list[str]


class LaunchSteps(ToolAnswer):
    """All milestones, in the order of the playbook."""

    items: list[LaunchStep]


class PersonsStep(ToolAnswer):
    """What a person does, where in the shop's admin, and why no program does it."""

    condition: str
    instructions: str
    admin_path: str | None
    why: str


class LaunchStepDetail(LaunchStep):
    """A milestone with all that is known of it."""

    skill: str
    executor: bool
    skippable: bool
    detail: ShopText | None
    scope: str | None
    attempts: int
    max_attempts: int
    started_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None
    note: ShopText | None
    missing_scopes: list[str]
    checkpoint: PersonsStep | None
    manual_fallback: str | None
    result: ShopValues | None


class AskedMilestone(ToolArguments):
    """Which milestone is wanted."""

    milestone_id: str


class LaunchTools(ReadTools):
    """Reads a store's launch for whoever the gate admitted."""

    @reads(
        "list_launch_milestones",
        "List launch milestones",
        "Lists the milestones of the store's launch in order, each with its state, why, and what it waits for.",
        scopes=SCOPES,
    )
    async def list(self, principal: Principal, asked: Nothing) -> LaunchSteps:
        """List the milestones."""
        del asked
        return LaunchSteps(items=[LaunchStep.read(one) for one in await self._all(principal)])

    @reads(
        "get_launch_milestone",
        "Get a launch milestone",
        "Reads one milestone: its state, tries and result, and what a person must do, where that is theirs.",
        scopes=SCOPES,
    )
    async def get(self, principal: Principal, asked: AskedMilestone) -> LaunchStepDetail:
        """Read a milestone."""
        for one in await self._all(principal):
            if one.id == asked.milestone_id:
                theirs = one.checkpoint
                return LaunchStepDetail.read(
                    one, checkpoint=None if theirs is None else PersonsStep.read(theirs)
                )
        raise NotFound(
            "The playbook has no milestone with this name. Check the names in the launch overview."
        )

    async def _all(self, principal: Principal) -> Sequence[MilestoneAnswer]:
        """Read all milestones. Raises NotFound where no launch was begun."""
        return milestones_of(await running.launch_of(self._service, principal.store_id))
