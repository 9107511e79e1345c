"""The description of the HTTP interface: OpenAPI."""

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import anyio
import anyio.to_thread
import orjson
from pydantic import BaseModel
from quart import Blueprint, Quart, Response, current_app
from quart_schema import QuartSchema
from quart_schema.openapi import (
    APIKeySecurityScheme,
    HttpSecurityScheme,
    Info,
    OpenAPIProvider,
    Server,
)
from werkzeug.routing import Rule

from tolsey.http.answers.base import Described, Media, answers_of
from tolsey.http.description import by_hand, refusals
from tolsey.http.web.access import Access, access_of, public
from tolsey.http.web.callers import queue_proof

SECURITY: dict[Access, list[dict[str, list[str]]]] = {
    Access.PUBLIC: [],
    Access.SESSION: [{"session": []}],
    Access.PAGE: [{"session": []}],
    Access.ADMINISTRATOR: [{"session": []}],
    Access.CRON: [{"cronSecret": []}],
    Access.METRICS: [{"metricsToken": []}],
    Access.API_KEY: [{"apiKey": []}],
    Access.INTERNAL: [{"queueSignature": []}],
}
WORDS = re.compile(r"[^A-Za-z0-9]+")
PLACE = re.compile(r"<(?:[^<>:]*:)?([^<>]+)>")
"""A part of a rule's path that stands for something, with its converter."""

routes = Blueprint("documentation", __name__)


class Provider(OpenAPIProvider):
    """Adds to what the routes say of themselves: who may call, and the shape of every error."""

    def __init__(self, app: Quart, extension: QuartSchema) -> None:
        super().__init__(app, extension)
        self._shapes: dict[str, type[BaseModel]] = {}
        self._text = b""
        self._making = anyio.Lock()

    async def text(self) -> bytes:
        """Write the description as JSON: once, and beside other requests, for it takes a fifth of a second."""
        async with self._making:
            if not self._text:
                self._text = await anyio.to_thread.run_sync(lambda: orjson.dumps(self.schema()))
        return self._text

    def schema(self) -> dict[str, Any]:
        """Describe the whole interface."""
        described = super().schema()
        refusals.install(described.setdefault("components", {}))
        described["components"]["schemas"]["RpcAnswer"] = by_hand.RPC_ANSWER
        for path, operations in by_hand.PATHS.items():
            described["paths"][path].update(operations)
            for method, operation in operations.items():
                operation.setdefault("operationId", f"{method}_{WORDS.sub('_', path).strip('_')}")
        every = [one for path in described["paths"].values() for one in path.values()]
        tags = {tag for operation in every for tag in operation.get("tags", [])}
        described["info"]["license"] = {"name": "MIT", "identifier": "MIT"}
        described["tags"] = [{"name": tag} for tag in sorted(tags)]
        return described

    def generate_rules(self) -> Iterable[Rule]:
        """List the rules that are described: a view of the interface says what it answers with."""
        views = self._app.view_functions
        return (rule for rule in self._app.url_map.iter_rules() if answers_of(views[rule.endpoint]))

    def build_paths(self, rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
        """Describe the operations of one rule."""
        paths, components = super().build_paths(rule)
        view = self._app.view_functions[rule.endpoint]
        access = access_of(view)
        answers = {
            str(status): self._answer(status, bodies, components)
            for status, bodies in answers_of(view).items()
        }
        for operations in paths.values():
            for method, operation in operations.items():
                if len(operations) == 1:  # else the framework's names tell the methods apart
                    operation["operationId"] = view.__name__
                operation["responses"] = {**operation["responses"], **answers}
                refusals.describe(operation, method, view)
                if access is not None:
                    operation["security"] = SECURITY[access]
        (operations,) = paths.values()  # under a path that loses what is before a converter's colon
        return _each_word({PLACE.sub(r"{\1}", rule.rule): operations}), components

    def build_querystring_parameters(
        self, model: Any
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Describe what an address is asked with, and which of it must be."""
        parameters, definitions = super().build_querystring_parameters(model)
        must = {one.alias for one in model.model_fields.values() if one.is_required()}
        for one in parameters:
            one["required"] = one["name"] in must
        return parameters, definitions

    def build_request_body(self, model: Any, source: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Describe a body, without which nothing is done."""
        described, definitions = super().build_request_body(model, source)
        ((kind, said),) = described["content"].items()
        reference, named = self._named(model, said["schema"])
        return {"content": {kind: {"schema": reference}}, "required": True}, definitions | named

    def _named(self, model: type[BaseModel], schema: Any) -> tuple[dict[str, str], dict[str, Any]]:
        """Give a shape its class's name, and refer to it by that."""
        name = model.__name__
        if self._shapes.setdefault(name, model) is not model:
            raise TypeError(f"two shapes of bodies are named {name}")
        return {"$ref": f"#/components/schemas/{name}"}, {name: schema}

    def _answer(
        self, status: int, bodies: Sequence[Described], components: dict[str, Any]
    ) -> dict[str, Any]:
        """Describe what a status answers with; shapes that it refers to join the components."""
        described: dict[str, Any] = {"description": HTTPStatus(status).phrase}
        content = dict[str, list[Any]]()
        for body in bodies:
            media = body if isinstance(body, Media) else Media("application/json", shape=body)
            if body is None or media.kind is None:
                continue
            schema: Any = {"type": "string"}
            if media.shape is not None:
                answer, shapes = self.build_response_object(media.shape, None)
                (said,) = answer["content"].values()
                schema, named = self._named(media.shape, said["schema"])
                components |= shapes | named
                described["description"] = answer["description"]
            content.setdefault(media.kind, []).append(schema)
        if content:
            described["content"] = {
                kind: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
                for kind, schemas in content.items()
            }
        return described


def _each_word(paths: Mapping[str, Any]) -> dict[str, Any]:
    """Give each word that a part of a path may be a path of its own, as clients call it."""
    written: dict[str, Any] = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            places = operation["parameters"]
            choices = [one for one in places if one["in"] == "path" and "enum" in one["schema"]]
            if not choices:
                written.setdefault(path, {})[method] = operation
            for choice in choices:
                for word in sorted(choice["schema"]["enum"]):
                    written.setdefault(path.replace(f"{{{choice['name']}}}", word), {})[method] = {
                        **operation,
                        "operationId": f"{operation['operationId']}_{word}",
                        "parameters": [one for one in places if one is not choice],
                    }
    return written


@routes.get("/openapi.json")
@public
async def openapi() -> Response:
    """Answer with the OpenAPI description."""
    return Response(await provider(current_app).text(), content_type="application/json")


def described(blueprints: Iterable[Blueprint], base_url: str) -> dict[str, Any]:
    """Describe routes that nobody serves here."""
    app = Quart("tolsey", static_folder=None)
    install(app, base_url)
    for blueprint in blueprints:
        app.register_blueprint(blueprint)
    return provider(app).schema()


def provider(app: Quart) -> Provider:
    """Give what describes an app."""
    made: Provider = app.extensions["QUART_SCHEMA"].openapi_provider
    return made


def install(app: Quart, base_url: str) -> None:
    """Describe the app's routes, and what is described by hand."""
    QuartSchema(
        app,
        openapi_path=None,
        swagger_ui_path=None,
        redoc_ui_path=None,
        scalar_ui_path=None,
        info=Info(
            title="tolsey",
            version=version("tolsey"),
            description="Runs the operations of a commerce business. What all routes share is at /docs/api-guide.",
        ),
        servers=[Server(url=base_url)],
        security_schemes={
            "session": APIKeySecurityScheme(
                name="__Host-session" if base_url.startswith("https://") else "session",
                in_="cookie",
            ),
            "cronSecret": HttpSecurityScheme(scheme="bearer"),
            "metricsToken": HttpSecurityScheme(scheme="bearer"),
            "agent": HttpSecurityScheme(scheme="bearer"),
            "apiKey": HttpSecurityScheme(scheme="bearer"),
            "queueSignature": APIKeySecurityScheme(name=queue_proof.HEADER, in_="header"),
        },
        conversion_preference="pydantic",
        openapi_provider_class=Provider,
    )
    app.register_blueprint(routes)
