"""Moving buyers from the older global digest to the pseudonyms of their stores (rules/shops#customers)."""

from contextlib import aclosing
from typing import Annotated, Any, Final

from pydantic import Field, model_validator
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import MissingCredential
from tolsey.actors.store.rehashing.effects import PAGE_SIZE, Rehashing
from tolsey.http.answers.people.compliance import IdentitiesAnswer, RehashedAnswer
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import ApiModel, Identifier, Whole
from tolsey.http.web.context import service
from tolsey.storage import audit
from tolsey.storage.commerce import identities
from tolsey.storage.sealing.sealed import SealBroken

SECONDS: Final = 8.0
"""How long one request goes on with what is left; the next goes on behind it."""
MOST_STORES: Final = 1_000

routes = Blueprint("identities", __name__, url_prefix="/api/integrations/commerce")
tag_blueprint(routes, ["Operators"])


class WantedIdentities(ApiModel):
    """What is to be moved, and how much of it in one transaction; all where nothing is said."""

    store_ids: Annotated[
        list[Identifier] | None, Field(description="Of these stores alone.", max_length=MOST_STORES)
    ] = None
    page_size: Annotated[
        Whole, Field(description="About so many rows in one transaction.", ge=1, le=10_000)
    ] = PAGE_SIZE

    @model_validator(mode="before")
    @classmethod
    def _all_when_nothing_is_sent(cls, given: Any) -> Any:
        return {} if given is None else given


@routes.get("/rehash-identities")
@administrator
async def count_identities() -> IdentitiesAnswer:
    """Count what a move would change, and change nothing; `complete` when nothing is left."""
    return IdentitiesAnswer.of(await identities.waiting(service().database))


@routes.post("/rehash-identities")
@administrator
async def rehash_identities(data: WantedIdentities) -> RehashedAnswer:
    """Move what is left for at most eight seconds; call again until the answer is `complete`."""
    database, time = service().database, service().runtime.time
    until = time.monotonic() + SECONDS
    rehashing = Rehashing(database, service().vault)
    moved = unopened = 0
    for shop_key in await identities.waiting(database, data.store_ids):
        try:
            async with aclosing(rehashing.of_shop(shop_key, data.page_size)) as pages:
                async for rows in pages:
                    moved += rows
                    if time.monotonic() > until:
                        break
        except SealBroken:
            unopened += 1
        if time.monotonic() > until:
            break
    # Only a key that nobody has at hand any more stands in the way of what is left.
    if unopened and not moved:
        raise MissingCredential("ENCRYPTION_KEYS")
    if moved:
        async with database.transaction() as tx:
            await audit.write(
                tx,
                "admin.identities_rehashed",
                "rehash-identities",
                actor=caller().user_id,
                rows=moved,
                storeIds=data.store_ids,
            )
    left = IdentitiesAnswer.of(await identities.waiting(database))
    return RehashedAnswer.read(left, rehashed=moved, unopened=unopened)
