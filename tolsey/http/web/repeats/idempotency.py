"""`Idempotency-Key`: a repeat of a POST that creates or spends gets the first one's answer."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar, cast

from quart import Response, current_app, g, request

from tolsey.actors.processor import ProcessorError, refusal_of
from tolsey.actors.refusals import Conflict, Refusal, Unprocessable
from tolsey.http.web.access import caller
from tolsey.http.web.context import Seed, now, service
from tolsey.http.web.repeats.replay import (
    KEY_CHARACTERS,
    Fate,
    fate_of,
    fingerprint_of,
    is_key,
    kept_refusal,
    refusal_in,
)
from tolsey.storage import idempotency

View = TypeVar("View", bound=Callable[..., Awaitable[Any]])

HEADER = "Idempotency-Key"
ATTRIBUTE = "is_idempotent"
STREAM = "text/event-stream"
"""An answer of this type is not complete yet: who makes it keeps it when it is."""


class InvalidKey(Refusal):
    """The header is there and is no key."""

    code = "invalid_idempotency_key"


class KeyReused(Unprocessable):
    """The key belongs to another request."""

    code = "idempotency_key_reused"


class InProgress(Conflict):
    """The first request with this key is still at work."""

    code = "request_in_progress"


def idempotent(view: View) -> View:
    """Answer a repeat as the first was; put it right above the view, below the validation.

    Without the header the view runs as it is. With it, ids that `context.new_id` makes are the
    same in every attempt, so a repeat after a crash finds what the first had created.
    """

    @wraps(view)
    async def once(*args: Any, **kwargs: Any) -> Any:
        key = request.headers.get(HEADER)
        if key is None:
            return await view(*args, **kwargs)
        row = await _claim(key)
        if row.answer is not None:
            return await _repeated(row.answer)
        g.seed = Seed(row.seed, row.created_at)
        return await _first(view, key, args, kwargs)

    once.__dict__[ATTRIBUTE] = True
    return cast("View", once)


def keep_instead(body: str) -> None:
    """Give repeats another body than the first answer has: what is shown once is not kept."""
    g.kept_body = body


def is_idempotent(view: Callable[..., Any]) -> bool:
    """Tell whether a view takes the header."""
    return getattr(view, ATTRIBUTE, False)


async def _claim(key: str) -> idempotency.KeyRow:
    if not is_key(key):
        raise InvalidKey(
            f"The {HEADER} header is invalid. Send 1 to {KEY_CHARACTERS} printable ASCII characters."
        )
    body = cast("bytes", await request.get_data(as_text=False))
    fingerprint = fingerprint_of(request.method, request.full_path, body)
    row = await idempotency.claim(service().database, caller().user_id, key, fingerprint, now())
    match fate_of(row, fingerprint):
        case Fate.KEY_REUSED:
            raise KeyReused(
                f"This {HEADER} was used for a different request in the last 24 hours. Send a new key."
            )
        case Fate.IN_PROGRESS:
            raise InProgress(
                "The first request with this key is still in progress. Try again in a moment.",
                retryAfter=1,
            )
        case _:
            return row


async def _repeated(answer: dict[str, Any]) -> Response:
    if (refusal := refusal_in(answer)) is not None:
        raise refusal
    response = Response(answer["body"], status=answer["status"], content_type=answer["contentType"])
    # A row of the release before holds no Location.
    if (location := answer.get("location")) is not None:
        response.headers["Location"] = location
    response.headers["Idempotent-Replayed"] = "true"
    return response


async def _first(view: Callable[..., Awaitable[Any]], key: str, args: Any, kwargs: Any) -> Response:
    running, user_id = service(), caller().user_id
    try:
        response = cast("Response", await current_app.make_response(await view(*args, **kwargs)))
    except (Refusal, ProcessorError) as error:
        refusal = refusal_of(error) if isinstance(error, ProcessorError) else error
        answered = kept_refusal(refusal)
        if answered is None:
            await idempotency.release(running.database, user_id, key)
        else:
            await idempotency.answer(running.database, user_id, key, answered)
        raise
    except Exception:
        await idempotency.release(running.database, user_id, key)
        raise
    if response.mimetype == STREAM:
        return response
    body = g.pop("kept_body", None) or await response.get_data(as_text=True)
    kept = {
        "status": response.status_code,
        "body": body,
        "contentType": response.content_type,
        "location": response.headers.get("Location"),
    }
    await idempotency.answer(running.database, user_id, key, kept)
    return response
