"""Forms that need no script: what was sent with one, and what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from quart import request
from quart.formparser import FormDataParser
from quart.wrappers.request import Body
from typing_extensions import override

from tolsey.actors.refusals import Refusal
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.web.api_model import ApiModel

Model = TypeVar("Model", bound=ApiModel)

MOST_FIELDS: Final = 1_000
MULTIPART: Final = "multipart/form-data"
WHOLE: Final = ""
"""Where the error of no single field is kept."""
OWN_SENTENCE: Final = ""
"""The error of a field of which its template says what is wanted."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A form as it was sent, and what is wrong with it by the name of the field."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def wrong(self, name: str, said: str) -> "Filled":
        """Say what is wrong with one field."""
        return Filled(self.values, {**self.errors, name: said})


class Misfilled(Exception):  # noqa: N818 - it says what the form is
    """A form cannot be read; `errors` says which fields are wrong."""

    status = 422
    fields: Mapping[str, Any] = {}

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("a form cannot be read")
        self.errors = errors


class TooManyFields(Refusal):
    """A form has more fields than the service reads (rules/requests#sizes)."""

    code = "too_many_fields"

    def __init__(self) -> None:
        super().__init__(marked("A form can have at most 1,000 fields. Send fewer fields."))


def count_fields(body: bytes, mimetype: str, boundary: str) -> int:
    """Count the fields of a form in its bytes, without parsing it; separators alone count, too."""
    if mimetype == MULTIPART:
        return max(body.count(b"--" + boundary.encode()) - 1, 0)
    return body.count(b"&") + 1 if body else 0


class BoundedFormParser(FormDataParser):
    """A parser that refuses a form of too many fields before it parses it.

    Quart reads any number of urlencoded fields, and the event loop waits meanwhile.
    """

    @override
    async def parse(
        self,
        body: Body,
        mimetype: str,
        content_length: int | None,
        options: dict[str, str] | None = None,
    ) -> Any:
        if mimetype in self.parse_functions:
            boundary = (options or {}).get("boundary", "")
            if count_fields(await body, mimetype, boundary) > MOST_FIELDS:
                raise TooManyFields
        return await super().parse(body, mimetype, content_length, options)


async def sent() -> dict[str, str]:
    """Give what was sent with a form, each field once."""
    return dict((await request.form).items())


def unreadable() -> str:
    """Say that a form is none that this page sends."""
    return _("That could not be read. Fill the form in again.")


def read(model: type[Model], values: Mapping[str, str]) -> Model:
    """Read a form as a model, or raise Misfilled with the fields that are wrong."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        known = {
            str(one["loc"][0]): OWN_SENTENCE
            for one in found
            if one["loc"] and one["type"] != "extra_forbidden"
        }
        raise Misfilled(known or {WHOLE: unreadable()}) from None
