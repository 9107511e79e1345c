"""Whether an organization can be paid for what it sells."""

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.http.answers.market.selling import SellerAccountAnswer
from tolsey.http.billing.payout_accounts import seller_account
from tolsey.http.web.access import member_of, session
from tolsey.http.web.api_model import ApiModel, Identifier

routes = Blueprint("selling_accounts", __name__)
tag_blueprint(routes, ["Selling"])


class SellerQuery(ApiModel):
    """Whose account is meant."""

    organization_id: Identifier


@routes.get("/api/sell/account")
@session
async def get_seller_account(query_args: SellerQuery) -> SellerAccountAnswer:
    """Read whether an organization can be paid, and what the processor still wants before its first listing."""
    await member_of(query_args.organization_id)
    return await seller_account(query_args.organization_id)
