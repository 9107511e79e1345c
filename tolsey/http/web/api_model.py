"""The shape of JSON bodies: camelCase outside, snake_case inside, nothing unexpected."""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

NUL = "\x00"
NAME_CHARACTERS = 200
EMAIL_CHARACTERS = 254
PASSWORD_CHARACTERS = 12
LONGEST_PASSWORD = 256
IDENTIFIER = r"^[a-z]+_[A-Za-z0-9_-]{1,64}$"


class ApiModel(BaseModel):
    """A body or query: unknown fields are refused, and so is a NUL, which no text column holds."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _no_nul(cls, given: Any) -> Any:
        waiting = [given]
        while waiting:
            value = waiting.pop()
            if isinstance(value, str) and NUL in value:
                raise ValueError("must not contain a NUL character")
            if isinstance(value, dict):
                waiting.extend((*value.keys(), *value.values()))
            elif isinstance(value, list | tuple):
                waiting.extend(value)
        return given


def _lowered(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=NAME_CHARACTERS),
]
Email = Annotated[
    str,
    BeforeValidator(_lowered),
    StringConstraints(
        max_length=EMAIL_CHARACTERS, pattern=r"^[^@\s<>\"]{1,64}@[^@\s<>\"]+\.[^@\s<>\".]+$"
    ),
]
Password = Annotated[str, Field(max_length=LONGEST_PASSWORD, repr=False)]
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER)]
Why = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
"""What an operator says about what they do: every act has who, what and why (rules/operators#acts)."""
Whole = Annotated[int, Field(strict=True)]
"""An integer of a body: JSON has a type for it, and neither a text nor `true` is one."""


class Reason(ApiModel):
    """Why an operator acts; kept in the audit log."""

    reason: Why


class Account(ApiModel):
    """An account to be made, by whichever way."""

    email: Email
    password: Annotated[Password, Field(min_length=PASSWORD_CHARACTERS)]


def read_account(email: str, password: str) -> Account:
    """Read an account by the rules of a sign-up, or raise a ValueError of one line that says why."""
    try:
        return Account(email=email, password=password)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{first['loc'][0]}: {first['msg']}") from None
