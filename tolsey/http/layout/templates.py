"""Pages as templates: what is shown is a dataclass of ours, how it looks is its template's alone."""

from typing import ClassVar

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from tolsey.http.layout import assets, words
from tolsey.http.layout.catalogue import _, counted, language


class Page:
    """What one page shows: a dataclass, whose fields its template reads as `page.…`."""

    template: ClassVar[str]
    has_script: ClassVar[bool] = False
    """Whether it loads a script of ours, without which it can be read all the same."""
    has_shell: ClassVar[bool] = True
    """Whether the ways to all other pages stand around it, for whoever is signed in."""
    has_frame: ClassVar[bool] = False
    """Whether another page of ours stands in it."""


def environment(*packages: str) -> Environment:
    """Make the environment of packages' templates: it escapes all it is given, and what is not given fails."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
        extensions=["jinja2.ext.i18n"],
    )
    made.policies["ext.i18n.trimmed"] = True
    made.install_gettext_callables(_, counted, newstyle=True)  # type: ignore[attr-defined] # of the extension
    made.filters |= {
        "credit": words.credit,
        "day": words.day,
        "dollars": words.dollars,
        "iso": words.iso,
        "moment": words.moment,
        "moved": words.moved,
        "whole_credit": words.whole_credit,
    }
    made.globals["style_address"] = assets.STYLE_ADDRESS
    made.globals["language"] = language
    made.globals["asset"] = assets.address_of
    return made


ENVIRONMENT = environment("tolsey.http")


def compile_all() -> None:
    """Compile every template once, so that a broken one stops the start and no request waits for one."""
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)


def rendered(page: Page, viewer: str | None = None, shell: object = None) -> str:
    """Write a page; `viewer` is the address of who is signed in, `shell` the frame around it."""
    return ENVIRONMENT.get_template(page.template).render(page=page, viewer=viewer, shell=shell)
