"""What operators see of providers' events."""

from typing import Literal

import orjson
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import NotFound
from tolsey.http.answers.base import ListAnswer, list_of
from tolsey.http.answers.operators.runtime import ProviderEventAnswer, WholeProviderEventAnswer
from tolsey.http.web.access import administrator
from tolsey.http.web.context import service
from tolsey.http.web.paging import PageQuery
from tolsey.storage.records.provider_events import ProviderEventState
from tolsey.storage.reports.pool import OPERATORS
from tolsey.storage.sealing.sealed import SealBroken
from tolsey.storage.webhooks import provider_events

routes = Blueprint("provider_events", __name__, url_prefix="/api/admin/provider-events")
tag_blueprint(routes, ["Operators"])


class ProviderEventQuery(PageQuery):
    """Which events to list."""

    provider: Literal["mail", "code-host", "messaging", "esign", "escrow"] | None = None
    state: ProviderEventState | None = None


@routes.get("")
@administrator
async def list_provider_events(query_args: ProviderEventQuery) -> ListAnswer[ProviderEventAnswer]:
    """List events of providers, newest first; each is kept a week."""
    found = await provider_events.listed(
        service().reports.of(OPERATORS),
        query_args.limit + 1,
        query_args.after_moment,
        provider=query_args.provider,
        state=query_args.state,
    )
    return list_of(
        found,
        query_args.limit,
        key=lambda one: f"{one.received_at.isoformat()}|{one.event_id}",
        answer=ProviderEventAnswer.read,
    )


@routes.get("/<provider>/<event_id>")
@administrator
async def read_provider_event(provider: str, event_id: str) -> WholeProviderEventAnswer:
    """Show an event as it was sent."""
    event = await provider_events.find(service().database, provider, event_id)
    if event is None:
        raise NotFound("This event doesn't exist or is older than a week. Check its id.")
    try:
        payload = orjson.loads(provider_events.body_of(service().vault, event))
    except SealBroken:
        payload = None
    return WholeProviderEventAnswer.read(event, payload=payload)
