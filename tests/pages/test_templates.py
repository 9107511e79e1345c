"""Templates escape, fail on what is not given, and hold no words that are not in the catalogue."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from gettext import GNUTranslations
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from jinja2 import DictLoader, Environment, TemplateSyntaxError, UndefinedError, nodes

from tolsey.actors.refusals import NotFound
from tolsey.http.layout import catalogue, words
from tolsey.http.layout.answers import RefusalPage, sentence
from tolsey.http.layout.templates import ENVIRONMENT, Page, TemplateCache, environment, rendered
from tolsey.sandbox.payments.face import html

SPOKEN = ("aria-label", "alt", "title", "placeholder")
"""Attributes that are read to people."""
NAME = "tolsey"
"""The one word that is the same in every language."""
SENTENCE = re.compile(r"[A-Z][a-z]+\b")
"""How a text that a template gives to a part begins; names of kinds and fields begin small."""
SHOWN = "\ufffc"
"""Stands for what is put into a template."""


class Literals(HTMLParser):
    """Collects what a template says by itself: its text, and the attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside.append(tag)
        self.found += [value for name, value in attrs if name in SPOKEN and value]

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self._inside):
            self.found.append(data)


def untranslated(source: str, environment: Environment = ENVIRONMENT) -> list[str]:
    """List the words of a template that do not go through the catalogue."""
    tree = environment.parse(source)
    literals = Literals()
    literals.feed("".join(_written(tree)))
    said = [re.sub(rf"{SHOWN}|\b{NAME}\b", "", text).strip() for text in literals.found]
    given = [one.value for one in _given(tree) if isinstance(one.value, str)]
    return [
        *(text for text in said if re.search(r"[^\W\d_]", text)),
        *(text for text in given if SENTENCE.match(text)),
    ]


def _written(tree: nodes.Node) -> Iterator[str]:
    for output in tree.find_all(nodes.Output):
        for one in output.nodes:
            yield one.data if isinstance(one, nodes.TemplateData) else SHOWN


def _given(node: nodes.Node) -> Iterator[nodes.Const]:
    """List the texts of an expression, but those that are looked up in the catalogue."""
    called = node.node if isinstance(node, nodes.Call) else None
    if isinstance(called, nodes.Name) and called.name in {"_", "gettext", "ngettext"}:
        return
    if isinstance(node, nodes.Const):
        yield node
    for child in node.iter_child_nodes():
        yield from _given(child)


def test_a_word_outside_of_the_catalogue_is_found() -> None:
    assert untranslated("<p>Sign in</p>") == ["Sign in"]
    assert untranslated("<p>{{ page.name }}, welcome</p>") == [", welcome"]
    assert untranslated('<a aria-label="Close"></a>') == ["Close"]
    assert untranslated('{{ ui.button("Sign in", "second") }}') == ["Sign in"]
    assert untranslated("{% set title = 'Sign in' %}") == ["Sign in"]
    assert untranslated('<p class="quiet">{{ _("Sign in") }} · {{ page.at }}</p>') == []
    assert untranslated("{% trans name=page.name %}Welcome {{ name }}{% endtrans %}") == []


@pytest.mark.parametrize(
    "name",
    # the gallery's samples are for whoever builds pages
    [name for name in html.ENVIRONMENT.list_templates() if not name.startswith("ui/")],
)
def test_every_word_of_a_template_goes_through_the_catalogue(name: str) -> None:
    loader = html.ENVIRONMENT.loader
    assert loader is not None
    source, _, _ = loader.get_source(html.ENVIRONMENT, name)
    assert untranslated(source) == []


def test_what_a_template_is_given_is_text_in_sentences_too() -> None:
    written = ENVIRONMENT.from_string(
        "{{ name }}{% trans name=name %}<b>Hello</b> {{ name }}{% endtrans %}{{ _('Bye %(name)s', name=name) }}"
    ).render(name="<script>")
    assert written == "&lt;script&gt;<b>Hello</b> &lt;script&gt;Bye &lt;script&gt;"


def test_a_field_that_a_page_does_not_have_fails() -> None:
    @dataclass(frozen=True)
    class Named(Page):
        name: str

    template = ENVIRONMENT.from_string("{{ page.nmae }}")
    with pytest.raises(UndefinedError, match="nmae"):
        template.render(page=Named("Ann"))


def test_a_broken_template_does_not_compile() -> None:
    with pytest.raises(TemplateSyntaxError):
        ENVIRONMENT.from_string("{% if page %}")


def test_another_catalogue_reaches_templates_counts_and_the_sentences_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Catalog(locale="de")
    said.add("That did not work", "Das ging nicht")
    said.add(("%(count)s store", "%(count)s stores"), ("%(count)s Laden", "%(count)s Läden"))
    said.add(
        "This organization doesn't exist, or you don't belong to it. Check the id.",
        "Diese Organisation gibt es nicht: %",
    )
    written = io.BytesIO()
    write_mo(written, said)
    written.seek(0)
    monkeypatch.setitem(catalogue.TRANSLATIONS, "en", GNUTranslations(written))

    page = rendered(
        RefusalPage(
            sentence(
                NotFound(
                    "This organization doesn't exist, or you don't belong to it. Check the id."
                )
            )
        )
    )
    assert "<h1>Das ging nicht</h1>" in page
    assert "Diese Organisation gibt es nicht: %" in page
    assert "Skip to the content" in page
    assert [stores(count) for count in (1, 3)] == ["1 Laden", "3 Läden"]
    assert sentence(NotFound("")) == ""


def stores(count: int) -> str:
    return ENVIRONMENT.from_string(
        "{% trans count=count %}{{ count }} store{% pluralize %}{{ count }} stores{% endtrans %}"
    ).render(count=count)


# The cache of compiled templates


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the templates that are compiled from their source."""
    names: list[str] = []
    compile_source = Environment._generate

    def record(
        made: Environment, source: nodes.Template, name: str, *rest: Any, **more: Any
    ) -> Any:
        names.append(name)
        return compile_source(made, source, name, *rest, **more)

    monkeypatch.setattr(Environment, "_generate", record)
    return names


def written_with(cache: TemplateCache, source: str = "<p>{{ page }}</p>") -> str:
    made = environment("tolsey.http", cache=cache)
    made.loader = DictLoader({"one.html": source})
    return made.get_template("one.html").render(page="&")


def test_a_template_is_compiled_once_for_all_starts(tmp_path: Path, compiled: list[str]) -> None:
    folder = tmp_path / "compiled"
    assert [written_with(TemplateCache(folder)) for _ in range(3)] == ["<p>&amp;</p>"] * 3
    assert compiled == ["one.html"]


def test_text_that_is_not_escaped_is_cached_apart(tmp_path: Path) -> None:
    cache = TemplateCache(tmp_path)
    written_with(cache)
    made = environment("tolsey.http", cache=cache).overlay(
        autoescape=False, loader=DictLoader({"one.html": "<p>{{ page }}</p>"})
    )
    assert made.get_template("one.html").render(page="&") == "<p>&</p>"


def test_a_changed_template_or_another_jinja_is_compiled_again(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written_with(TemplateCache(tmp_path))
    assert written_with(TemplateCache(tmp_path), "<b>{{ page }}</b>") == "<b>&amp;</b>"
    assert len(compiled) == 2
    monkeypatch.setattr("jinja2.__version__", "99.0")
    written_with(TemplateCache(tmp_path), "<b>{{ page }}</b>")
    assert len(compiled) == 3


@pytest.mark.parametrize("damage", [b"", b"j2", b"\x00" * 200])
def test_a_damaged_file_of_the_cache_only_costs_time(
    tmp_path: Path, compiled: list[str], damage: bytes
) -> None:
    written_with(TemplateCache(tmp_path))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for content in (damage, whole[:40], whole[:-5]):
        file.write_bytes(content)
        assert written_with(TemplateCache(tmp_path)) == "<p>&amp;</p>"
    assert len(compiled) == 4


def test_a_folder_that_cannot_be_written_only_costs_time(
    tmp_path: Path, compiled: list[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    for _ in range(2):
        assert written_with(TemplateCache(tmp_path / "file")) == "<p>&amp;</p>"
        assert written_with(TemplateCache(tmp_path / "missing" / "folder")) == "<p>&amp;</p>"
    assert len(compiled) == 4


def folded(source: str) -> list[str]:
    """List the filters of ours whose results would be cached with the template."""
    ours = {name for name, made in ENVIRONMENT.filters.items() if made.__module__ == words.__name__}
    filters = ENVIRONMENT.parse(source).find_all(nodes.Filter)
    return [one.name for one in filters if one.name in ours and not any(one.find_all(nodes.Name))]


def test_no_filter_of_ours_is_applied_while_compiling() -> None:
    assert folded("{{ 100 | dollars }}") == ["dollars"]
    assert folded("{{ page.cents | dollars }}") == []
    loader = ENVIRONMENT.loader
    assert loader is not None
    found = {
        name: folded(loader.get_source(ENVIRONMENT, name)[0])
        for name in ENVIRONMENT.list_templates()
    }
    assert {name: filters for name, filters in found.items() if filters} == {}
