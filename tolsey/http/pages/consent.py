"""The pages on which people let agents in, see which they let in, and end it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from tolsey.http.oauth import names, redirects
from tolsey.http.oauth.scopes import DEFAULT, SCOPES, WRITE, opened
from tolsey.http.pages import forms, layout
from tolsey.storage.oauth.grants import GrantRow
from tolsey.storage.oauth.requests import RequestRow

PATH: Final = "/account/agents"
CSRF: Final = "csrf"
CHOSEN: Final = "scope"
"""The boxes of the form."""

QUESTION: Final = Markup(
    '<section class="card"><div><h1>Let <bdi>{client}</bdi> work with <bdi>{store}</bdi>?</h1>'
    '<p class="quiet">{email}, you are about to let an app act for you.</p></div>'
    "<dl><div><dt>App</dt><dd>{client}</dd></div>{identity}"
    "<div><dt>Store</dt><dd>{store}</dd></div>"
    "<div><dt>Answers go to</dt><dd>{place}</dd></div></dl>{warning}"
    '<form method="post">{csrf}{scopes}{withheld}'
    '<p class="quiet">It can never see passwords, keys or payouts. It ends when you sign out, or at any '
    'time under <a href="{path}">Agents</a>.</p>'
    '<div class="actions">'
    '<button name="decision" value="allow">Allow</button>'
    '<button class="second" name="decision" value="deny">Do not allow</button></div></form></section>'
)
IDENTITY: Final = Markup("<div><dt>Known by</dt><dd>{}</dd></div>")
ON_THIS_MACHINE: Final = Markup(
    "The answer goes to a program on your own computer, and any program there can call itself "
    "<bdi>{client}</bdi>. Allow this only if you have just started it yourself."
)
UNKNOWN_NAME: Final = "The app chose its name itself; nobody checked it."
COULD_CHANGE: Final = "It could change things, and see what it changes"
COULD_LOOK: Final = "It could look at things"
GROUP: Final = Markup('<fieldset class="boxes"><legend>{title}</legend><ul>{boxes}</ul></fieldset>')
BOX: Final = Markup(
    '<li><label><input type="checkbox" name="{name}" value="{scope}"{ticked}>{said}</label></li>'
)
TICKED: Final = Markup(" checked")
ITEM: Final = Markup("<li>{}</li>")
WITHHELD: Final = Markup(
    '<p class="quiet">It also asked for more than your role in this store allows: {}.</p>'
)

NOT_THEIRS: Final = Markup(
    '<section class="card"><h1>You cannot let <bdi>{client}</bdi> in</h1><p>{why}</p>{hint}'
    '<form method="post">{csrf}<div class="actions">'
    '<button name="decision" value="deny">Go back to <bdi>{client}</bdi></button></div></form></section>'
)
ANOTHER_ACCOUNT: Final = Markup(
    '<p class="quiet">You are signed in as {}. If the store belongs to another account of yours, '
    "go back, sign out here, and begin again in the app.</p>"
)
NO_ANSWER: Final = (
    "It did not ask for it in a way that can be answered. Only its makers can mend that."
)
NO_STORE: Final = "The store that it asks for is not one of yours."

LIST: Final = Markup(
    '<div><h1>Agents</h1><p class="quiet">Apps that you let work with your stores. Signing out ends them '
    "all.</p></div>{rows}"
)
NONE: Final = Markup(
    '<section class="card"><p>You have let no app in.</p><p class="quiet">An app asks for it itself: '
    "give it the address of a store, and it leads you here.</p></section>"
)
ROW: Final = Markup(
    '<section class="card"><div class="head"><h2><bdi>{client}</bdi> · <bdi>{store}</bdi></h2>'
    '<form method="post" action="{path}/{id}/end">{csrf}'
    '<button class="danger" aria-label="End access of {client} to {store}">End access</button>'
    '</form></div><ul class="can">{scopes}</ul>'
    '<p class="quiet">Answers go to {place}. Allowed {created}{used}.</p></section>'
)


@dataclass(frozen=True, slots=True)
class Question:
    """What a user is asked: whether this client may do this with this store."""

    wanted: RequestRow
    store_name: str | None
    """None when the store is not one of the user's, or is none."""
    email: str
    scopes: Sequence[str]
    """What the user's role lets them allow, whether it was asked for or not."""
    csrf: str


def ask(question: Question) -> Markup:
    """Write the page on which a user decides, or hears that it is not theirs to decide."""
    wanted, client = question.wanted, _client(question.wanted)
    if question.store_name is None:
        return _not_theirs(question)
    withheld = [SCOPES[name] for name in wanted.scopes if name not in question.scopes]
    body = QUESTION.format(
        client=client,
        identity=IDENTITY.format(wanted.client_id) if "://" in wanted.client_id else "",
        store=question.store_name,
        email=question.email,
        place=redirects.place_of(wanted.redirect_uri),
        warning=_warning(wanted),
        scopes=_boxes(question.scopes, {*DEFAULT, *wanted.scopes}),
        withheld=WITHHELD.format("; ".join(withheld)) if withheld else "",
        path=PATH,
        csrf=forms.hidden(CSRF, question.csrf),
    )
    return layout.document(f"Let {client} in", body, email=question.email, narrow=True)


def _not_theirs(question: Question) -> Markup:
    client, hint = _client(question.wanted), ANOTHER_ACCOUNT.format(question.email)
    why = NO_STORE
    if question.wanted.refusal is not None:
        why, hint = NO_ANSWER, Markup()
    body = NOT_THEIRS.format(
        why=why, hint=hint, client=client, csrf=forms.hidden(CSRF, question.csrf)
    )
    return layout.document(f"{client} cannot be let in", body, email=question.email, narrow=True)


def listed(grants: Sequence[GrantRow], email: str, csrf: Mapping[str, str]) -> Markup:
    """Write the page on which a user sees and ends what they allowed."""
    rows = [
        ROW.format(
            client=_client(one),
            store=one.store_name,
            path=PATH,
            id=one.id,
            csrf=forms.hidden(CSRF, csrf[one.id]),
            scopes=_items(sorted(opened(one.scopes), key=_only_looks)),
            place=redirects.place_of(one.redirect_uri),
            created=f"{one.created_at:%d %B %Y}",
            used=f", last used {one.used_at:%d %B %Y}" if one.used_at else "",
        )
        for one in grants
    ]
    body = LIST.format(rows=layout.together(rows) if rows else NONE)
    return layout.document("Agents", body, email=email)


def _client(one: RequestRow | GrantRow) -> str:
    return names.called(one.client_name, one.redirect_uri)


def _warning(wanted: RequestRow) -> Markup:
    if redirects.is_local(wanted.redirect_uri):
        return layout.notice("warn", ON_THIS_MACHINE.format(client=_client(wanted)))
    return Markup() if "://" in wanted.client_id else layout.notice("warn", UNKNOWN_NAME)


def _boxes(scopes: Sequence[str], ticked: Collection[str]) -> Markup:
    """Write a box for each scope: what would change something apart from what only looks, and before it.

    What looks is ticked, what changes only where it was asked for (product/mcp.md, 5.2).
    """
    changes = [name for name in scopes if not _only_looks(name)]
    looks = [name for name in scopes if _only_looks(name)]
    return Markup().join(
        GROUP.format(title=title, boxes=Markup().join(_box(one, one in ticked) for one in names))
        for title, names in ((COULD_CHANGE, changes), (COULD_LOOK, looks))
        if names
    )


def _box(scope: str, is_ticked: bool) -> Markup:
    ticked = TICKED if is_ticked else ""
    return BOX.format(name=CHOSEN, scope=scope, ticked=ticked, said=SCOPES[scope])


def _only_looks(scope: str) -> bool:
    return not scope.endswith(WRITE)


def _items(scopes: Sequence[str]) -> Markup:
    return Markup().join(ITEM.format(SCOPES[name]) for name in scopes)
