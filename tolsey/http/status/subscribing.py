"""Who is told of what breaks: whoever asks, once they confirmed by a mail that the address is theirs."""

from datetime import timedelta
from typing import Final, Literal

from quart import Blueprint
from quart_schema import tag_blueprint

from tolsey.actors.refusals import Refusal
from tolsey.http.answers.base import Accepted, ApiAnswer
from tolsey.http.mail.book import StatusMail
from tolsey.http.web import policies
from tolsey.http.web.access import public
from tolsey.http.web.api_model import ApiModel, Email
from tolsey.http.web.context import now, service
from tolsey.http.web.limits import limited
from tolsey.storage.sealing.sealed import SealBroken, fingerprint
from tolsey.storage.status import incidents

CONFIRM_LIFE: Final = timedelta(days=1)
SEPARATOR: Final = "\n"
PLACE: Final = {"table": "status_subscribers", "column": "email", "row": "", "tenant": ""}

routes = Blueprint("status_subscriptions", __name__)
tag_blueprint(routes, ["Health"])


class StatusSubscription(ApiModel):
    """Which address is to be told."""

    email: Email


class StatusSubscriptionAnswer(ApiAnswer):
    """What happens next: a mail asks the address to confirm."""

    state: Literal["unconfirmed"]


class LinkOver(Refusal):
    """The link of a mail is none of ours, or older than a day."""

    code = "invalid_token"


@routes.post("/api/status/subscribe")
@public
@limited(policies.STATUS_SUBSCRIPTIONS)
async def subscribe(data: StatusSubscription) -> tuple[StatusSubscriptionAnswer, Accepted]:
    """Have an address told of what breaks and mends, once it confirmed that by a mail; the answer is the same for all."""
    await invite(data.email)
    return StatusSubscriptionAnswer(state="unconfirmed"), 202


async def invite(email: str) -> None:
    """Write to an address to confirm, once an hour at most; nothing is kept of it before it does."""
    running, at = service(), now()
    running.mail.require()
    sealed = running.vault.seal(f"{at.timestamp()}{SEPARATOR}{email}", **PLACE)
    async with running.database.transaction() as tx:
        await running.mail.write(
            tx,
            StatusMail.STATUS_WANTED,
            email,
            about=f"{fingerprint(email).hex()}:{at:%Y-%m-%dT%H}",
            facts={},
            link=f"{running.settings.base_url}/status/confirm/{sealed}",
        )


def confirmed_address(token: str) -> str:
    """Read which address a link confirms. Raises LinkOver."""
    try:
        made, _, email = service().vault.open(token, **PLACE).partition(SEPARATOR)
    except SealBroken as error:
        raise LinkOver("This link is not one of ours. Copy it from the mail again.") from error
    if now().timestamp() - float(made) > CONFIRM_LIFE.total_seconds():
        raise LinkOver("This link is older than a day. Subscribe again for a new one.")
    return email


async def confirm(email: str) -> None:
    """Tell an address from now on."""
    async with service().database.transaction() as tx:
        await incidents.subscribe(tx, email, now())
