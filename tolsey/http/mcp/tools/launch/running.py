"""Running milestones and looking at the shop, on an agent's word: it attests nothing for a person (rules/launch#checkpoints)."""

from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.launch.messages import ContinueLaunch
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.messages import store
from tolsey.http.answers.stores.launch import MilestoneRunAnswer
from tolsey.http.launch import running
from tolsey.http.mcp.gate import Principal
from tolsey.http.mcp.tools.writes.contract import WriteArguments
from tolsey.http.mcp.tools.writes.recorded import Effected, RecordedWrite
from tolsey.http.web import policies

SCOPE: Final = "launch:write"


class RunArguments(WriteArguments):
    """Which milestone is to be run."""

    milestone_id: Annotated[str, Field(max_length=64)]


class RunLaunchMilestone(RecordedWrite[RunArguments]):
    """Runs a milestone of the store's launch by the runner that people's buttons press."""

    name: ClassVar[str] = "run_launch_milestone"
    title: ClassVar[str] = "Run a launch milestone"
    description: ClassVar[str] = (
        "Runs an automatic milestone now; dry_run shows what it would send. A person's answers human_required."
    )
    scope: ClassVar[str] = SCOPE
    arguments: ClassVar[type[WriteArguments]] = RunArguments

    def subject(self, given: RunArguments) -> str:
        """Name what it is about."""
        return f"launch:{given.milestone_id}"

    async def plan(self, principal: Principal, given: RunArguments) -> Effected:
        """Show the documents that it would send, with their variables."""
        _require(given.milestone_id)
        await self._count(principal, policies.LAUNCH)
        shown = await running.rehearse(self._service, principal.store_id, given.milestone_id)
        return Effected({}, _said(shown))

    async def carry_out(
        self, principal: Principal, given: RunArguments, operation_id: str
    ) -> Effected:
        """Run it: what is under way or done is not begun again."""
        del operation_id
        _require(given.milestone_id)
        await self._count(principal, policies.LAUNCH)
        ran = await running.run(
            self._service,
            principal.store_id,
            given.milestone_id,
            user_id=principal.user_id,
            is_forced=False,
        )
        return Effected({}, _said(ran))


class RequestLaunchProbe(RecordedWrite[WriteArguments]):
    """Has the shop looked at for what people did."""

    name: ClassVar[str] = "request_launch_probe"
    title: ClassVar[str] = "Look for what people did"
    description: ClassVar[str] = (
        "Has the shop looked at: what a person did of the launch counts once it is found there."
    )
    scope: ClassVar[str] = SCOPE
    arguments: ClassVar[type[WriteArguments]] = WriteArguments

    def subject(self, given: WriteArguments) -> str:
        """Name what it is about."""
        del given
        return "launch:probe"

    async def plan(self, principal: Principal, given: WriteArguments) -> Effected:
        """Say when the shop was looked at last."""
        del given
        launch = await running.launch_of(self._service, principal.store_id)
        at = launch.head.probed_at
        return Effected({"probed_at": None if at is None else at.isoformat()}, {"requested": True})

    async def carry_out(
        self, principal: Principal, given: WriteArguments, operation_id: str
    ) -> Effected:
        """Do what a tick does for this store."""
        del operation_id
        found = await self.plan(principal, given)
        await self._count(principal, policies.LAUNCH)
        wish = ContinueLaunch(at=self._service.clock(), is_tick=True)
        await self._service.runtime.ask(store(principal.store_id), wish)
        return found


def _require(milestone: str) -> None:
    if milestone not in PLAYBOOK.milestones:
        raise NotFound(
            "The playbook has no milestone with this name. Check the names in the launch overview."
        )


def _said(answer: MilestoneRunAnswer) -> dict[str, Any]:
    return answer.model_dump(mode="json", exclude_none=True)
