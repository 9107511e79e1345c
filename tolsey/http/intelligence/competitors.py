"""The storefronts that a store competes with, as its people name them."""

from typing import Annotated

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.domains import required_domain
from tolsey.actors.organization import plans
from tolsey.actors.refusals import Conflict, NotFound, PaymentRequired
from tolsey.actors.storefront.messages import DiscoverStorefront, RequestScan, storefront
from tolsey.http.answers.base import Accepted, Created, ListAnswer, NoBody, NoContent, list_of
from tolsey.http.answers.market.intelligence import CompetitorAnswer, ScanAnswer
from tolsey.http.web import limits, policies
from tolsey.http.web.access import caller, organization_of, session, store_of
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.intelligence import competitors, registry
from tolsey.storage.records.intelligence import Competitor

routes = Blueprint("competitors", __name__, url_prefix="/api/stores/<store_id>/competitors")
tag_blueprint(routes, ["Intelligence"])


class NewCompetitor(ApiModel):
    """Whom a store competes with."""

    domain: Annotated[str, Field(max_length=300)]


@routes.get("")
@session
async def list_competitors(store_id: str, query_args: PageQuery) -> ListAnswer[CompetitorAnswer]:
    """List whom a store competes with and what is known of them, those named last first."""
    await store_of(store_id)
    database, at = service().database, now()
    found = await competitors.page(
        database, store_id, query_args.limit + 1, query_args.after_moment
    )
    known = await registry.load(database, [one.domain for one in found])
    return list_of(
        found,
        query_args.limit,
        key=lambda one: f"{one.added_at.isoformat()}|{one.domain}",
        answer=lambda one: CompetitorAnswer.of(one, known.get(one.domain), at),
    )


@routes.post("")
@session
async def add_competitor(
    store_id: str, data: NewCompetitor
) -> CompetitorAnswer | tuple[CompetitorAnswer, Created]:
    """Name a storefront that a store competes with; it is scanned from then on. How many, the plan says."""
    store = await store_of(store_id)
    domain, database = required_domain(data.domain), service().database
    if await registry.suppressions(database, [domain]):
        raise Conflict(
            "The owner of this domain opted out of scans. Choose another competitor.",
            code="suppressed",
        )
    plan = plans.BY_CODE[(await organization_of(store.organization_id)).plan]
    wanted = Competitor(store_id=store_id, domain=domain, added_by=caller().user_id, added_at=now())
    async with database.transaction() as tx:
        added = await competitors.add(tx, wanted, plan.competitors_per_store)
    if added is None:
        most = plan.competitors_per_store or 0
        raise PaymentRequired(
            f"Your plan includes {most} competitors per store. Remove one, or upgrade your plan.",
            code="competitor_limit",
            plan=plans.proposed_for_competitors(most + 1),
        )
    await ask(storefront(domain), DiscoverStorefront(source="competitor", at=now()))
    row = await registry.find(database, domain)
    (kept,) = await competitors.load(database, store_id, [domain])
    answer = CompetitorAnswer.of(kept, row, now())
    return (answer, 201) if added else answer


@routes.post("/<domain>/scan")
@session
async def scan_competitor(store_id: str, domain: str) -> tuple[ScanAnswer, Accepted]:
    """Have a competitor scanned anew, as one of the scans that the organization's plan includes a day."""
    store = await store_of(store_id)
    named = (await competitor_of(store_id, domain)).domain
    plan = plans.BY_CODE[(await organization_of(store.organization_id)).plan]
    whose = limits.of_organization(store.organization_id)
    await limits.admit(*policies.scans(plan), whose=whose)
    wish = RequestScan(
        id=new_id("scan"),
        mode="full",
        is_kept=True,
        source="customer",
        at=now(),
        organization_id=store.organization_id,
        user_id=caller().user_id,
    )
    scan = await ask(storefront(named), wish)
    return ScanAnswer.of(scan, service().settings.provider_keys), 202


async def competitor_of(store_id: str, domain: str) -> Competitor:
    """Read a competitor of a store. Raises NotFound where it is none."""
    found = await competitors.load(service().database, store_id, [required_domain(domain)])
    if not found:
        raise NotFound(
            "This domain isn't one of the store's competitors. Add it as a competitor first."
        )
    return found[0]


@routes.delete("/<domain>")
@session
async def remove_competitor(store_id: str, domain: str) -> tuple[NoBody, NoContent]:
    """Name a storefront a competitor no more; what the registry has of it stays there."""
    await store_of(store_id)
    async with service().database.transaction() as tx:
        if not await competitors.remove(tx, store_id, required_domain(domain)):
            raise NotFound(
                "This domain isn't one of the store's competitors. Add it as a competitor first."
            )
    return "", 204
