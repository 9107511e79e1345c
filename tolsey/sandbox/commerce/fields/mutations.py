"""What every mutation does alike: it wants a scope, says what is wrong with what was asked, honours a key."""

from collections.abc import Callable, Mapping
from typing import Any

from graphql import GraphQLObjectType, get_named_type

from tolsey.sandbox.commerce.query.projection import Call, Getter
from tolsey.sandbox.commerce.query.refused import FieldRefused, access_denied
from tolsey.sandbox.commerce.query.schema import own_schema
from tolsey.sandbox.commerce.shop.state import Shop

Change = Callable[[Shop, Call], Mapping[str, Any]]
Scope = str | Callable[[Call], str]
REUSED = "The same idempotency key cannot be used with different operation parameters."


class Wrong(Exception):  # noqa: N818 - a user error, which is an answer
    """A user error: where in what was asked, what is wrong, and the platform's code where there is one."""

    def __init__(self, where: list[str], message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.error = {"field": where, "message": message, "code": code}


def mutation(name: str, scope: Scope, *, is_keyed: bool = False) -> Callable[[Change], Getter]:
    """Serve a function as a mutation; where it `is_keyed` the same key is answered the same.

    What it raises as Wrong is answered as the schema says: nothing, and the error.
    """

    def served(change: Change) -> Getter:
        def answered(_root: Any, call: Call) -> Any:
            shop = call.request.shop
            needed = scope if isinstance(scope, str) else scope(call)
            # Reading alone is not enough.
            if needed not in shop.scopes:
                raise access_denied(name, needed)
            try:
                return _once(shop, call, change) if is_keyed else _made(shop, call, change)
            except Wrong as wrong:
                return {**dict.fromkeys(_payload(name)), "userErrors": [wrong.error]}

        return answered

    return served


def number(gid: str) -> int:
    """Read the number of a global id; -1 where it has none."""
    tail = gid.rsplit("/", 1)[-1]
    return int(tail) if tail.isdigit() else -1


def _made(shop: Shop, call: Call, change: Change) -> Mapping[str, Any]:
    return {**change(shop, call), "userErrors": []}


def _once(shop: Shop, call: Call, change: Change) -> Mapping[str, Any]:
    """Make it once for each key (`@idempotent`), whatever became of it."""
    key, asked = call.idempotency_key, dict(call.args)
    if key is None or not key.strip():
        raise FieldRefused(
            "The @idempotent directive is required for this mutation but was not provided.",
            "BAD_REQUEST",
        )
    if key in shop.idempotent:
        before, answer = shop.idempotent[key]
        if before != asked:
            raise Wrong(["idempotent"], REUSED, "IDEMPOTENCY_KEY_PARAMETER_MISMATCH")
        if isinstance(answer, Exception):
            raise answer
        return answer
    try:
        made = _made(shop, call, change)
    except Wrong as wrong:
        shop.idempotent[key] = (asked, wrong)
        raise
    shop.idempotent[key] = (asked, made)
    return made


def _payload(name: str) -> list[str]:
    """Name the fields of what a mutation answers."""
    root = own_schema().mutation_type
    assert root is not None  # noqa: S101 - the schema has mutations
    payload = get_named_type(root.fields[name].type)
    assert isinstance(payload, GraphQLObjectType)  # noqa: S101 - payloads are objects
    return list(payload.fields)
