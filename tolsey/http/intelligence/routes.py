"""The intelligence API: the registry of storefronts, for programs with a key (rules/accounts#api-keys).

Each call counts against the plan of the key's organization (rules/limits#windows).
"""

from datetime import datetime
from decimal import Decimal
from typing import Annotated

import orjson
from pydantic import AwareDatetime, Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.domains import domain_named, required_domain
from tolsey.actors.organization import plans
from tolsey.actors.refusals import NotFound, Unprocessable
from tolsey.actors.storefront.messages import RequestScan, storefront
from tolsey.http.answers.base import Accepted, ListAnswer, list_of
from tolsey.http.answers.market.intelligence import (
    ChangeAnswer,
    ComparedAnswer,
    ScanAnswer,
    SnapshotAnswer,
    StorefrontAnswer,
    StorefrontProductAnswer,
    TechnologyAnswer,
    UsageAnswer,
    VelocityAnswer,
    WindowAnswer,
)
from tolsey.http.intelligence.known import (
    MOST_COMPARED,
    change_after,
    change_key,
    compared,
    sales_of,
)
from tolsey.http.web import limits, policies
from tolsey.http.web.access import api_key, key_holder
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.intelligence import competitors, reading, registry
from tolsey.storage.intelligence.reading import StorefrontFilter
from tolsey.storage.limits import Policy
from tolsey.storage.records.intelligence import ScanMode, StorefrontRow

routes = Blueprint("intelligence", __name__, url_prefix="/api/intelligence")
tag_blueprint(routes, ["Intelligence"])

MOST_DOMAINS = 50
Domains = Annotated[str, Field(max_length=MOST_DOMAINS * 256)]


class StorefrontQuery(PageQuery):
    """Which shops to list."""

    platform: Annotated[str, Field(max_length=80)] | None = None
    category: Annotated[str, Field(max_length=120)] | None = None
    country: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | None = None
    min_velocity: Annotated[Decimal, Field(ge=0, le=1_000_000)] | None = None


class ChangeQuery(PageQuery):
    """Since when, and at which shops: those named, with commas, or all that the organization competes with."""

    since: AwareDatetime
    domains: Domains | None = None

    @property
    def after_change(self) -> tuple[datetime, str, int, str] | None:
        """The key of the last change of the page before."""
        return change_after(self.after)


class ComparisonQuery(ApiModel):
    """Which shops to compare, with commas: five at the most."""

    # Escaped whole it still fits into a request's head, so that none within the bound is answered 431.
    domains: Annotated[str, Field(max_length=MOST_COMPARED * 256)]


class ScanWish(ApiModel):
    """Which domain to look at: `full` reads all of its catalogue, `light` the first page."""

    domain: Annotated[str, Field(max_length=300)]
    mode: ScanMode = "full"


@routes.get("/stores")
@api_key("intelligence:read")
async def list_storefronts(query_args: StorefrontQuery) -> ListAnswer[StorefrontAnswer]:
    """List the shops of the registry, those that were heard of last first."""
    await _count()
    wanted = StorefrontFilter(
        platform=query_args.platform,
        category=query_args.category,
        country=query_args.country,
        min_velocity=query_args.min_velocity,
    )
    rows = await reading.storefronts(
        service().database, query_args.limit + 1, query_args.after_moment, wanted
    )
    at = now()
    return list_of(
        rows,
        query_args.limit,
        key=lambda row: f"{row.discovered_at.isoformat()}|{row.domain}",
        answer=lambda row: StorefrontAnswer.of(row, at),
    )


@routes.get("/stores/<domain>")
@api_key("intelligence:read")
async def get_storefront(domain: str) -> StorefrontAnswer:
    """Tell what is known of a shop: each field with how it is known, and why the others are not."""
    await _count()
    return StorefrontAnswer.of(await _known(domain), now())


@routes.get("/stores/<domain>/products")
@api_key("intelligence:read")
async def list_storefront_products(
    domain: str, query_args: PageQuery
) -> ListAnswer[StorefrontProductAnswer]:
    """List what a shop sells, its newest products first."""
    await _count()
    row = await _known(domain)
    found = await reading.products(
        service().database, row.domain, query_args.limit + 1, query_args.after_number or None
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda one: str(one["product_id"]),
        answer=lambda one: StorefrontProductAnswer.of(one, row.currency),
    )


@routes.get("/stores/<domain>/snapshots")
@api_key("intelligence:read")
async def list_storefront_snapshots(
    domain: str, query_args: PageQuery
) -> ListAnswer[SnapshotAnswer]:
    """List the snapshots of a shop, the latest first; they are six hours apart."""
    await _count()
    row, after = await _known(domain), query_args.after_moment
    found = await reading.snapshots(
        service().database, row.domain, query_args.limit + 1, after[0] if after else None
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda one: f"{one['taken_at'].isoformat()}|",
        answer=lambda one: SnapshotAnswer.of(one, row.currency),
    )


@routes.get("/stores/<domain>/velocity")
@api_key("intelligence:read")
async def list_storefront_velocity(
    domain: str, query_args: PageQuery
) -> ListAnswer[VelocityAnswer]:
    """List how fast each product of a shop sells, with its interval, the newest products first."""
    await _count()
    row = await _known(domain)
    database = service().database
    found = await reading.products(
        database, row.domain, query_args.limit + 1, query_args.after_number or None
    )
    ids = [one["product_id"] for one in found]
    told = await sales_of(database, row.domain, ids, now())
    return list_of(
        ids,
        query_args.limit,
        key=str,
        answer=lambda id: VelocityAnswer.of(*told[id]),
    )


@routes.get("/stores/<domain>/technologies")
@api_key("intelligence:read")
async def list_storefront_technologies(domain: str) -> ListAnswer[TechnologyAnswer]:
    """List what a shop is made with, each with the mark that gave it away."""
    await _count()
    facts = orjson.loads((await _known(domain)).facts)
    found = [TechnologyAnswer(**one) for one in facts.get("apps", {}).get("value") or ()]
    platform = facts.get("platform")
    if platform is not None:
        first = TechnologyAnswer(
            name=platform["value"],
            category="platform",
            mark=platform["source"],
            provenance=platform["provenance"],
        )
        found.insert(0, first)
    return ListAnswer(items=found, next_cursor=None)


@routes.get("/compare")
@api_key("intelligence:read")
async def compare_storefronts(query_args: ComparisonQuery) -> ListAnswer[ComparedAnswer]:
    """Compare up to five shops by the figures that all of them may have."""
    await _count()
    domains = _listed(query_args.domains, MOST_COMPARED)
    return ListAnswer(items=await compared(service().database, domains, now()), next_cursor=None)


@routes.get("/changes")
@api_key("intelligence:read")
async def list_storefront_changes(query_args: ChangeQuery) -> ListAnswer[ChangeAnswer]:
    """List what changed at shops since a moment, the latest first."""
    await _count()
    database = service().database
    if query_args.domains is not None:
        domains = _listed(query_args.domains, MOST_DOMAINS)
    else:
        domains = await competitors.of_organization(database, key_holder().organization_id)
    found = await reading.changes(
        database,
        query_args.since,
        query_args.limit + 1,
        domains=domains,
        before=query_args.after_change,
    )
    return list_of(
        found,
        query_args.limit,
        key=change_key,
        answer=lambda one: ChangeAnswer.read(one, provenance="observed"),
    )


@routes.post("/scans")
@api_key("intelligence:write")
async def request_scan(data: ScanWish) -> tuple[ScanAnswer, Accepted]:
    """Have a shop scanned, and kept in the registry; `GET /api/intelligence/scans/{id}` tells how far it is."""
    domain = required_domain(data.domain)
    holder = key_holder()
    await _count(*policies.scans(plans.BY_CODE[holder.plan]))
    message = RequestScan(
        id=new_id("scan"),
        mode=data.mode,
        is_kept=True,
        source="customer",
        at=now(),
        organization_id=holder.organization_id,
        user_id=holder.user_id,
    )
    scan = await ask(storefront(domain), message)
    return ScanAnswer.of(scan, service().settings.provider_keys), 202


@routes.get("/scans/<scan_id>")
@api_key("intelligence:read")
async def get_scan(scan_id: str) -> ScanAnswer:
    """Tell how far a scan is that the key's organization asked for, and what it came to; kept for 30 days."""
    await _count()
    scan = await registry.find_scan(service().database, scan_id)
    if scan is None or scan.organization_id != key_holder().organization_id:
        raise NotFound(
            "This scan doesn't exist, has expired, or belongs to another organization. Start a"
            " new scan."
        )
    return ScanAnswer.of(scan, service().settings.provider_keys)


@routes.get("/usage")
@api_key("intelligence:read")
async def get_usage() -> UsageAnswer:
    """Tell what the key's organization has used of its plan's windows."""
    await _count()
    holder = key_holder()
    plan = plans.BY_CODE[holder.plan]
    bounds = (*policies.intelligence(plan), *policies.scans(plan))
    whose = limits.of_organization(holder.organization_id)
    used = await service().limits.used(bounds, whose)
    windows = [
        WindowAnswer(
            name=policy.name, limit=policy.limit, used=count, window_seconds=policy.window_seconds
        )
        for policy, count in zip(bounds, used, strict=True)
    ]
    return UsageAnswer(organization_id=holder.organization_id, plan=holder.plan, windows=windows)


async def _known(domain: str) -> StorefrontRow:
    """Find a shop of the registry. Raises NotFound: one that is left alone is not there either."""
    named = domain_named(domain)
    row = await registry.find(service().database, named) if named is not None else None
    if row is None:
        raise NotFound("The registry has no data for this shop. Request a scan first.")
    return row


def _listed(text: str, most: int) -> list[str]:
    """Read domains that are written with commas. Raises Unprocessable."""
    found = list(dict.fromkeys(required_domain(one) for one in text.split(",")))
    if len(found) > most:
        raise Unprocessable(
            f"The request names too many domains. Send at most {most}.", code="too_many_domains"
        )
    return found


async def _count(*more: Policy) -> None:
    """Count a call against the plan of the organization, whichever of its keys makes it."""
    holder = key_holder()
    plan = policies.intelligence(plans.BY_CODE[holder.plan])
    await limits.admit(*plan, *more, whose=limits.of_organization(holder.organization_id))
