"""The launch wizard: a launch begun, its milestones run and decided, and all of it shown (rules/launch#milestones)."""

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.launch.effects import told_facts, told_modules
from tolsey.actors.store.launch.messages import BeginLaunch, DecideCheckpoint
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Created
from tolsey.http.answers.launch import CockpitAnswer, LaunchAnswer, MilestoneRunAnswer
from tolsey.http.launch import running
from tolsey.http.launch.forms import LaunchBody, pricing_of
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.limits import limited
from tolsey.storage.commerce import launches

routes = Blueprint("launch", __name__, url_prefix="/api/wizard")
tag_blueprint(routes, ["Launch"])

MilestoneId = Annotated[str, StringConstraints(pattern=r"^[a-z]+\.[a-z_]+$", max_length=64)]
Note = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]


class RunBody(ApiModel):
    """A milestone to be run by its skill: only shown with `dryRun`, and once more after success with `force`."""

    store_id: Identifier
    skill: Annotated[str, Field(pattern=r"^[a-z-]{1,40}$")]
    dry_run: bool = False
    force: bool = False


class CheckpointBody(ApiModel):
    """What a person decided about a milestone."""

    store_id: Identifier
    milestone: MilestoneId
    action: Literal["done", "undo", "skip", "unskip"]
    note: Note | None = None


@routes.post("/store/launch")
@session
@limited(policies.LAUNCH)
async def begin_launch(data: LaunchBody) -> tuple[LaunchAnswer, Created]:
    """Begin the launch of a store; the same body again answers the same, another one 409 `launch_exists`."""
    await store_of(data.store_id, at_least="admin")
    spec = data.spec.model_dump(mode="json", exclude_none=True)
    kit = data.brand_kit.model_dump(mode="json", exclude_none=True)
    told: dict[str, Any] = {
        "onboardingSpec": spec,
        "givenBrandKit": kit,
        "brandKit": {"name": data.spec.business_name, **kit},
        "recommendations": {"pricing": pricing_of(data.spec)},
    }
    facts = {
        "brand.name": data.spec.business_name,
        "store.name": data.spec.business_name,
        "store.country": data.spec.country,
        "store.industry": data.spec.industry,
        "store.description": data.spec.description,
    }
    body = orjson.dumps([spec, kit], option=orjson.OPT_SORT_KEYS)
    message = BeginLaunch(
        launch_id=new_id("launch"),
        user_id=caller().user_id,
        digest=hashlib.sha256(body).hexdigest(),
        modules=told_modules(told),
        facts=told_facts({key: value for key, value in facts.items() if value is not None}),
        at=now(),
    )
    await ask(store(data.store_id), message)
    return LaunchAnswer.of(await running.launch_of(service(), data.store_id)), 201


@routes.get("/store/<store_id>")
@session
async def read_cockpit(store_id: str) -> CockpitAnswer:
    """Show the whole launch of a store: every milestone with its state, reason and times, and what comes before what."""
    await store_of(store_id)
    launch = await running.launch_of(service(), store_id)
    return CockpitAnswer.whole(launch, await launches.modules(service().database, store_id))


@routes.post("/skill/run")
@session
@limited(policies.LAUNCH)
async def run_skill(data: RunBody) -> MilestoneRunAnswer:
    """Run a milestone now, or show with `dryRun` what it would send; what takes longer is `running`."""
    await store_of(data.store_id, at_least="admin")
    found = PLAYBOOK.by_skill(data.skill)
    if found is None:
        raise NotFound("No milestone of the playbook takes this skill.")
    if data.dry_run:
        return await running.rehearse(service(), data.store_id, found.id)
    return await running.run(
        service(),
        data.store_id,
        found.id,
        user_id=caller().user_id,
        is_forced=data.force,
    )


@routes.post("/store/checkpoint")
@session
@limited(policies.LAUNCH)
async def decide_checkpoint(data: CheckpointBody) -> MilestoneRunAnswer:
    """Mark what a person does as done, take that back, or skip what can be skipped and take that back."""
    await store_of(data.store_id, at_least="admin")
    message = DecideCheckpoint(
        milestone=data.milestone,
        action=data.action,
        user_id=caller().user_id,
        note=data.note,
        at=now(),
    )
    return MilestoneRunAnswer.of(await ask(store(data.store_id), message))
