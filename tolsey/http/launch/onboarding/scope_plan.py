"""Which milestones of a launch the shop would not allow: told before it begins, with where the merchant grants it."""

from collections.abc import Sequence
from dataclasses import dataclass

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.store.launch.grants import covers, grant_address
from tolsey.actors.store.launch.playbook import PLAYBOOK, PlaybookMilestone
from tolsey.http.answers.stores.launch import BlockedMilestone, ScopePlanAnswer
from tolsey.http.web.access import session, store_of
from tolsey.http.web.context import service
from tolsey.storage.commerce import connections

routes = Blueprint("launch_scopes", __name__, url_prefix="/api/wizard")
tag_blueprint(routes, ["Launch"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A milestone that will be blocked, and the permissions for want of which."""

    id: str
    title: str
    scopes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePlan:
    """What the shop of a store granted, and what a launch lacks of it; without a connection nothing is known."""

    is_connected: bool
    granted: Sequence[str]
    lacking: Sequence[Lacking]
    grant_address: str | None

    @property
    def missing(self) -> Sequence[str]:
        """Every permission that is missing, once."""
        return sorted({scope for one in self.lacking for scope in one.scopes})


@routes.get("/store/<store_id>/scopes")
@session
async def read_scope_plan(store_id: str) -> ScopePlanAnswer:
    """Say which milestones would be blocked and for want of what, before a launch begins or at any time after.

    `grantUrl` is where the merchant accepts in the shop what the app asks for by now.
    """
    await store_of(store_id)
    plan = await scope_plan(store_id)
    return ScopePlanAnswer(
        connected=plan.is_connected,
        granted=list(plan.granted),
        missing=list(plan.missing),
        blocked=[
            BlockedMilestone(id=one.id, title=one.title, scopes=list(one.scopes))
            for one in plan.lacking
        ],
        grant_url=plan.grant_address,
    )


async def scope_plan(store_id: str) -> ScopePlan:
    """Hold the grant of a store's shop against what each milestone takes."""
    connection = (await connections.load(service().database, [store_id]))[store_id].connection
    is_connected = connection is not None and connection.access_token is not None
    granted = connection.scopes if connection is not None and is_connected else ()
    return ScopePlan(
        is_connected=is_connected,
        granted=granted,
        # What the platform never told of is not guessed.
        lacking=lacking(granted) if granted else [],
        grant_address=grant_address(connection),
    )


def lacking(granted: Sequence[str]) -> Sequence[Lacking]:
    """Name the milestones that a grant does not cover, and what each lacks (rules/launch#retries)."""
    found = ((one, _missing(one, granted)) for one in PLAYBOOK.milestones.values())
    return [
        Lacking(id=one.id, title=one.title, scopes=missing) for one, missing in found if missing
    ]


def _missing(one: PlaybookMilestone, granted: Sequence[str]) -> Sequence[str]:
    return [scope for scope in one.scopes if not covers(granted, scope)]
