"""Every document of a launch is one that the platform takes, with the permissions that its milestone declares."""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from graphql import (
    NoDeprecatedCustomRule,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    get_named_type,
    parse,
    specified_rules,
    validate,
    visit,
)

from tests.http.clients.commerce.test_documents import PUBLISHED, published
from tolsey.actors.store.editing import edits
from tolsey.actors.store.launch import executors
from tolsey.actors.store.launch.executors import (
    BUILT,
    audit,
    catalogue,
    growth,
    opening,
    shipping,
    storefront,
    theme,
)
from tolsey.actors.store.launch.grants import covers
from tolsey.actors.store.launch.playbook import PLAYBOOK
from tolsey.http.clients.commerce.edits.sending import WAYS
from tolsey.http.clients.commerce.edits.things.thing import ThingWay

pytestmark = pytest.mark.skipif(not PUBLISHED.is_file(), reason="the shared data are not here")
SCOPES = PUBLISHED.with_name("required_scopes_2026-07.json")
ASKED_OF: list[tuple[str, ModuleType]] = [
    ("catalog.publish", catalogue),
    ("growth.seo", growth),
    ("storefront.navigation", storefront),
    ("storefront.theme", theme),
    ("operations.shipping", shipping),
    ("foundation.audit", audit),
]
LEFT_OUT = {
    # Asked only where the app may: without it the check is unknown, and the milestone goes on.
    "growth.analytics": {"write_pixels", "read_pixels"},
    # The policies are read by the milestone before, which takes the permission.
    "storefront.navigation": {"read_legal_policies"},
}


def is_document(text: object) -> bool:
    """Tell whether it is a query or a mutation."""
    return isinstance(text, str) and text.strip().startswith(("query ", "mutation "))


def documents() -> Iterator[tuple[str, str]]:
    """Name each document with its milestone."""
    for milestone, module in ASKED_OF:
        for text in vars(module).values():
            if is_document(text):
                yield milestone, text
    for kind, way in WAYS.items():
        if isinstance(way, ThingWay):
            for text in filter(None, dict.fromkeys((way.looks, way.makes, way.sets))):
                yield edits.KINDS[kind].tools[0], text


def test_no_document_that_an_executor_keeps_is_left_out() -> None:
    known = {module for _, module in ASKED_OF} | {opening}
    for one in pkgutil.iter_modules(executors.__path__, f"{executors.__name__}."):
        module = importlib.import_module(one.name)
        kept = [name for name, text in vars(module).items() if is_document(text)]
        assert module in known or not kept, (one.name, kept)


@pytest.mark.parametrize(("milestone", "text"), list(documents()))
def test_a_document_is_valid_and_its_milestone_declares_what_it_takes(
    milestone: str, text: str
) -> None:
    rules = [*specified_rules, NoDeprecatedCustomRule]
    assert validate(published(), parse(text), rules) == []
    declared = PLAYBOOK.milestones[milestone].scopes
    left_out = LEFT_OUT.get(milestone, set())
    for what, needed in required(text):
        enough = any(covers(declared, one) or one in left_out for one in needed)
        assert enough, f"{what} takes one of {needed}; {milestone} declares {declared}"


def required(text: str) -> Iterator[tuple[str, list[str]]]:
    """Say of what a document asks for which permissions it takes, any one of which will do."""
    known: dict[str, Any] = json.loads(SCOPES.read_text())
    info, found = TypeInfo(published()), list[str]()

    class Named(Visitor):
        def enter_field(self, node: Any, *_: Any) -> None:
            parent, kind = info.get_parent_type(), info.get_type()
            assert parent is not None
            found.append(f"{parent.name}.{node.name.value}")
            if kind is not None:
                found.append(get_named_type(kind).name)

    visit(parse(text), TypeInfoVisitor(info, Named()))
    for what in dict.fromkeys(found):
        if what in known and known[what]["scopes"]:
            yield what, known[what]["scopes"]


@pytest.mark.parametrize(
    "text", [text for text in vars(opening).values() if str(text).strip().startswith("query ")]
)
def test_what_the_pre_launch_check_reads_is_valid(text: str) -> None:
    assert validate(published(), parse(text), [*specified_rules, NoDeprecatedCustomRule]) == []


def test_every_automatic_milestone_has_an_executor() -> None:
    auto = {one.id for one in PLAYBOOK.milestones.values() if not one.is_human}
    assert auto == BUILT
    assert len(auto) == 19
