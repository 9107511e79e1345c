"""Refusals: answers with a status, a stable code and a sentence the caller can act on.

A decision raises one; the turn then changes nothing and the asker gets the refusal.
"""

from typing import Any

from tolsey.runtime.decision import Refused


class Refusal(Refused):
    """Why a request is refused (RFC 9457: status, code, detail and the case's own fields)."""

    status = 400
    code = "bad_request"

    def __init__(
        self, detail: str, *, status: int | None = None, code: str | None = None, **fields: Any
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status or type(self).status
        self.code = code or type(self).code
        self.fields = fields


class NotFound(Refusal):
    """There is no such thing, or it belongs to someone else: the answer is the same."""

    status = 404
    code = "not_found"


class Unauthorized(Refusal):
    """The caller did not prove who they are; `challenge` says how to (RFC 9110, section 11.6.1)."""

    status = 401
    code = "unauthorized"
    challenge = "Session"
    """A cookie has no registered scheme."""


class Forbidden(Refusal):
    """The caller is known and may not do this."""

    status = 403
    code = "forbidden"


class Conflict(Refusal):
    """The thing is not in a state that allows this."""

    status = 409
    code = "conflict"


class InvalidTransition(Conflict):
    """A state machine has no such move; `allowed` lists the moves it has."""

    code = "invalid_transition"

    def __init__(self, detail: str, allowed: list[str]) -> None:
        super().__init__(detail, allowed=allowed)


class Unprocessable(Refusal):
    """The request is well formed and cannot be carried out."""

    status = 422
    code = "unprocessable"


class PaymentRequired(Refusal):
    """The plan or the balance does not cover this; `plan` proposes one that does."""

    status = 402
    code = "payment_required"


class MissingCredential(Refusal):
    """A credential this route needs is not set; the detail names the variable."""

    status = 503
    code = "missing_credential"

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"This feature isn't configured on this server: {variable} is not set. Ask the operator to set it.",
            variable=variable,
        )


class Unavailable(Refusal):
    """A part the service needs is out of reach for now; try again after `retryAfter` seconds."""

    status = 503
    code = "unavailable"
