"""A GraphQL document made ready: one operation, its fragments and its variables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLIncludeDirective,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLSkipDirective,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
    is_abstract_type,
)
from graphql.execution.values import (
    VariableValues,
    get_argument_values,
    get_directive_values,
    get_variable_values,
)


@dataclass(frozen=True, slots=True)
class Document:
    """One operation with everything needed to read its selections."""

    schema: GraphQLSchema
    operation: OperationDefinitionNode
    fragments: Mapping[str, FragmentDefinitionNode]
    variables: VariableValues

    @property
    def is_mutation(self) -> bool:
        """Tell whether the operation changes anything."""
        return self.operation.operation is OperationType.MUTATION

    @property
    def root_type(self) -> GraphQLObjectType:
        """The type the operation's top fields belong to."""
        root = self.schema.mutation_type if self.is_mutation else self.schema.query_type
        if root is None:
            raise GraphQLError("Schema is not configured for mutations")
        return root

    def fields(
        self, selections: Sequence[SelectionSetNode], parent: GraphQLObjectType
    ) -> dict[str, list[FieldNode]]:
        """Gather the fields asked of a type by response key, with fragments spread out."""
        found: dict[str, list[FieldNode]] = {}
        for selection_set in selections:
            for node in selection_set.selections:
                self._gather(node, parent, found)
        return found

    def _gather(
        self, node: SelectionNode, parent: GraphQLObjectType, found: dict[str, list[FieldNode]]
    ) -> None:
        if not self._included(node):
            return
        if isinstance(node, FieldNode):
            key = node.alias.value if node.alias else node.name.value
            found.setdefault(key, []).append(node)
            return
        if isinstance(node, FragmentSpreadNode):
            fragment = self.fragments[node.name.value]
            condition: str | None = fragment.type_condition.name.value
            inner = fragment.selection_set
        else:
            assert isinstance(node, InlineFragmentNode)  # noqa: S101 - the grammar has no fourth
            condition = node.type_condition.name.value if node.type_condition else None
            inner = node.selection_set
        if condition is None or self._applies(condition, parent):
            for child in inner.selections:
                self._gather(child, parent, found)

    def _applies(self, condition: str, parent: GraphQLObjectType) -> bool:
        if condition == parent.name:
            return True
        named = self.schema.get_type(condition)
        return is_abstract_type(named) and self.schema.is_sub_type(named, parent)

    def _included(self, node: SelectionNode) -> bool:
        skip = get_directive_values(GraphQLSkipDirective, node, self.variables)
        if skip and skip["if"]:
            return False
        include = get_directive_values(GraphQLIncludeDirective, node, self.variables)
        return not include or bool(include["if"])

    def arguments(self, parent: GraphQLObjectType, node: FieldNode) -> dict[str, Any]:
        """Read a field's arguments with the variables filled in."""
        definition = parent.fields.get(node.name.value)
        if definition is None:
            return {}
        return get_argument_values(definition, node, self.variables)

    def idempotency_key(self, node: FieldNode) -> str | None:
        """Read the key of a field's `@idempotent`; None when it carries none."""
        directive = self.schema.get_directive("idempotent")
        given = get_directive_values(directive, node, self.variables) if directive else None
        return given["key"] if given else None


def prepare(
    schema: GraphQLSchema, parsed: DocumentNode, variables: dict[str, Any], name: str | None
) -> Document:
    """Choose the operation and coerce the variables, or raise the first `GraphQLError`."""
    operations = [d for d in parsed.definitions if isinstance(d, OperationDefinitionNode)]
    chosen = [o for o in operations if name is None or (o.name and o.name.value == name)]
    if not chosen:
        raise GraphQLError(f'No operation named "{name}"')
    if len(chosen) > 1:
        raise GraphQLError("An operation name is required")
    values = get_variable_values(schema, chosen[0].variable_definitions or (), variables)
    if isinstance(values, list):
        raise values[0]
    fragments = {
        d.name.value: d for d in parsed.definitions if isinstance(d, FragmentDefinitionNode)
    }
    return Document(schema, chosen[0], fragments, values)
