"""What the payment processor answers: its refusals in our words, its objects as facts."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import stripe
import structlog

from tolsey.actors.bodies import Unreadable, lenient
from tolsey.actors.organization.billing.payment_events.envelopes import EventEnvelope
from tolsey.actors.processor import (
    CardRefused,
    ProcessorBusy,
    ProcessorRefused,
    ProcessorUnreachable,
)
from tolsey.http.clients.payments.client import asked_wait

Facts = TypeVar("Facts")

log = structlog.get_logger()

MESSAGE_CHARACTERS: Final = 500
AWAY: Final = (
    "Stripe is unreachable. The operation may still complete; check its status before you retry."
)
BUSY: Final = "Stripe is limiting requests. Try again in a moment."
KEY_REFUSED: Final = "Stripe rejected this service's API key. Ask the operator to check it."


@contextmanager
def answering(secret: str) -> Iterator[None]:
    """Turn the processor's errors into those of the port; none of them carries the key."""
    try:
        yield
    except stripe.CardError as error:
        raise CardRefused(_said(error, secret), _code(error)) from None
    except (stripe.AuthenticationError, stripe.PermissionError) as error:
        log.error("payments.key_refused", status=error.http_status, code=_code(error))  # noqa: TRY400 - the traceback says no more
        raise ProcessorRefused(KEY_REFUSED, _code(error)) from None
    except (stripe.InvalidRequestError, stripe.IdempotencyError) as error:
        _tell("payments.refused", error)
        raise ProcessorRefused(_said(error, secret), _code(error)) from None
    except stripe.RateLimitError as error:
        _tell("payments.busy", error)
        raise ProcessorBusy(BUSY, math.ceil(asked_wait(error.headers or {}))) from None
    except stripe.StripeError as error:
        _tell("payments.unreachable", error)
        raise ProcessorUnreachable(AWAY) from None


def facts_of(read: Callable[[EventEnvelope], Facts], body: dict[str, Any]) -> Facts:
    """Read an object that was fetched as one that an event carries."""
    at = datetime.fromtimestamp(body.get("created") or 0, UTC)
    envelope = EventEnvelope(
        event_id="",
        type="",
        account=None,
        api_version=None,
        livemode=bool(body.get("livemode")),
        created_at=at,
        object_id=body.get("id"),
        object=body,
    )
    try:
        return read(envelope)
    except Unreadable as error:
        message = f"Stripe's response is invalid in the field {error.field}."
        raise ProcessorRefused(message, "unreadable") from error


def _tell(event: str, error: stripe.StripeError) -> None:
    log.warning(
        event,
        error=type(error).__name__,
        status=error.http_status,
        code=_code(error),
        request=error.request_id,
    )


def _said(error: stripe.StripeError, secret: str) -> str:
    """Repeat the processor's message, cut at a length and without our key."""
    said = error.user_message or "Stripe rejected the request. Check its values and try again."
    return said.replace(secret, "***")[:MESSAGE_CHARACTERS]


def _code(error: stripe.StripeError) -> str:
    """Name the processor's code, which some of the package's errors leave in the body."""
    said = lenient(lenient(error.json_body).get("error"))
    code = said.get("code") or said.get("type")
    return code if isinstance(code, str) else ""
