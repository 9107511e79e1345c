"""Many looks at a shop in few requests: those that ask for the same of other things become one document with aliases."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from graphql import (
    DocumentNode,
    FieldNode,
    NameNode,
    OperationDefinitionNode,
    SelectionSetNode,
    VariableNode,
    Visitor,
    parse,
    print_ast,
    visit,
)

from tolsey.http.clients.commerce.edits.way import Body, EditDocument

MOST_TOGETHER: Final = 10
"""So many things are asked for in one document: what a document may cost is bounded by the platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookBatch:
    """A document that asks for several things at once, and for which of the looks each is."""

    document: EditDocument
    places: Sequence[Sequence[int]]
    """For each thing of the document the looks that ask for it."""

    def answers(self, data: Body) -> Iterator[tuple[int, Body]]:
        """Give each look its own answer."""
        for number, places in enumerate(self.places):
            own = data if len(self.places) == 1 else _own(data, number)
            for place in places:
                yield place, own


def batches(looks: Sequence[EditDocument]) -> Iterator[LookBatch]:
    """Put looks together: the same one once, and those of one text at other variables in one document."""
    by_text: dict[str, dict[str, list[int]]] = {}
    for place, one in enumerate(looks):
        asked = json.dumps(dict(one.variables), sort_keys=True)
        by_text.setdefault(one.text, {}).setdefault(asked, []).append(place)
    for text, things in by_text.items():
        distinct = list(things.values())
        for start in range(0, len(distinct), MOST_TOGETHER):
            places = distinct[start : start + MOST_TOGETHER]
            variables = [looks[some[0]].variables for some in places]
            yield LookBatch(document=_document(text, variables), places=places)


def _document(text: str, variables: Sequence[Body]) -> EditDocument:
    if len(variables) == 1:
        return EditDocument(text=text, variables=variables[0])
    named = {
        f"{name}_{number}": value
        for number, one in enumerate(variables)
        for name, value in one.items()
    }
    return EditDocument(text=merged(text, len(variables)), variables=named)


def _own(data: Body, number: int) -> dict[str, Any]:
    """Take what was answered of one thing, under the names that its look has."""
    before = f"e{number}_"
    return {name.removeprefix(before): one for name, one in data.items() if name.startswith(before)}


@lru_cache(maxsize=256)
def merged(text: str, count: int) -> str:
    """Write a document that asks so many times for what a document asks for, each under names of its own."""
    document = parse(text)
    (operation,) = (one for one in document.definitions if isinstance(one, OperationDefinitionNode))
    copies = [_numbered(operation, number) for number in range(count)]
    whole = OperationDefinitionNode(
        operation=operation.operation,
        name=operation.name,
        variable_definitions=tuple(
            one for copy in copies for one in copy.variable_definitions or ()
        ),
        directives=operation.directives,
        selection_set=SelectionSetNode(
            selections=tuple(one for copy in copies for one in copy.selection_set.selections)
        ),
    )
    others = [one for one in document.definitions if one is not operation]
    return print_ast(DocumentNode(definitions=(whole, *others)))


def _numbered(operation: OperationDefinitionNode, number: int) -> OperationDefinitionNode:
    """Give variables and what is asked for names with a number."""

    class Numbering(Visitor):
        def enter_variable(self, node: VariableNode, *_: Any) -> VariableNode:
            return VariableNode(name=NameNode(value=f"{node.name.value}_{number}"))

    copy: OperationDefinitionNode = visit(operation, Numbering())
    fields = tuple(_aliased(one, number) for one in copy.selection_set.selections)
    numbered: OperationDefinitionNode = _with(
        copy, selection_set=SelectionSetNode(selections=fields)
    )
    return numbered


def _aliased(field: Any, number: int) -> FieldNode:
    key = (field.alias or field.name).value
    aliased: FieldNode = _with(field, alias=NameNode(value=f"e{number}_{key}"))
    return aliased


def _with(node: Any, **changes: Any) -> Any:
    """Copy a node of a document with some of it changed."""
    kept: Mapping[str, Any] = {key: getattr(node, key, None) for key in node.keys}
    return type(node)(**{**kept, **changes})
