from pathlib import Path
from typing import Any

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    is_introspection_type,
    is_leaf_type,
    is_specified_scalar_type,
    parse,
    validate,
)

from tolsey.sandbox.commerce.fields.table import FIELDS
from tolsey.sandbox.commerce.query.schema import own_schema, published_schema

OWN = [
    kind
    for kind in own_schema().type_map.values()
    if not is_introspection_type(kind) and not is_specified_scalar_type(kind)
]


@pytest.fixture
def theirs(published: Path) -> Any:
    schema = published_schema(published / "graphql")
    assert schema is not None
    return schema


def test_every_name_and_type_we_serve_is_published(theirs: Any) -> None:
    wrong = []
    kind: Any
    for kind in OWN:
        other: Any = theirs.type_map.get(kind.name)
        if other is None or other.__class__ is not kind.__class__:
            wrong.append(kind.name)
        elif isinstance(kind, GraphQLEnumType):
            wrong += [f"{kind.name}.{v}" for v in kind.values if v not in other.values]
        elif isinstance(kind, GraphQLInputObjectType):
            wrong += [
                f"{kind.name}.{name}"
                for name, given in kind.fields.items()
                if name not in other.fields or str(other.fields[name].type) != str(given.type)
            ]
        elif isinstance(kind, (GraphQLObjectType, GraphQLInterfaceType)):
            wrong += [f"{kind.name}.{name}" for name in _different(kind, other)]
    assert wrong == []


def _different(kind: Any, other: Any) -> list[str]:
    wrong = [i.name for i in kind.interfaces if i.name not in {o.name for o in other.interfaces}]
    for name, ours in kind.fields.items():
        theirs = other.fields.get(name)
        if theirs is None or str(theirs.type) != str(ours.type):
            wrong.append(name)
            continue
        required = {a for a, given in theirs.args.items() if str(given.type).endswith("!")}
        missing = required - set(ours.args)
        for argument, given in ours.args.items():
            known = theirs.args.get(argument)
            same = known is not None and (str(known.type), known.default_value) == (
                str(given.type),
                given.default_value,
            )
            if not same:
                missing.add(argument)
        wrong += [f"{name}({argument})" for argument in sorted(missing)]
    return wrong


def test_every_field_of_a_class_has_a_reading() -> None:
    missing = [
        f"{kind.name}.{name}"
        for kind in OWN
        if isinstance(kind, GraphQLObjectType) and kind.name in FIELDS
        for name, field in kind.fields.items()
        if name not in FIELDS[kind.name] and kind.name != "InventoryLevel"
    ]
    assert missing == []
    assert all(name in own_schema().type_map for name in FIELDS)
    assert is_leaf_type(own_schema().type_map["Decimal"])


def test_the_collected_operations_about_revenue_and_webhooks_are_served(published: Path) -> None:
    document = parse((published / "graphql" / "operations.graphql").read_text())
    served = set()
    for definition in document.definitions:
        name: Any = getattr(definition, "name", None)
        lone = type(document)(definitions=(definition,))
        if name is not None and not validate(own_schema(), lone):
            served.add(name.value)
    assert served >= {
        "ConnectProbe",
        "GrantedScopes",
        "RevenueOrders",
        "RevenueSlim",
        "RecurringOrders",
        "RevenueCount",
        "OrderMoney",
        "RefundsWindow",
        "BulkOrders",
        "BulkPoll",
        "ListSubscriptions",
        "Subscribe",
        "UpdateSubscription",
        "Unsubscribe",
        "SubscribeMany",
        "ProductsSince",
        "InventoryAt",
        "CustomersSince",
    }
