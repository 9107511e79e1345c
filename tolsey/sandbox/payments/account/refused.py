"""Refusals in the processor's own words: a status and an error body."""

from typing import Any


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an accident
    """A request that the processor refuses; `body()` is what the client reads."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",  # noqa: A002 - the field's name in the body
        code: str | None = None,
        param: str | None = None,
        **more: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.error: dict[str, Any] = {"message": message, "type": type, **more}
        if code is not None:
            self.error["code"] = code
            slug = code.replace("_", "-")
            self.error["doc_url"] = f"https://stripe.com/docs/error-codes/{slug}"
        if param is not None:
            self.error["param"] = param

    def body(self) -> dict[str, Any]:
        """Give the error as the processor wraps it."""
        return {"error": self.error}


def missing_object(kind: str, id: str, param: str | None = None) -> Refused:
    """Refuse an id that is not known; in a path it is 404, in a parameter 400."""
    name = kind.rsplit(".", 1)[-1].replace("_", " ")
    return Refused(
        f"No such {name}: '{id}'",
        status=404 if param is None else 400,
        code="resource_missing",
        param=param or "id",
    )


def missing_param(param: str) -> Refused:
    """Refuse a request that lacks a parameter."""
    return Refused(f"Missing required param: {param}.", code="parameter_missing", param=param)


def not_built(what: str, param: str | None = None) -> Refused:
    """Refuse what the real processor can do and this stand-in does not play."""
    return Refused(f"The sandbox does not play {what}.", code="sandbox_not_built", param=param)


def declined(code: str, message: str, **more: Any) -> Refused:
    """Refuse a card, as 402 with `card_error`."""
    if code == "card_declined":
        more = {"decline_code": "generic_decline", **more}
    return Refused(message, status=402, type="card_error", code=code, **more)
