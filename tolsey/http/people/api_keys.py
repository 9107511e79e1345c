"""API keys: made, listed and ended by their users, in the API and on pages alike (rules/accounts#api-keys)."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Conflict, NotFound
from tolsey.http.answers.base import Created, ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.people.members import ApiKeyAnswer, MadeKeyAnswer
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, member_of, session
from tolsey.http.web.api_model import ApiModel, Identifier, Whole
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.http.web.repeats.idempotency import idempotent, keep_instead
from tolsey.runtime.ids import new_id
from tolsey.storage.people import api_keys
from tolsey.storage.people.api_keys import LIFETIME_DAYS, MOST_LIVE, TooManyLive
from tolsey.storage.records.people import ApiKey

NAME_CHARACTERS: Final = 100

routes = Blueprint("api_keys", __name__, url_prefix="/api/account/api-keys")
tag_blueprint(routes, ["Accounts"])

Scope = Literal["intelligence:read", "intelligence:write"]


class KeyBody(ApiModel):
    """For which organization a key speaks, what it may do, and for how long."""

    organization_id: Identifier
    scopes: Annotated[Sequence[Scope], Field(min_length=1, max_length=2)]
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=NAME_CHARACTERS)] = ""
    lifetime_days: Annotated[Whole, Field(ge=1, le=LIFETIME_DAYS)] = LIFETIME_DAYS


async def make(wanted: KeyBody) -> MadeKeyAnswer:
    """Make a key of the caller for an organization of theirs; 404, 409, 429."""
    await member_of(wanted.organization_id)
    await limits.admit(policies.API_KEYS)
    try:
        async with service().database.transaction() as tx:
            made = await api_keys.begin(
                tx,
                new_id("key"),  # a new one each time: the value of an earlier attempt is lost
                user_id=caller().user_id,
                organization_id=wanted.organization_id,
                name=wanted.name,
                scopes=sorted(set(wanted.scopes)),
                at=now(),
                lifetime=timedelta(days=wanted.lifetime_days),
            )
    except TooManyLive as error:
        raise Conflict(
            f"You already have {MOST_LIVE} active API keys, the maximum. Revoke one you no longer use.",
            code="too_many_keys",
        ) from error
    if made is None:  # they left it just now
        raise NotFound("This organization doesn't exist, or you don't belong to it. Check the id.")
    key, value = made
    return MadeKeyAnswer.read(key, last_used_at=None, value=value)


async def live_keys(before: str, limit: int) -> list[ApiKey]:
    """List the caller's live keys, newest first."""
    return await api_keys.listed(
        service().database, caller().user_id, now(), before=before, limit=limit
    )


@routes.post("")
@session
@idempotent
async def make_key(data: KeyBody) -> tuple[MadeKeyAnswer, Created]:
    """Make a key; its value is in this answer and never shown again."""
    made = await make(data)
    keep_instead(made.model_copy(update={"value": None}).model_dump_json())
    return made, 201


@routes.get("")
@session
async def list_keys(query_args: PageQuery) -> ListAnswer[ApiKeyAnswer]:
    """List the caller's live keys, without their values."""
    found = await live_keys(query_args.after, query_args.limit + 1)
    return list_of(found, query_args.limit, key=lambda one: one.id, answer=ApiKeyAnswer.of)


@routes.delete("/<key_id>")
@session
async def end_key(key_id: str) -> tuple[NoBody, NoContent]:
    """End a key at once."""
    async with service().database.transaction() as tx:
        if not await api_keys.end(tx, caller().user_id, key_id, now()):
            raise NotFound(
                "This API key doesn't exist or was already revoked. Reload the list of keys."
            )
    return "", 204
