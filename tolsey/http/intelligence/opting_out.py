"""Owners who want their shop to be left alone prove that it is theirs (rules/intelligence#opting-out)."""

import hmac
from typing import Annotated, Final

from pydantic import Field
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.domains import required_domain
from tolsey.actors.storefront.messages import SuppressStorefront, storefront
from tolsey.http.answers.base import Accepted
from tolsey.http.answers.market.intelligence import SuppressionAnswer
from tolsey.http.web import policies
from tolsey.http.web.access import public
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, now, service
from tolsey.http.web.limits import limited
from tolsey.storage.sealing.sealed import base64url

routes = Blueprint("opting_out", __name__, url_prefix="/api/public/suppressions")
tag_blueprint(routes, ["Intelligence"])

PATH: Final = "/.well-known/tolsey-opt-out.txt"
RECORD: Final = "_tolsey-opt-out"
"""Below the domain, as names for one purpose begin with an underscore (RFC 8552)."""
PURPOSE: Final = "storefront-opt-out"


class OptOut(ApiModel):
    """Which domain is to be left alone."""

    domain: Annotated[str, Field(max_length=300)]


@routes.post("")
@public
@limited(policies.SUPPRESSIONS)
async def suppress_storefront(
    data: OptOut,
) -> SuppressionAnswer | tuple[SuppressionAnswer, Accepted]:
    """Leave a domain alone for good, once its owner has proved that it is theirs by a file or a DNS record.

    The first call says what to put where, a later one looks for it: then all that is kept of the domain is
    deleted, and it is scanned no more. The file, or the record, may go after that.
    """
    domain = required_domain(data.domain)
    expected = [_content(key_id, domain) for key_id in service().vault.key_ids]
    told = SuppressionAnswer(
        domain=domain,
        state="unproven",
        file=f"https://{domain}{PATH}",
        record=f"{RECORD}.{domain}",
        content=expected[0],
    )
    found = await service().storefronts.proofs(domain, path=PATH, record=RECORD)
    given = [one.strip().encode() for one in found]
    # A key that was rotated meanwhile still proves what was told under it.
    if not any(hmac.compare_digest(one, told.encode()) for one in given for told in expected):
        return told, 202
    wish = SuppressStorefront(reason="The owner asked for it.", source="owner", at=now())
    await ask(storefront(domain), wish)
    return told.model_copy(update={"state": "suppressed"})


def _content(key_id: str, domain: str) -> str:
    """Make what only we can tell a domain's owner to put there."""
    secret = service().vault.secret_for(key_id, PURPOSE)
    return base64url(hmac.digest(secret, domain.encode(), "sha256"))
