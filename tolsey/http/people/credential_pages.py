"""Pages of what lets one in: sessions, the password, and the keys of one's programs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, get_args

from pydantic import ValidationError
from quart import Blueprint, Response, request

from tolsey.actors.refusals import NotFound, Refusal, Unauthorized
from tolsey.http.answers.people.members import ApiKeyAnswer, MadeKeyAnswer, OpenSessionAnswer
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import OWN_SENTENCE, Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.people import api_keys, passwords, signing
from tolsey.http.people.api_keys import NAME_CHARACTERS, KeyBody, Scope
from tolsey.http.people.passwords import PasswordChange
from tolsey.http.web import api_model
from tolsey.http.web.access import caller, page
from tolsey.http.web.callers import cookies
from tolsey.http.web.context import now, service
from tolsey.storage.people import accounts, tokens
from tolsey.storage.people.api_keys import MOST_LIVE

SESSIONS: Final = "/account/sessions"
KEYS: Final = "/account/keys"
MOST_ORGANIZATIONS: Final = 200
LIFETIMES: Final = (30, 90, 365)
BROWSERS: Final = {
    "Edg": "Edge",
    "OPR": "Opera",
    "SamsungBrowser": "Samsung Internet",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "CriOS": "Chrome",
    "Chrome": "Chrome",
    "HeadlessChrome": "Chrome",
    "Safari": "Safari",
}
"""What browsers say that they are; of several, the first here is what they are."""
SYSTEMS: Final = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "CrOS": "ChromeOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}

routes = Blueprint("credential_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class SessionsPage(Page):
    """Where the reader is signed in, and how the password is changed."""

    template = "people/sessions.html"
    sessions: Sequence[OpenSessionAnswer]
    most: ClassVar[int] = 50
    """How many are shown; who has more ends them all."""
    filled: Filled = field(default_factory=Filled)
    done: str = ""
    password_characters = api_model.PASSWORD_CHARACTERS
    longest_password = api_model.LONGEST_PASSWORD

    def device(self, session: OpenSessionAnswer) -> str:
        """Say by what a session was begun."""
        return spoken_device(session.device or "")


@dataclass(frozen=True, kw_only=True)
class KeysPage(Page):
    """The reader's keys; one just made with its value, which is shown this once."""

    template = "people/keys.html"
    keys: Sequence[ApiKeyAnswer]
    organizations: Mapping[str, str]
    filled: Filled = field(default_factory=Filled)
    ticked: Sequence[str] = ("intelligence:read",)
    made: MadeKeyAnswer | None = None
    name_characters = NAME_CHARACTERS

    @property
    def scopes(self) -> Mapping[str, str]:
        """What a key may do, in words."""
        said = (_("Read what is known of stores"), _("Have stores scanned"))
        return dict(zip(get_args(Scope), said, strict=True))

    @property
    def lifetimes(self) -> Mapping[str, str]:
        """How long a key may live, in words."""
        return {str(days): _("%(days)s days") % {"days": days} for days in LIFETIMES}


def spoken_device(agent: str) -> str:
    """Say what a `User-Agent` stands for; one of no browser says it itself (RFC 9110, section 10.1.5)."""
    browser = next((name for word, name in BROWSERS.items() if f"{word}/" in agent), None)
    system = next((name for word, name in SYSTEMS.items() if word in agent), None)
    if browser and system:
        return _("%(browser)s on %(system)s") % {"browser": browser, "system": system}
    return re.split(r"[\s/;(]", agent, maxsplit=1)[0] or _("Unknown device")


@routes.get(SESSIONS)
@page
async def show_sessions() -> Response:
    """Show where the reader is signed in."""
    return shown(await _sessions(done=request.args.get("done", "")))


@routes.post(f"{SESSIONS}/end-others")
@page
async def end_other_sessions() -> Response:
    """End all of the reader's sessions but this one."""
    await signing.end_other_sessions()
    return sent_on(f"{SESSIONS}?done=others")


@routes.post(f"{SESSIONS}/<session_id>/end")
@page
async def end_session(session_id: str) -> Response:
    """End one of the reader's sessions, and go back to the others."""
    await signing.end_session(session_id)
    return sent_on(f"{SESSIONS}?done=ended")


@routes.post("/account/password")
@page
async def change_password() -> Response:
    """Change the password, and end the reader's other sessions."""
    values = await forms.sent()
    try:
        await passwords.change(forms.read(PasswordChange, values))
    except Unauthorized as wrong:
        filled = filled_again(values, wrong, place="current")
        return shown(await _sessions(filled=filled), refusal=wrong)
    except (Misfilled, Refusal) as wrong:
        return shown(await _sessions(filled=filled_again(values, wrong)), refusal=wrong)
    return sent_on(f"{SESSIONS}?done=password")


@routes.get(KEYS)
@page
async def show_keys() -> Response:
    """Show the reader's keys, and the form that makes one."""
    return shown(await _keys())


@routes.post(KEYS)
@page
async def make_key() -> Response:
    """Make a key and show its value, on this very page."""
    form = await request.form
    values, scopes = dict(form.items()), form.getlist("scope")
    filled = Filled(values)
    days = values.get("lifetimeDays", "")
    try:
        wanted = KeyBody(
            organization_id=values.get("organizationId", ""),
            scopes=scopes,
            name=values.get("name", ""),
            lifetime_days=int(days) if days in map(str, LIFETIMES) else 0,
        )
        made = await api_keys.make(wanted)
    except ValidationError as error:
        fields = {str(one["loc"][0]) for one in error.errors(include_input=False)}
        for name in fields & {"name", "scopes"} or {forms.WHOLE}:
            filled = filled.wrong(name, OWN_SENTENCE if name else forms.unreadable())
        return shown(await _keys(filled=filled, ticked=scopes), 422)
    except NotFound:
        raise
    except Refusal as refusal:
        filled = filled.wrong(forms.WHOLE, sentence(refusal))
        return shown(await _keys(filled=filled, ticked=scopes), refusal=refusal)
    return shown(await _keys(made=made), 201)


@routes.post(f"{KEYS}/<key_id>/end")
@page
async def end_key(key_id: str) -> Response:
    """End a key at once, and go back to the others."""
    await api_keys.end_key(key_id)
    return sent_on(KEYS)


async def _sessions(*, filled: Filled | None = None, done: str = "") -> SessionsPage:
    found = await tokens.open_sessions(
        service().database, caller().user_id, cookies.session_token() or "", now()
    )
    return SessionsPage(
        sessions=[OpenSessionAnswer.of(one) for one in found], filled=filled or Filled(), done=done
    )


async def _keys(
    *,
    filled: Filled | None = None,
    ticked: Sequence[str] = ("intelligence:read",),
    made: MadeKeyAnswer | None = None,
) -> KeysPage:
    own = await accounts.organizations_of(
        service().database, caller().user_id, "", MOST_ORGANIZATIONS
    )
    return KeysPage(
        keys=[ApiKeyAnswer.of(one) for one in await api_keys.live_keys("", MOST_LIVE)],
        organizations={one.id: one.name for one in own},
        filled=filled or Filled(),
        ticked=ticked,
        made=made,
    )
