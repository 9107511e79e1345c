"""What a GraphQL field says when it will not answer."""

from typing import Any


class FieldRefused(Exception):  # noqa: N818 - it is an answer, not a failure of ours
    """A field's refusal, with the code that goes to `extensions`."""

    def __init__(self, message: str, code: str, **extensions: Any) -> None:
        super().__init__(message)
        self.message = message
        self.extensions: dict[str, Any] = {"code": code, **extensions}


def access_denied(field: str, scope: str) -> FieldRefused:
    """Refuse a field for want of a scope, in the platform's words."""
    need = f"`{scope}` access scope."
    return FieldRefused(
        f"Access denied for {field} field. Required access: {need}",
        "ACCESS_DENIED",
        documentation="https://shopify.dev/api/usage/access-scopes",
        requiredAccess=need,
    )
