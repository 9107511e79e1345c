"""Scans that operators ask for: of any domain, kept or only looked at (rules/intelligence#registry)."""

from typing import Annotated

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.domains import required_domain
from tolsey.actors.refusals import Refusal
from tolsey.actors.storefront.messages import RequestScan, storefront
from tolsey.http.answers.market.intelligence import ScanReportAnswer
from tolsey.http.answers.operators.operations import OperationAnswer, OperationBodyAnswer
from tolsey.http.operations import AcceptedOperation, scanned
from tolsey.http.web.access import administrator, caller
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service
from tolsey.storage import audit
from tolsey.storage.records.intelligence import ScanMode

routes = Blueprint("intelligence_scans", __name__, url_prefix="/api/admin/intelligence")
tag_blueprint(routes, ["Intelligence"])


class ScanOrder(ApiModel):
    """Which domain to look at: `full` reads all of its catalogue, `light` the first page."""

    domain: Annotated[str, Field(max_length=300)]
    mode: ScanMode = "full"
    persist: bool = False


@routes.post("/scan")
@administrator
async def scan_storefront(data: ScanOrder) -> ScanReportAnswer | AcceptedOperation:
    """Scan a storefront now. What is persisted restores a domain that was to be left alone.

    A scan that takes longer than ten seconds goes on as an operation, whose result is the same answer.
    """
    domain = required_domain(data.domain)
    async with service().database.transaction() as tx:
        await audit.write(
            tx,
            "admin.intelligence.scan",
            domain,
            actor=caller().user_id,
            mode=data.mode,
            persist=data.persist,
        )
    message = RequestScan(
        id=new_id("scan"),
        mode=data.mode,
        is_kept=data.persist,
        source="admin",
        at=now(),
        restores=True,
        user_id=caller().user_id,
    )
    scan = await scanned(domain, await ask(storefront(domain), message))
    if scan.state == "failed":
        raise Refusal(
            "The scan failed because of an error on our side. Try again in a minute.",
            status=502,
            code="scan_failed",
        )
    if scan.ended_at is None:
        where = {"Location": f"/api/operations/{scan.id}"}
        return OperationBodyAnswer(operation=OperationAnswer.of_scan(scan, None)), 202, where
    return ScanReportAnswer.of(scan, service().settings.provider_keys)
