"""Forms that need no script: their fields, and what is wrong with what was written into them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

from markupsafe import Markup
from pydantic import ValidationError

from tolsey.http.api_model import ApiModel

Model = TypeVar("Model", bound=ApiModel)

UNREADABLE: Final = "That could not be read. Fill the form in again."
WHOLE: Final = ""
"""Where the error of no single field is kept."""


@dataclass(frozen=True, slots=True)
class Field:
    """A text field: its name in the form, its label, and what helps to fill it in."""

    name: str
    label: str
    type: str = "text"
    autocomplete: str = "off"
    hint: str = ""
    required: bool = True
    limits: Mapping[str, str] = field(default_factory=dict)
    """What the browser checks before it sends the form, as attributes."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A form as it was sent, and what is wrong with it by the name of the field."""

    values: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def wrong(self, name: str, said: str) -> "Filled":
        """Say what is wrong with one field."""
        return Filled(self.values, {**self.errors, name: said})


class Misfilled(Exception):  # noqa: N818 - it says what the form is
    """A form cannot be read; `errors` says why beside each field."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("a form cannot be read")
        self.errors = errors


def read(model: type[Model], values: Mapping[str, str], sentences: Mapping[str, str]) -> Model:
    """Read a form as a model, or raise Misfilled with the sentence of every field that is wrong."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        names = [str(one["loc"][0]) if one["loc"] else WHOLE for one in found]
        known = {name: sentences[name] for name in names if name in sentences}
        raise Misfilled(known or {WHOLE: UNREADABLE}) from None


def text(wanted: Field, filled: Filled) -> Markup:
    """Write a field with its label, its hint and its error; a password is never written back."""
    error = filled.errors.get(wanted.name)
    value = "" if wanted.type == "password" else filled.values.get(wanted.name, "")
    hint = "" if error else wanted.hint
    told = [f"{wanted.name}-{kind}" for kind, said in (("hint", hint), ("error", error)) if said]
    return Markup(
        '<div class="field"><label for="{name}">{label}</label>'
        '<input id="{name}" name="{name}" type="{type}" value="{value}" autocomplete="{autocomplete}"'
        "{limits}{told}{invalid}>{hint}{error}</div>"
    ).format(
        name=wanted.name,
        label=wanted.label,
        type=wanted.type,
        value=value,
        autocomplete=wanted.autocomplete,
        limits=attributes({**({"required": ""} if wanted.required else {}), **wanted.limits}),
        told=attributes({"aria-describedby": " ".join(told)} if told else {}),
        invalid=attributes({"aria-invalid": "true"} if error else {}),
        hint=_note(f"{wanted.name}-hint", "quiet", hint),
        error=_note(f"{wanted.name}-error", "error", error or ""),
    )


def choice(name: str, label: str, options: Mapping[str, str]) -> Markup:
    """Write a list to choose one thing from."""
    written = Markup().join(
        Markup('<option value="{}">{}</option>').format(*option) for option in options.items()
    )
    return Markup(
        '<div class="field"><label for="{0}">{1}</label>'
        '<select id="{0}" name="{0}">{2}</select></div>'
    ).format(name, label, written)


def hidden(name: str, value: str) -> Markup:
    """Send something along with a form."""
    return Markup('<input type="hidden" name="{}" value="{}">').format(name, value)


def attributes(given: Mapping[str, str]) -> Markup:
    """Write an element's attributes, each after a space."""
    return Markup().join(Markup(' {}="{}"').format(name, value) for name, value in given.items())


def _note(id: str, kind: str, said: str) -> Markup:
    return Markup('<p id="{}" class="{}">{}</p>').format(id, kind, said) if said else Markup()
