"""Sellers whose verified revenue may correct what is estimated of others, and how far off estimates are (rules/intelligence#calibration)."""

from datetime import datetime

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.domains import domain_named
from tolsey.actors.listing.verification.transitions import settle
from tolsey.actors.refusals import Conflict
from tolsey.actors.storefront.effects import CALIBRATION_LASTS
from tolsey.actors.storefront.messages import DiscoverStorefront, storefront
from tolsey.http.answers.market.intelligence import CalibrationAnswer, CalibrationConsentAnswer
from tolsey.http.web.access import caller, listing_of, public, session
from tolsey.http.web.api_model import ApiModel
from tolsey.http.web.context import ask, now, service
from tolsey.storage import audit
from tolsey.storage.intelligence import calibrating
from tolsey.storage.records.intelligence import CalibratingListing
from tolsey.storage.records.selling.listing import COMMERCE, VerificationState
from tolsey.storage.selling.listings import ListingView

routes = Blueprint("calibrating", __name__, url_prefix="/api")
tag_blueprint(routes, ["Intelligence"])


class CalibrationConsent(ApiModel):
    """Whether the listing's verified revenue may correct what is estimated of other shops."""

    agreed: bool


@routes.get("/sell/listings/<listing_id>/verify/calibration")
@session
async def get_calibration_consent(listing_id: str) -> CalibrationConsentAnswer:
    """Tell whether a listing takes part; none does until its seller says so."""
    await listing_of(listing_id)
    return CalibrationConsentAnswer.of(await calibrating.find(service().database, listing_id))


@routes.put("/sell/listings/<listing_id>/verify/calibration")
@session
async def agree_to_calibration(
    listing_id: str, data: CalibrationConsent
) -> CalibrationConsentAnswer:
    """Let a listing's verified revenue correct what is estimated of other shops, or no longer; nobody is shown it."""
    view = await listing_of(listing_id, "admin")
    database, at = service().database, now()
    domain = _storefront_of(view, at) if data.agreed else None
    async with database.transaction() as tx:
        if domain is None:
            await calibrating.disagree(tx, listing_id)
        else:
            agreed = CalibratingListing(
                listing_id=listing_id, domain=domain, agreed_by=caller().user_id, agreed_at=at
            )
            await calibrating.agree(tx, agreed)
        await audit.write(
            tx, "listing.calibration", listing_id, actor=caller().user_id, agreed=data.agreed
        )
    if domain is not None:
        await ask(storefront(domain), DiscoverStorefront(source="calibration", at=at))
    return CalibrationConsentAnswer.of(await calibrating.find(database, listing_id))


def _storefront_of(view: ListingView, at: datetime) -> str:
    """Say at which domain the shop that proves a listing's revenue is seen. Raises Conflict."""
    record = next(
        settle(one.verification, at) for one in view.proofs if one.verification.provider == COMMERCE
    )
    domain = domain_named(record.primary_domain or record.shop_domain or "")
    # Only books that were read can be compared with what is seen from outside.
    if record.state != VerificationState.VERIFIED or domain is None:
        raise Conflict(
            "The listing's revenue isn't verified by its shop yet. Verify it first.",
            code="not_verified",
        )
    return domain


@routes.get("/public/calibration")
@public
async def get_calibration() -> CalibrationAnswer:
    """Tell how far estimates of revenue lie from the books of verified shops; null while too few take part."""
    fitted = await calibrating.latest(service().database, now() - CALIBRATION_LASTS)
    return CalibrationAnswer.of(fitted)
