"""Where the queue calls back when the turn of a scan has come."""

from hashlib import sha256
from typing import Annotated

from pydantic import Field
from quart import Blueprint, g
from quart_schema import tag_blueprint

from tolsey.actors.domains import required_domain
from tolsey.actors.storefront.messages import RequestScan, storefront
from tolsey.http.answers.base import Accepted
from tolsey.http.answers.market.intelligence import ScanAnswer
from tolsey.http.web.access import internal
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, now, service
from tolsey.storage.intelligence import registry

routes = Blueprint("scan_callback", __name__, url_prefix="/api/internal")
tag_blueprint(routes, ["Intelligence"])


class QueuedScan(ApiModel):
    """Which domain's turn has come."""

    domain: Annotated[str, Field(max_length=300)]


@routes.post("/scans")
@internal
async def begin_queued_scan(data: QueuedScan) -> tuple[ScanAnswer, Accepted]:
    """Scan a domain that was queued. Without the queue's proof there is nothing at this address.

    A delivery that comes again is answered with the scan that the first began.
    """
    domain, database = required_domain(data.domain), service().database
    # The queue delivers at least once: its own number of the delivery names the scan.
    scan_id = f"scan_{sha256(str(g.queue_claims['jti']).encode()).hexdigest()[:32]}"
    scan = await registry.find_scan(database, scan_id)
    if scan is None:
        message = RequestScan(id=scan_id, mode="full", is_kept=True, source="queue", at=now())
        scan = await ask(storefront(domain), message)
    return ScanAnswer.of(scan, service().settings.provider_keys), 202
