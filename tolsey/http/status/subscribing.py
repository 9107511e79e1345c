"""Who is told of what breaks: whoever asks, once they confirmed by a mail that the address is theirs."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.base import Accepted, ApiAnswer, Omittable
from tolsey.http.mail.book import StatusMail
from tolsey.http.web import policies
from tolsey.http.web.access import public
from tolsey.http.web.api_model import ApiModel, Email
from tolsey.http.web.context import now, service
from tolsey.http.web.limits import limited
from tolsey.storage.sealing.sealed import SealBroken, fingerprint
from tolsey.storage.status import incidents

ComponentName: TypeAlias = Literal[
    "api", "mcp", "webhooks", "revenue", "launches", "billing", "intelligence"
]
Webhook = Annotated[str, StringConstraints(max_length=500, pattern=r"^https://[^\s@/]+(/[^\s]*)?$")]
"""The address of a program; one with a name and a password in it is none."""
CONFIRM_LIFE: Final = timedelta(days=1)
SEPARATOR: Final = "\n"
PLACE: Final = {"table": "status_subscribers", "column": "email", "row": "", "tenant": ""}

routes = Blueprint("status_subscriptions", __name__)
tag_blueprint(routes, ["Health"])


class StatusForm(ApiModel):
    """Which address of a person is to be told."""

    email: Email


class StatusSubscription(ApiModel):
    """Which address is to be told: of a person by mail, or of a program; of all parts, or of those that are named."""

    email: Email | None = None
    webhook: Webhook | None = None
    components: Annotated[list[ComponentName], Field(max_length=7)] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_address(self) -> Self:
        if (self.email is None) is (self.webhook is None):
            raise ValueError("Send either email or webhook, not both.")
        return self


class StatusSubscriptionAnswer(ApiAnswer):
    """What happens next: the address is asked to confirm. A program's deliveries are signed with `secret`, told only here."""

    state: Literal["unconfirmed", "confirmed", "ended"]
    secret: Omittable[str] = None


class StatusToken(ApiModel):
    """What an address was sent."""

    token: Annotated[str, Field(min_length=1, max_length=8_000)]


class LinkOver(Refusal):
    """The link of a mail is none of ours, or older than a day."""

    code = "invalid_token"


@routes.post("/api/status/subscribe")
@public
@limited(policies.STATUS_SUBSCRIPTIONS)
async def subscribe(data: StatusSubscription) -> tuple[StatusSubscriptionAnswer, Accepted]:
    """Have an address told of what breaks and mends, once it confirmed that; the answer is the same for all.

    A person gets a mail with a link, a program a signed request (`subscription.confirm`) whose `token` it sends back to
    `/api/status/confirm`.
    """
    components = sorted(set(data.components))
    if data.webhook is not None:
        secret = await service().status_webhooks.invite(data.webhook, components)
        return StatusSubscriptionAnswer(state="unconfirmed", secret=secret), 202
    assert data.email is not None  # noqa: S101 - one of the two is there
    await invite(data.email, components)
    return StatusSubscriptionAnswer(state="unconfirmed"), 202


@routes.post("/api/status/confirm")
@public
@limited(policies.STATUS_SUBSCRIPTIONS)
async def confirm_webhook(data: StatusToken) -> StatusSubscriptionAnswer:
    """Tell a program from now on, by the token of the request that asked it."""
    if await service().status_webhooks.confirm(data.token) is None:
        raise LinkOver("This token is invalid or has expired. Subscribe again to get a new one.")
    return StatusSubscriptionAnswer(state="confirmed")


@routes.post("/api/status/unsubscribe")
@public
async def unsubscribe_webhook(data: StatusToken) -> StatusSubscriptionAnswer:
    """Tell a program no more, by the token of any of its deliveries."""
    if not await service().status_webhooks.end(data.token):
        raise LinkOver("This token is invalid. Copy it from a webhook delivery.")
    return StatusSubscriptionAnswer(state="ended")


async def invite(email: str, components: Sequence[str] = ()) -> None:
    """Write to an address to confirm, once an hour at most; nothing is kept of it before it does."""
    running, at = service(), now()
    running.mail.require()
    said = (str(at.timestamp()), email, ",".join(components))
    sealed = running.vault.seal(SEPARATOR.join(said), **PLACE)
    async with running.database.transaction() as tx:
        await running.mail.write(
            tx,
            StatusMail.STATUS_WANTED,
            email,
            about=f"{fingerprint(email).hex()}:{at:%Y-%m-%dT%H}",
            facts={},
            link=f"{running.settings.base_url}/status/confirm/{sealed}",
        )


def confirmed_address(token: str) -> tuple[str, str]:
    """Read which address a link confirms, and of which parts it is told. Raises LinkOver."""
    try:
        # A link of the release before names no parts.
        made, email, *parts = service().vault.open(token, **PLACE).split(SEPARATOR)
    except SealBroken as error:
        raise LinkOver("This link is invalid. Copy it from the email again.") from error
    if now().timestamp() - float(made) > CONFIRM_LIFE.total_seconds():
        raise LinkOver("This link has expired. Subscribe again to get a new one.")
    return email, "".join(parts)


async def confirm(email: str, components: str) -> None:
    """Tell an address from now on."""
    async with service().database.transaction() as tx:
        await incidents.subscribe(tx, email, now(), components)
