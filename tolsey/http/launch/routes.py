"""The launch wizard: a launch begun, its milestones run and decided, and all of it shown (rules/launch#milestones)."""

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.actors.store.launch.effects import told_facts, told_modules
from tolsey.actors.store.launch.messages import BeginLaunch, ChangeLaunchSpec, DecideCheckpoint
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.actors.store.messages import store
from tolsey.http.answers.base import Created
from tolsey.http.answers.stores.launch import CockpitAnswer, LaunchAnswer, MilestoneRunAnswer
from tolsey.http.launch import running
from tolsey.http.launch.onboarding.forms import LaunchBody, OnboardingSpec, SpecBody, pricing_of
from tolsey.http.web import policies
from tolsey.http.web.access import caller, session, store_of
from tolsey.http.web.api_model import ApiModel, Identifier
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.limits import limited
from tolsey.storage.commerce import devstores, launches

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
    kit = data.brand_kit.model_dump(mode="json", exclude_none=True)
    drafted = {"givenBrandKit": kit, "brandKit": {"name": data.spec.business_name, **kit}}
    message = BeginLaunch(
        launch_id=new_id("launch"),
        user_id=caller().user_id,
        digest=_digest(data.spec, kit),
        modules=told_modules({**drafted, **_told(data.spec)}),
        facts=told_facts(_facts(data.spec)),
        at=now(),
        storefront_password=_sealed(data.store_id, data.spec),
    )
    await ask(store(data.store_id), message)
    return LaunchAnswer.of(await running.launch_of(service(), data.store_id)), 201


@routes.patch("/store/<store_id>")
@session
@limited(policies.LAUNCH)
async def change_spec(store_id: str, data: SpecBody) -> CockpitAnswer:
    """Tell the store anew; refused with 409 `products_made` once its products were made."""
    await store_of(store_id, at_least="admin")
    modules = await launches.modules(service().database, store_id)
    message = ChangeLaunchSpec(
        user_id=caller().user_id,
        digest=_digest(data.spec, modules.get("givenBrandKit") or {}),
        modules=told_modules(_told(data.spec)),
        facts=told_facts(_facts(data.spec)),
        at=now(),
        storefront_password=_sealed(store_id, data.spec),
    )
    await ask(store(store_id), message)
    return await _cockpit(store_id)


def _sealed(store_id: str, spec: OnboardingSpec) -> str | None:
    """Seal the password of the storefront; it is no part of the form that is kept."""
    told = spec.storefront_password
    return None if told is None else launches.seal_password(service().vault, store_id, told)


def _digest(spec: OnboardingSpec, kit: dict[str, Any]) -> str:
    """Name what a launch goes by: the same form again is the same launch."""
    body = [spec.model_dump(mode="json", exclude_none=True), kit]
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _told(spec: OnboardingSpec) -> dict[str, Any]:
    """Say what the store's context keeps of the form."""
    return {
        "onboardingSpec": spec.model_dump(mode="json", exclude_none=True),
        "recommendations": {"pricing": pricing_of(spec)},
    }


def _facts(spec: OnboardingSpec) -> dict[str, Any]:
    """Say what the store's memory keeps of the form."""
    facts = {
        "brand.name": spec.business_name,
        "store.name": spec.business_name,
        "store.country": spec.country,
        "store.industry": spec.industry,
        "store.description": spec.description,
    }
    return {key: value for key, value in facts.items() if value is not None}


@routes.get("/store/<store_id>")
@session
async def read_cockpit(store_id: str) -> CockpitAnswer:
    """Show the whole launch of a store: every milestone with its state, reason and times, and what comes before what."""
    await store_of(store_id)
    return await _cockpit(store_id)


async def _cockpit(store_id: str) -> CockpitAnswer:
    database = service().database
    launch = await running.launch_of(service(), store_id)
    held = await devstores.holdings(database, [store_id])
    modules = await launches.modules(database, store_id)
    forecast = await running.forecast(service(), launch)
    return CockpitAnswer.whole(
        launch,
        modules=modules,
        forecast=forecast,
        sold=await running.sold_since_opening(service(), launch),
        held=held.get(store_id),
    )


@routes.post("/skill/run")
@session
@limited(policies.LAUNCH)
async def run_skill(data: RunBody) -> MilestoneRunAnswer:
    """Run a milestone now, or show with `dryRun` what it would send; what takes longer is `running`."""
    await store_of(data.store_id, at_least="admin")
    found = PLAYBOOK.by_skill(data.skill)
    if found is None:
        raise NotFound("No milestone in the playbook uses this skill. Check the skill's name.")
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
