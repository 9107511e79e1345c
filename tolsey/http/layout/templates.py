"""Pages as templates: what is shown is a dataclass of ours, how it looks is its template's alone."""

import marshal
import pickle
import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import ClassVar, Final

import jinja2
from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    PackageLoader,
    StrictUndefined,
)
from jinja2.bccache import Bucket, bc_magic
from typing_extensions import override

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


COMPILED: Final = Path(__file__).parent / "__pycache__"
"""Where compiled templates are cached: beside the bytecode of our modules, trusted like it."""


class TemplateCache(FileSystemBytecodeCache):
    """Cache compiled templates across starts: to compile all of them takes over a second.

    An entry is used only for the same source, the same release of Jinja and the same Python. A
    folder that is missing, read-only or damaged costs time and nothing else.
    """

    def __init__(self, folder: Path = COMPILED) -> None:
        written_by = f"{sys.implementation.cache_tag}.jinja-{jinja2.__version__}"
        super().__init__(str(folder), f"template-%s.{written_by}")

    @override
    def get_bucket(
        self, environment: Environment, name: str, filename: str | None, source: str
    ) -> Bucket:
        # Whether a text is escaped is compiled in: the plain text of emails isn't (mail/letters.py).
        form = "html" if environment.autoescape else "text"
        return super().get_bucket(environment, f"{name}.{form}", filename, source)

    @override
    def load_bytecode(self, bucket: Bucket) -> None:
        # A damaged file can raise any of these: it is read by pickle, then by marshal.
        damage = (EOFError, pickle.UnpicklingError, ValueError, AttributeError, ImportError)
        with suppress(OSError, IndexError, TypeError, *damage):
            written = BytesIO(Path(self._get_cache_filename(bucket)).read_bytes())
            if written.read(len(bc_magic)) == bc_magic and pickle.load(written) == bucket.checksum:  # noqa: S301 - trusted like bytecode
                # The superclass gives marshal a file, which takes ten times as long as bytes.
                bucket.code = marshal.loads(written.read())  # noqa: S302 - as above

    @override
    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            Path(self.directory).mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


def environment(*packages: str, cache: TemplateCache | None = None) -> Environment:
    """Make the environment of packages' templates: it escapes all it is given, and what is not given fails."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
        bytecode_cache=cache if cache is not None else TemplateCache(),
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
    """Load every template once, so that a broken one stops the start and no request waits for one.

    Those that the cache lacks are compiled and cached: `make setup` and the image's build call this.
    """
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)


def rendered(page: Page, viewer: str | None = None, shell: object = None) -> str:
    """Write a page; `viewer` is the address of who is signed in, `shell` the frame around it."""
    return ENVIRONMENT.get_template(page.template).render(page=page, viewer=viewer, shell=shell)
