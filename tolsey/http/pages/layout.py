"""What every page for people shares: its frame, its one stylesheet, and what it may load.

A page is written as `Markup`: whatever is put into it and is not itself markup is escaped.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Final, Literal

from markupsafe import Markup

Tone = Literal["good", "warn", "bad"]

STYLE: Final = Markup(resources.files(__package__).joinpath("style.css").read_text())  # noqa: S704 - our own file
STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

MARK: Final = "M4 3h16v5h-5.5v13h-5V8H4z"
"""The sign before the name: a T."""
ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'%3E"
    f"%3Cpath fill='%231a56a8' d='{MARK}'/%3E%3C/svg%3E"
)

FRAME: Final = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · tolsey</title>
<link rel="icon" href="{icon}">
{refresh}<style>{style}</style>
</head>
<body>
<header class="top"><div><a class="brand" href="/billing"><svg viewBox="0 0 24 24" aria-hidden="true"\
><path d="{mark}"/></svg>tolsey</a>{person}</div></header>
<main{narrow}>
{body}
</main>
</body>
</html>
""")
REFRESH: Final = Markup('<meta http-equiv="refresh" content="{};url={}">\n')
LOOK_AGAIN_SECONDS: Final = 3
PERSON: Final = Markup(
    '<span class="quiet">{email}</span><a class="plain" href="/account/agents">Agents</a>'
    '<form method="post" action="/logout"><button class="plain">Sign out</button></form>'
)


def policy(form_targets: Sequence[str] = ()) -> str:
    """Write a page's security policy; its forms go to us, and may be sent on to these origins."""
    targets = " ".join(("'self'", *form_targets))
    return (
        f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; img-src data:; base-uri 'none'; "
        f"form-action {targets}; frame-ancestors 'none'; "
        "report-uri /api/security/csp-report"
    )


def document(
    title: str,
    body: Markup,
    *,
    email: str | None = None,
    narrow: bool = False,
    look_again: str | None = None,
) -> Markup:
    """Write a whole page; `email` is whose it is, with the button that signs them out.

    A page that waits for something looks again after a moment, at the address given here.
    """
    return FRAME.format(
        title=title,
        icon=ICON,
        style=STYLE,
        mark=MARK,
        person=PERSON.format(email=email) if email else "",
        refresh=REFRESH.format(LOOK_AGAIN_SECONDS, look_again) if look_again else "",
        narrow=Markup(' class="narrow"') if narrow else "",
        body=body,
    )


def notice(tone: Tone, text: str | Markup) -> Markup:
    """Say something before all else; what went wrong is announced to those who cannot see it."""
    role = "alert" if tone == "bad" else "status"
    return Markup('<div class="notice {} " role="{}"><p>{}</p></div>').format(tone, role, text)


def refusal(detail: str) -> Markup:
    """Write what a page says that cannot be shown."""
    return Markup(
        '<section class="card"><h1>That did not work</h1><p>{}</p>'
        '<p><a href="/billing">Go to your billing page</a></p></section>'
    ).format(detail)


def together(parts: Sequence[Markup]) -> Markup:
    """Write one part after the other."""
    return Markup("\n").join(parts)
