"""Where the queue calls back when the turn of a scan has come."""

from typing import Annotated

from pydantic import Field
from quart import Blueprint, g
from quart_schema import tag_blueprint

from tolsey.actors.domains import required_domain
from tolsey.actors.storefront.messages import RequestScan, storefront
from tolsey.http.answers.base import Accepted
from tolsey.http.answers.intelligence import ScanAnswer
from tolsey.http.web.access import internal
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, new_id, now, service

routes = Blueprint("scan_callback", __name__, url_prefix="/api/internal")
tag_blueprint(routes, ["Intelligence"])


class QueuedScan(ApiModel):
    """Which domain's turn has come."""

    domain: Annotated[str, Field(max_length=300)]


@routes.post("/scans")
@internal
async def begin_queued_scan(data: QueuedScan) -> tuple[ScanAnswer, Accepted]:
    """Scan a domain that was queued. Without the queue's proof there is nothing at this address.

    A delivery that comes again joins the scan that goes on, or finds the snapshot taken.
    """
    domain = required_domain(data.domain)
    message = RequestScan(id=new_id("scan"), mode="full", is_kept=True, source="queue", at=now())
    scan = await ask(storefront(domain), message, id=f"queue:{g.queue_claims['jti']}")
    return ScanAnswer.of(scan, service().settings.provider_keys), 202
