"""What is known of a shop's app while its keys are typed in: each is looked at, and both are tried at the shop."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.actors.refusals import Refusal, Unavailable
from tolsey.actors.store.deliveries.topics import TOPICS
from tolsey.actors.store.editing import edits
from tolsey.http.layout import forms
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.standings import Tone
from tolsey.http.selling.merchant_apps import CommerceUnreachable, said_to_seller
from tolsey.http.stores import integrations
from tolsey.http.stores.integrations import CustomApp, ShopApp
from tolsey.http.web import policies
from tolsey.http.web.limits import TooManyRequests, admit

SCOPES: Final = tuple(sorted({topic.scope for topic in TOPICS.values() if topic.scope}))
"""What the app must be granted for everything that we listen to."""
WRITE_SCOPES: Final = tuple(sorted({kind.platform_scope for kind in edits.KINDS.values()}))
"""What it must be granted besides, for agents and launches to change things."""
KEYS: Final = ("clientId", "accessToken", "clientSecret")


@dataclass(frozen=True, slots=True)
class CheckedLine:
    """One thing that was checked, and what came of it."""

    tone: Tone
    said: str


@dataclass(frozen=True, slots=True)
class AppCheck:
    """A form as it was typed so far, with what is wrong with it, and what was checked."""

    filled: Filled
    lines: Sequence[CheckedLine]


async def checked(store_id: str, values: Mapping[str, str]) -> AppCheck:
    """Look at the keys of an app that are typed so far; once all are there, try them. Nothing is kept."""
    typed = [name for name in KEYS if values.get(name, "").strip()]
    wanted = [name for name in KEYS if name in values]
    try:
        app = forms.read(CustomApp, {**values, "storeId": store_id})
    except Misfilled as wrong:
        # What nobody typed yet is not wrong yet.
        errors = {name: said for name, said in wrong.errors.items() if name in typed}
        return AppCheck(Filled(values, errors), told(values))
    if typed != wanted:
        return AppCheck(Filled(values), told(values))
    try:
        return AppCheck(Filled(values), [*told(values), *await _tried(app)])
    except Refusal as refused:
        filled = Filled(values, {forms.WHOLE: said_to_seller(refused)})
        return AppCheck(filled, told(values, refused))


def told(values: Mapping[str, str], refused: Refusal | None = None) -> Sequence[CheckedLine]:
    """Say of an app's keys what was checked, the shop's refusal at last; what comes later is named."""
    lines = list(_of_shapes(values))
    if isinstance(refused, CommerceUnreachable | TooManyRequests | Unavailable):
        lines.append(CheckedLine("warn", _("The shop could not be asked yet")))
    elif refused is not None:
        lines.append(CheckedLine("bad", _("The shop refuses these keys")))
    if refused is not None or not lines or lines[-1].tone == "idle":
        lines.append(CheckedLine("idle", _("The permissions, one by one")))
    return lines


def _of_changes(scopes: Sequence[str]) -> Iterator[CheckedLine]:
    granted = sum(one in scopes for one in WRITE_SCOPES)
    if not granted:
        yield CheckedLine("idle", _("Only for reading: agents and launches change nothing"))
        return
    count = {"granted": granted, "all": len(WRITE_SCOPES)}
    yield CheckedLine("good", _("%(granted)s of %(all)s permissions to change things") % count)


def of_granted(scopes: Sequence[str]) -> Iterator[CheckedLine]:
    """Say which permissions an app has of those that we can use."""
    missing = [one for one in SCOPES if one not in scopes]
    count = {"granted": len(SCOPES) - len(missing), "all": len(SCOPES)}
    if not missing:
        yield CheckedLine("good", _("All %(all)s permissions to read") % count)
        return
    yield CheckedLine("warn", _("%(granted)s of %(all)s permissions to read") % count)
    lacking = {"scopes": ", ".join(missing)}
    yield CheckedLine("warn", _("Not granted, so not read: %(scopes)s") % lacking)


async def _tried(app: ShopApp) -> list[CheckedLine]:
    """Open the shop as connecting would. Raises a Refusal where nobody is let in."""
    await admit(policies.STORE_CONNECT)
    _token, facts, _lifetime = await integrations.opened(app)
    return [
        CheckedLine("good", _("The shop lets us in: %(name)s") % {"name": facts.name}),
        *of_granted(facts.scopes),
        *_of_changes(facts.scopes),
        CheckedLine("idle", _("Webhooks and earlier orders, in step 4")),
    ]


def _of_shapes(values: Mapping[str, str]) -> Iterator[CheckedLine]:
    """Say what each key looks like that was typed; the shop alone knows whether it opens."""
    token, secret = (values.get(name, "").strip() for name in ("accessToken", "clientSecret"))
    if token:
        is_usual = token.startswith("shpat_")
        yield CheckedLine(
            "good" if is_usual else "warn",
            _("The token looks like one of the admin")
            if is_usual
            else _("Tokens of the admin begin with shpat_: look whether it is that one"),
        )
    elif "accessToken" in values:
        yield CheckedLine("idle", _("The access token"))
    if values.get("clientId", "").strip():
        yield CheckedLine("good", _("A client id is given"))
    elif "clientId" in values:
        yield CheckedLine("idle", _("The client id"))
    if not secret:
        yield CheckedLine("idle", _("The client secret"))
        return
    is_usual = not secret.startswith("shpat_") and " " not in secret
    yield CheckedLine(
        "good" if is_usual else "bad",
        _("A client secret is given")
        if is_usual
        else _("That is an access token, or holds blanks: the client secret is another line"),
    )
