"""JSON in and out: what comes in is parsed once, strictly; what goes out is orjson's."""

import re
from typing import Any

import orjson
from pydantic_core import from_json, to_json, to_jsonable_python
from quart import Quart, Request, Response
from quart.json.provider import JSONProvider

from tolsey.actors.refusals import Refusal

MAXIMUM_DEPTH = 64
LOWEST, HIGHEST = -(2**63), 2**63
"""Between these lies every number, whole or not: PostgreSQL keeps 1e308 as 309 digits."""
NUL = "\x00"
UNUSUAL_NUMBERS = re.compile(rb"[0-9](?:[0-9]{18}|[eE]\+?[0-9])")
"""What every number past 64 bits looks like, and some others."""
JSON_TYPES = ("application/json", "application/problem+json")


class MalformedJson(Refusal):
    """The body is not JSON that this service reads."""

    status = 400
    code = "malformed_json"


class UnsupportedMediaType(Refusal):
    """The body does not say it is JSON."""

    status = 415
    code = "unsupported_media_type"


def parse(body: bytes | str) -> Any:
    """Read strict JSON (RFC 8259) into plain values, or raise MalformedJson.

    Refused beside bad syntax: more than 64 levels, NaN and infinities, numbers past 64 bits,
    NUL characters and lone surrogates, because nothing behind this edge can keep them.
    """
    value = parse_any(body)
    if isinstance(body, bytes) and _is_plain(body):
        return value
    odd = oddity(value)
    if odd is not None:
        raise MalformedJson(f"The request body contains {odd}. Remove it and try again.")
    return value


def parse_any(body: bytes | str) -> Any:
    """Read JSON of at most 64 levels, whatever its texts and numbers are; `oddity` looks at those."""
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedJson("The request body is not valid JSON. Correct its syntax.") from error
    if isinstance(body, bytes) and _is_flat(body):
        return value
    level = [value]
    for _ in range(MAXIMUM_DEPTH):
        level = [child for parent in level for child in _within(parent)]
    if any(isinstance(child, dict | list) for child in level):
        raise MalformedJson(
            f"The request body is nested deeper than {MAXIMUM_DEPTH} levels. Flatten it and try again."
        )
    return value


def oddity(value: Any) -> str | None:
    """Name what of a JSON value nothing behind this edge can keep; None when it can keep all."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        match found:
            case dict() | list():
                waiting += _within(found)
            case str() if NUL in found:
                return "a NUL character"
            case int() | float() if not LOWEST <= found < HIGHEST:
                return "a number that is out of range"
    return None


def _is_flat(body: bytes) -> bool:
    """Tell whether the bytes of valid JSON alone show that it is not too deep."""
    return body.count(b"[") + body.count(b"{") <= MAXIMUM_DEPTH


def _is_plain(body: bytes) -> bool:
    """Tell whether the bytes of valid JSON alone show that nothing in it is to be refused."""
    return b"\\u0000" not in body and UNUSUAL_NUMBERS.search(body) is None


def _within(value: Any) -> list[Any]:
    """List what a value holds: keys are texts too."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


class StrictJson(JSONProvider):
    """The app's JSON."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Write compact JSON; pydantic knows the types and the long numbers that orjson does not.

        What was kept before a bound was set is written all the same: it stands among other rows.
        """
        del kwargs
        try:
            return orjson.dumps(obj, default=to_jsonable_python).decode()
        except orjson.JSONEncodeError:
            return to_json(obj, inf_nan_mode="null").decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        """Read strict JSON."""
        del kwargs
        return parse(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        """Answer with one value as JSON."""
        body = self.dumps(self._prepare_response_obj(args, kwargs))
        return Response(body, mimetype="application/json")


class JsonRequest(Request):
    """A request whose JSON is read from its bytes, and only when it says it is JSON."""

    async def get_json(self, force: bool = False, silent: bool = False, cache: bool = True) -> Any:
        """Read the body; another content type is refused with 415 (RFC 9110 section 15.5.16)."""
        if not (force or self.mimetype in JSON_TYPES):
            # No body at all is no body of another type: what it lacks is told as 422.
            if silent or not (self.mimetype or await self.get_data(cache=cache, as_text=False)):
                return None
            raise UnsupportedMediaType(
                "The request body is not declared as JSON. Send it with `Content-Type:"
                " application/json`."
            )
        try:
            return parse(await self.get_data(cache=cache, as_text=False))
        except MalformedJson:
            if silent:
                return None
            raise


def install(app: Quart) -> None:
    """Make the app write JSON this way; its requests read it by their class."""
    app.json = StrictJson(app)
