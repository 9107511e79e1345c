"""Documents for the platform's GraphQL API: read, and refused for whatever is not allow-listed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    Visitor,
    parse,
    print_ast,
    visit,
)

from tolsey.actors.refusals import Unprocessable
from tolsey.http.mcp.tools.platform.fields import (
    ARGUMENTS,
    CHARACTERS,
    DEEPEST,
    LEAF,
    MOST_FIELDS,
    NEEDS,
    ROOT,
    ROOT_NEEDS,
    Need,
    fields_of,
)

TOKENS: Final = 2_000
BRACKETS: Final = 120
"""Of all kinds together, so that reading and writing a document never nests deeper."""
TYPENAME: Final = "__typename"
DIRECTIVES: Final = frozenset({"include", "skip"})


class QueryNotAllowed(Unprocessable):
    """A document is not one that may be sent."""

    code = "query_not_allowed"


@dataclass(frozen=True, slots=True)
class SentDocument:
    """A document that may be sent, as we write it, and what it needs."""

    text: str
    needs: frozenset[Need]


def read(document: str) -> SentDocument:
    """Read a query of allow-listed fields; it is sent as we understood it, never as it came."""
    parsed = _parsed(document)
    operation = _operation(parsed)
    visit(parsed, _Directives())
    fragments = {
        one.name.value: one for one in parsed.definitions if isinstance(one, FragmentDefinitionNode)
    }
    walk = _Walk(fragments)
    walk.of(ROOT, operation.selection_set, 1)
    return SentDocument(print_ast(parsed), frozenset(walk.needs))


def _parsed(document: str) -> DocumentNode:
    if len(document) > CHARACTERS:
        raise QueryNotAllowed(
            f"The query is longer than {CHARACTERS} characters. Send a shorter query."
        )
    if sum(document.count(one) for one in "{[(") > BRACKETS:
        raise QueryNotAllowed("The query has too many tokens. Send a smaller query.")
    try:
        return parse(document, no_location=True, max_tokens=TOKENS)
    except GraphQLError as error:
        raise QueryNotAllowed(f"The query is not valid GraphQL: {error.message}") from error


def _operation(parsed: DocumentNode) -> OperationDefinitionNode:
    operations = [one for one in parsed.definitions if isinstance(one, OperationDefinitionNode)]
    known = (OperationDefinitionNode, FragmentDefinitionNode)
    if len(operations) != 1 or not all(isinstance(one, known) for one in parsed.definitions):
        raise QueryNotAllowed(
            "The document must contain exactly one query and its fragments. Remove the other"
            " operations."
        )
    if operations[0].operation is not OperationType.QUERY:
        raise QueryNotAllowed("Only queries are allowed here. Use the write tools to change data.")
    return operations[0]


class _Directives(Visitor):
    """Refuses directives that change what a query is."""

    def enter_directive(self, node: DirectiveNode, *_: object) -> None:
        if node.name.value not in DIRECTIVES:
            raise QueryNotAllowed(f"The directive @{node.name.value} is not allowed. Remove it.")


class _Walk:
    """Goes through all that a document selects, and gathers what that needs."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode]) -> None:
        self.needs: set[Need] = set()
        self._fragments = fragments
        self._fields = 0

    def of(self, kind: str, selections: SelectionSetNode, depth: int) -> None:
        """Go through what is selected of a type."""
        if depth > DEEPEST:
            raise QueryNotAllowed(
                f"The query is nested deeper than {DEEPEST} levels. Split it into several queries."
            )
        known = fields_of(kind)
        for node in self._selected(kind, selections, ()):
            self._fields += 1
            if self._fields > MOST_FIELDS:
                raise QueryNotAllowed(
                    f"The query selects more than {MOST_FIELDS} fields. Select fewer fields."
                )
            name = node.name.value
            if name == TYPENAME:
                continue
            if name not in known:
                raise QueryNotAllowed(
                    f"The field {kind}.{name} is not available to agents. Remove it from the query.",
                    field=f"{kind}.{name}",
                )
            self._check_arguments(kind, node)
            self._note(kind, name, known[name])
            inner = node.selection_set
            if (inner is None) != (known[name] == LEAF):
                raise QueryNotAllowed(
                    f"The selection of {kind}.{name} is invalid. Select subfields for an object, and none for a scalar."
                )
            if inner is not None:
                self.of(known[name], inner, depth + 1)

    def _selected(
        self, kind: str, selections: SelectionSetNode, within: tuple[str, ...]
    ) -> Iterator[FieldNode]:
        """Give the fields of a selection, with those of its fragments, which are of its type."""
        for node in selections.selections:
            if isinstance(node, FieldNode):
                yield node
                continue
            self._fields += 1  # so that fragments of fragments come to an end too
            if isinstance(node, FragmentSpreadNode):
                name = node.name.value
                fragment = self._fragments.get(name)
                if fragment is None or name in within or self._fields > MOST_FIELDS:
                    raise QueryNotAllowed(
                        f"The fragment {name} is not defined, or is used too often. Define it once and use it less."
                    )
                self._check_type(kind, fragment.type_condition.name.value)
                yield from self._selected(kind, fragment.selection_set, (*within, name))
            elif isinstance(node, InlineFragmentNode):
                if node.type_condition is not None:
                    self._check_type(kind, node.type_condition.name.value)
                yield from self._selected(kind, node.selection_set, within)

    @staticmethod
    def _check_type(kind: str, named: str) -> None:
        if named != kind:
            raise QueryNotAllowed(
                f"A fragment on {named} can't be used within {kind}. Check the fragment's type."
            )

    @staticmethod
    def _check_arguments(kind: str, node: FieldNode) -> None:
        name = node.name.value
        allowed = ARGUMENTS.get((kind, name), frozenset())
        for argument in node.arguments or ():
            if argument.name.value not in allowed:
                what = f"{kind}.{name}({argument.name.value}:)"
                raise QueryNotAllowed(f"The query can't use {what}. Remove it.", field=what)

    def _note(self, kind: str, name: str, inner: str) -> None:
        need = ROOT_NEEDS.get(name) if kind == ROOT else None
        base = inner.removesuffix("Connection")
        need = need or NEEDS.get(base)
        if need is not None:
            self.needs.add(need)
