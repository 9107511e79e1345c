"""The pages on which people sign up and in."""

from typing import Final

from markupsafe import Markup

from tolsey.http.api_model import (
    EMAIL_CHARACTERS,
    LONGEST_PASSWORD,
    NAME_CHARACTERS,
    PASSWORD_CHARACTERS,
)
from tolsey.http.pages import forms, layout
from tolsey.http.pages.forms import Field, Filled

EMAIL: Final = Field(
    "email", "E-mail address", "email", "username", limits={"maxlength": str(EMAIL_CHARACTERS)}
)
NEW_PASSWORD: Final = Field(
    "password",
    "Password",
    "password",
    "new-password",
    f"{PASSWORD_CHARACTERS} characters or more.",
    limits={"minlength": str(PASSWORD_CHARACTERS), "maxlength": str(LONGEST_PASSWORD)},
)
PASSWORD: Final = Field(
    "password",
    "Password",
    "password",
    "current-password",
    limits={"maxlength": str(LONGEST_PASSWORD)},
)
ORGANIZATION_NAME: Final = Field(
    "organizationName",
    "Organization",
    autocomplete="organization",
    hint="Your company or project. You can rename it later.",
    limits={"maxlength": str(NAME_CHARACTERS)},
)
SENTENCES: Final = {
    "email": "Enter an e-mail address, such as ann@example.com.",
    "password": f"Use {PASSWORD_CHARACTERS} to {LONGEST_PASSWORD} characters.",
    "organizationName": f"Enter your organization's name, of {NAME_CHARACTERS} characters at most.",
}
"""What is said beside a field that cannot be read."""

FORM: Final = Markup(
    '<section class="card"><div><h1>{title}</h1><p class="quiet">{lead}</p></div>{alert}'
    '<form method="post" action="{path}">{fields}<button>{title}</button></form></section>'
    '<p class="foot">{other} <a href="{elsewhere}">{link}</a></p>'
)


def signup(filled: Filled, address_of_login: str, next_path: str) -> Markup:
    """Write the page on which an account is made."""
    body = FORM.format(
        title="Create your account",
        lead="Free to start. No card needed.",
        alert=_alert(filled),
        path="/signup",
        fields=_fields(filled, next_path, EMAIL, NEW_PASSWORD, ORGANIZATION_NAME),
        other="You have an account?",
        elsewhere=address_of_login,
        link="Sign in",
    )
    return layout.document("Create your account", body, narrow=True)


def login(filled: Filled, address_of_signup: str, next_path: str) -> Markup:
    """Write the page on which people sign in."""
    body = FORM.format(
        title="Sign in",
        lead="Welcome back.",
        alert=_alert(filled),
        path="/login",
        fields=_fields(filled, next_path, EMAIL, PASSWORD),
        other="New here?",
        elsewhere=address_of_signup,
        link="Create an account",
    )
    return layout.document("Sign in", body, narrow=True)


def _alert(filled: Filled) -> Markup:
    said = filled.errors.get(forms.WHOLE)
    return layout.notice("bad", said) if said else Markup()


def _fields(filled: Filled, next_path: str, *wanted: Field) -> Markup:
    sent_along = forms.hidden("next", next_path)
    return Markup().join([*(forms.text(field, filled) for field in wanted), sent_along])
