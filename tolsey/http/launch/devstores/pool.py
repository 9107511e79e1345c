"""The pool of shops for operators: what is registered, who has it, and who waits to be invited."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.ports import Shop
from tolsey.actors.refusals import Conflict, Unprocessable
from tolsey.actors.store.provisioning.transferring import TEST_PLANS
from tolsey.http.answers.base import Created, ListAnswer, list_of
from tolsey.http.answers.stores.devstores import PooledStoreAnswer
from tolsey.http.stores.integrations import ShopApp, opened, plan_name
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.context import now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage import audit
from tolsey.storage.commerce import devstores
from tolsey.storage.records.commerce.devstores import DevStore, DevStoreState

routes = Blueprint("devstore_pool", __name__, url_prefix="/api/admin/devstore-pool")
tag_blueprint(routes, ["Operators"])


class PoolQuery(PageQuery):
    """Which shops of the pool to list."""

    state: DevStoreState | None = None


@routes.post("")
@administrator
async def register_dev_store(data: ShopApp) -> tuple[PooledStoreAnswer, Created]:
    """Put a shop into the pool, once its app opened it; again before it is handed out replaces the keys."""
    token, facts, _ = await opened(data)
    plan = await plan_name(Shop(facts.shop_domain, token))
    # Only a client-transfer store can be handed over, and its plan is a test's (rules/launch#dev-stores).
    if plan is not None and plan not in TEST_PLANS:
        raise Unprocessable(
            f"This shop's plan is {plan}, so it can't be transferred. Add a client transfer store from the Partner Dashboard.",
            code="not_transferable",
        )
    domain = facts.shop_domain
    client_secret, access_token = devstores.seal_keys(
        service().vault, domain, data.client_secret, data.access_token
    )
    one = DevStore(
        shop_domain=domain,
        client_id=data.client_id,
        client_secret=client_secret,
        access_token=access_token,
        plan_name=plan,
        registered_by=caller().user_id,
        registered_at=now(),
    )
    async with service().database.transaction() as tx:
        if not await devstores.register(tx, one):
            raise Conflict(
                "This shop is already assigned to a store, so its keys can't be changed. Add"
                " another shop to the pool.",
                code="devstore_claimed",
            )
        await audit.write(tx, "admin.devstore.registered", domain, actor=caller().user_id)
    (kept,) = await devstores.pool(service().database, None, after="", limit=1, shop_domain=domain)
    return PooledStoreAnswer.pooled(kept), 201


@routes.get("")
@administrator
async def list_dev_stores(query_args: PoolQuery) -> ListAnswer[PooledStoreAnswer]:
    """List the pool by the shops' domains: who has each, and whose transfer waits for an operator."""
    found = await devstores.pool(
        service().database,
        query_args.state,
        after=query_args.after,
        limit=query_args.limit + 1,
    )
    return list_of(
        found, query_args.limit, key=lambda one: one.shop_domain, answer=PooledStoreAnswer.pooled
    )
