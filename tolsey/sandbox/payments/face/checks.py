"""Request checks made from the installed package's own parameter types (rules/payments#stand-in)."""

from functools import cache
from typing import Any

import stripe
import stripe.params
from pydantic import ConfigDict, TypeAdapter
from pydantic_core import ErrorDetails, SchemaValidator, ValidationError
from typing_extensions import TypedDict

from tolsey.sandbox.payments.account.refused import Refused, missing_param

_OPTIONS = frozenset(stripe.RequestOptions.__annotations__)
"""Names the package declares beside the parameters and sends as headers."""


def check(type_name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Give the parameters with their types, or refuse the request as the processor words it."""
    try:
        checked: list[dict[str, Any]] = _validator(type_name).validate_python([given])
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_context=True), given) from None
    return checked[0]


@cache
def _validator(type_name: str) -> SchemaValidator:
    found: Any = stripe.params
    for part in type_name.split("."):
        found = getattr(found, part)
    fields = {n: t for n, t in found.__annotations__.items() if n not in _OPTIONS}
    params: Any = TypedDict(found.__name__, fields)  # type: ignore[misc] # made from what is installed
    params.__module__ = found.__module__  # the types below are looked up there
    # Inside a list the configuration reaches every parameter type below.
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    adapter: TypeAdapter[Any] = TypeAdapter(list[params], config=config)
    return SchemaValidator(_closed(adapter.core_schema))


def _closed(schema: Any) -> Any:
    """Close enumerations: the types allow any string beside the known ones, requests do not."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "union" and any(_enumerates(c) for c in schema["choices"]):
        choices = [c for c in schema["choices"] if not _is_text(c)]
        return {**schema, "choices": [_closed(choice) for choice in choices]}
    return {key: _closed(value) for key, value in schema.items()}


def _enumerates(choice: Any) -> bool:
    return isinstance(choice, dict) and choice["type"] == "literal" and choice["expected"] != [""]


def _is_text(choice: Any) -> bool:
    return isinstance(choice, dict) and choice["type"] == "str"


def _refusal(errors: list[ErrorDetails], given: dict[str, Any]) -> Refused:
    """Word the error that says most: unions report one for each of their branches."""
    order = {"extra_forbidden": 0, "missing": 1, "int_parsing": 2, "bool_parsing": 3}
    telling = sorted(errors, key=lambda e: (order.get(e["type"], 4), -len(e["loc"])))
    error = telling[0]
    name = _param(error["loc"][1:], given)
    if error["type"] == "extra_forbidden":
        return _unknown(name)
    if error["type"] == "missing":
        return missing_param(name)
    value = error["input"]
    if error["type"] == "int_parsing":
        return Refused(f"Invalid integer: {value}", code="parameter_invalid_integer", param=name)
    if error["type"] == "bool_parsing":
        return Refused(f"Invalid boolean: {value}", param=name)
    if error["type"] == "literal_error":
        expected = error["ctx"]["expected"].replace("'", "")
        return Refused(f"Invalid {name}: must be one of {expected}", param=name)
    return Refused(f"Invalid {name}: {error['msg'].lower()}", param=name)


def _unknown(name: str) -> Refused:
    return Refused(f"Received unknown parameter: {name}", code="parameter_unknown", param=name)


def _param(location: tuple[int | str, ...], given: Any) -> str:
    """Write where the error is in bracket notation; names of union branches are left out."""
    names: list[str] = []
    for number, part in enumerate(location):
        last = number == len(location) - 1
        if isinstance(given, dict) and (part in given or last):
            given = given.get(part)
            names.append(str(part))
        elif isinstance(given, list) and isinstance(part, int) and part < len(given):
            given = given[part]
            names.append(str(part))
    return names[0] + "".join(f"[{name}]" for name in names[1:]) if names else ""
