"""The application: receivers in front, Quart behind, and what all routes share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from quart import Blueprint, Quart, request
from quart.routing import QuartRule
from quart.wrappers import BaseRequestWebsocket
from typing_extensions import override
from werkzeug.routing import MapAdapter

from tolsey.http.description import documentation
from tolsey.http.files.uploads import PacedConnection, PacedRequest
from tolsey.http.layout import answers as pages
from tolsey.http.layout import assets, gallery, templates
from tolsey.http.web import access, context, json, limits
from tolsey.http.web.callers import cookies
from tolsey.http.web.context import Service
from tolsey.http.web.edge import NOTHING, ASGIApp, Edge, Hosts, Scope
from tolsey.http.web.refusing import errors
from tolsey.http.web.requests import ROUTE, RequestTally

MAXIMUM_BODY_BYTES = 1024 * 1024
BODY_SECONDS = 15


class Route(QuartRule):
    """A rule whose builder of URLs is compiled when it is first asked for, not 280 times at the start."""

    def _compile_builder(self, append_unknown: bool = True) -> Any:
        compile_now, compiled = super()._compile_builder, list[Any]()

        def build(self: Route, **values: Any) -> tuple[str, str]:
            if not compiled:
                compiled.append(compile_now(append_unknown))
            built: tuple[str, str] = compiled[0](self, **values)
            return built

        return build


class Application(Quart):
    """Finds views by their path alone: whose host it is was decided before, and may be any text."""

    request_class = PacedRequest
    asgi_http_class = PacedConnection

    @override
    def create_url_adapter(self, request: BaseRequestWebsocket | None) -> MapAdapter | None:
        if request is None:
            return None
        return self.url_map.bind(
            urlsplit(self.config["BASE_URL"]).netloc,
            url_scheme=request.scheme,
            default_method=request.method,
            path_info=request.path,
            query_args=request.query_string.decode(errors="replace"),
        )


def create_app(
    service: Service,
    blueprints: Iterable[Blueprint],
    receivers: Mapping[str, ASGIApp],
    *,
    mounted: Mapping[str, ASGIApp] = NOTHING,
    hosts: Hosts | None = None,
    requests: RequestTally | None = None,
) -> Edge:
    """Put the routes in front of the actors; a route that does not say who may call is refused.

    `receivers` serve an exact path each, as plain ASGI, before Quart sees the request; `mounted` serve
    all paths that begin like theirs, and `hosts` hosts of their own.
    """
    settings = service.settings
    app = routed(tuple(blueprints), settings.base_url)
    context.attach(app, service)
    return Edge(
        cast("ASGIApp", app),
        receivers,
        is_https=settings.is_https,
        mounted=mounted,
        hosts=hosts,
        public_host=None if settings.is_local else urlsplit(settings.base_url).netloc,
        requests=requests,
    )


async def _name_route() -> None:
    """Leave the rule that matched where the outermost layer counts requests by it."""
    if request.url_rule is not None:
        cast("Scope", request.scope)[ROUTE] = request.url_rule.rule


def routed(blueprints: Sequence[Blueprint], base_url: str) -> Quart:
    """Put the routes together, with what all of them share; whose they are comes later."""
    app = Application("tolsey", static_folder=None)
    app.config["BASE_URL"] = base_url
    app.url_rule_class = Route
    # A path with two slashes is no path of ours: the redirect would be built from the Host header.
    app.url_map.merge_slashes = False
    app.config["MAX_CONTENT_LENGTH"] = MAXIMUM_BODY_BYTES
    app.config["BODY_TIMEOUT"] = BODY_SECONDS
    app.config["RESPONSE_TIMEOUT"] = None  # streams may last; the runtime bounds every ask
    app.before_request(_name_route)
    documentation.install(app, base_url)
    json.install(app)
    errors.install(app)
    pages.install(app)
    cookies.install(app)
    limits.install(app)
    templates.compile_all()
    for blueprint in (assets.routes, gallery.routes, *blueprints):
        app.register_blueprint(blueprint)
    access.require_classes(app)
    return app
