import threading
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest
from quart import Blueprint, Response, request

from tests.http.people import Browser, SignUp, settings_of
from tolsey.actors.refusals import Conflict, MissingCredential
from tolsey.http.app import create_app
from tolsey.http.description.documentation import Provider
from tolsey.http.people import auth, organizations
from tolsey.http.stores import routes as stores
from tolsey.http.web.access import ATTRIBUTE, administrator, cron, operator_metrics, public
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.runtime.errors import DeadlineExceeded, Overloaded, ShardUnavailable, TurnFailed
from tolsey.settings import Settings
from tolsey.storage.errors import StorageError, StorageUnavailable
from tolsey.storage.people import administrators

FAULTS: dict[str, tuple[Exception, int, str]] = {
    "overloaded": (Overloaded("mailbox", 2.5), 503, "overloaded"),
    "away": (ShardUnavailable("stopping"), 503, "shard_unavailable"),
    "late": (DeadlineExceeded(), 504, "deadline_exceeded"),
    "failed": (TurnFailed("OpenStore", "secret cause"), 500, "internal_error"),
    "disk": (StorageUnavailable("secret host"), 503, "storage_unavailable"),
    "sql": (StorageError("secret SELECT"), 500, "internal_error"),
    "bug": (ZeroDivisionError("secret bug"), 500, "internal_error"),
    "refused": (Conflict("No.", allowed=["a"]), 409, "conflict"),
    "unset": (MissingCredential("LLM_API_KEY"), 503, "missing_credential"),
}


def probes() -> Blueprint:
    routes = Blueprint("probes", __name__)

    @routes.get("/fault/<name>")
    @public
    async def fault(name: str) -> Any:
        raise FAULTS[name][0]

    @routes.post("/echo")
    @public
    async def echo() -> Any:
        return {"echo": await request.get_json()}

    @routes.get("/api/cron/<name>")
    @cron
    async def job(name: str) -> Any:
        return {"job": name, "executionId": "run_1", "outcome": {"status": "completed"}}

    @routes.get("/metrics")
    @operator_metrics
    async def metrics() -> Any:
        return Response("ok", content_type="text/plain")

    @routes.get("/api/admin/probe")
    @administrator
    async def admin() -> Any:
        return {}

    return routes


async def receiver(scope: Any, receive: Any, send: Any) -> None:
    del receive
    if scope["query_string"] == b"break":
        raise ZeroDivisionError("secret bug")
    await send({"type": "http.response.start", "status": 200, "headers": [(b"server", b"x")]})
    await send({"type": "http.response.body", "body": b"received"})


@pytest.fixture
def edge(service: Service) -> Edge:
    blueprints = [auth.routes, organizations.routes, stores.routes, probes()]
    return create_app(service, blueprints, {"/api/webhooks/probe": receiver})


@pytest.mark.parametrize("name", FAULTS)
async def test_every_fault_is_a_problem_that_tells_no_cause(browser: Browser, name: str) -> None:
    _, status, code = FAULTS[name]
    response = await browser().get(f"/fault/{name}", headers={"X-Request-Id": "r-1"})
    problem = response.json()
    assert response.status_code == problem["status"] == status
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["code"] == code
    assert problem["requestId"] == "r-1"
    assert set(problem) >= {"type", "title", "detail"}
    assert "secret" not in response.text
    if name == "overloaded":
        assert response.headers["retry-after"] == "3"
    if name == "unset":
        assert "LLM_API_KEY" in problem["detail"]


@pytest.mark.parametrize("path", ["/nowhere", "/api/stores/", "/%ff", "/..%2f", "/\u202e"])
async def test_an_unknown_address_is_a_problem(browser: Browser, path: str) -> None:
    response = await browser().get(path)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_a_wrong_method_names_the_right_ones(browser: Browser) -> None:
    response = await browser().delete("/echo")
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert "POST" in response.headers["allow"]
    assert (await browser().request("TRACE", "/echo")).status_code == 405


@pytest.mark.parametrize("path", ["/echo", "/nowhere", "/openapi.json", "/api/webhooks/probe"])
async def test_every_answer_carries_the_security_headers(browser: Browser, path: str) -> None:
    headers = (await browser().get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "strict-transport-security" not in headers
    assert "server" not in headers
    assert headers["cache-control"] == "no-store"
    assert len(headers.get_list("x-request-id")) == 1


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [("abc-1", True), ("a" * 128, True), ("a" * 129, False), ("a b", False), ("a\x1b[31m", False)],
)
async def test_a_sane_request_id_is_echoed(browser: Browser, sent: str, echoed: bool) -> None:
    response = await browser().get("/nowhere", headers={"X-Request-Id": sent})
    answered = response.headers["x-request-id"]
    assert (answered == sent) is echoed
    assert response.json()["requestId"] == answered


async def test_an_answer_without_content_says_no_length(browser: Browser) -> None:
    response = await browser().post("/api/auth/logout")
    assert response.status_code == 204
    assert "content-length" not in response.headers  # RFC 9110, section 8.6


async def test_a_receiver_that_breaks_answers_a_problem(browser: Browser) -> None:
    assert (await browser().get("/api/webhooks/probe")).text == "received"
    response = await browser().get("/api/webhooks/probe?break")
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_json"),
        (b"", 400, "malformed_json"),
        (b'{"a":NaN}', 400, "malformed_json"),
        (b"1e999", 400, "malformed_json"),
        (b"9223372036854775808", 400, "malformed_json"),
        (b'{"a":1e308}', 400, "malformed_json"),
        (b"-1e19", 400, "malformed_json"),
        (b"99999999999999e9", 400, "malformed_json"),
        (b"9" * 4000, 400, "malformed_json"),
        (b'"\\u0000"', 400, "malformed_json"),
        (b'{"\\u0000":1}', 400, "malformed_json"),
        (b'"\\ud800"', 400, "malformed_json"),
        (b'"\xff"', 400, "malformed_json"),
        (b"\xef\xbb\xbf{}", 400, "malformed_json"),
        ('"é"'.encode("utf-16"), 400, "malformed_json"),
        (b"[" * 65 + b"]" * 65, 400, "malformed_json"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, 400, "malformed_json"),
        (b"[" * 100_000, 400, "malformed_json"),
        (b'{"a":' * 100_000, 400, "malformed_json"),
        (b"[" * 64 + b"]" * 64, 200, None),
        (b"[" * 64 + b"1" + b"]" * 64, 200, None),
        (b"9223372036854775807", 200, None),
        (b'"' + b"x" * (1024 * 1024 - 2) + b'"', 200, None),
        (b'"' + b"x" * (1024 * 1024) + b'"', 413, "payload_too_large"),
    ],
)
async def test_json_is_read_strictly(
    browser: Browser, body: bytes, status: int, code: str | None
) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}
    response = await browser().post("/echo", content=body, headers=headers)
    assert response.status_code == status
    if code:
        assert response.json()["code"] == code


async def test_a_body_without_its_length_is_capped_too(browser: Browser) -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b"x" * 65_536

    headers = {"Content-Type": "application/json"}
    response = await browser().post("/echo", content=chunks(), headers=headers)
    assert response.status_code == 413


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_json_must_say_that_it_is_json(browser: Browser, media_type: str) -> None:
    response = await browser().post("/echo", content=b"{}", headers={"Content-Type": media_type})
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("X-Many", "1")] * 101, 431),
        ([("X-Long", "x" * 16_384)], 431),
        ([("Transfer-Encoding", "chunked"), ("Content-Length", "2")], 400),
        ([("Content-Length", "2"), ("Content-Length", "3")], 400),
    ],
)
async def test_a_head_out_of_bounds_is_refused(
    edge: Edge, headers: list[tuple[str, str]], status: int
) -> None:
    answers: list[Any] = []

    async def send(event: Any) -> None:
        answers.append(event)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/echo",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "client": ("198.51.100.1", 1),
    }
    await edge(scope, receive, send)
    assert answers[0]["status"] == status


async def test_a_nul_in_an_address_is_refused(browser: Browser) -> None:
    assert (await browser().get("/api/stores/a%00b")).status_code == 400
    assert (await browser().get("/api/stores?cursor=%00")).status_code == 400


async def test_a_cron_without_its_secret_is_a_missing_credential(browser: Browser) -> None:
    response = await browser().get("/api/cron/launch-tick")
    assert (response.status_code, response.json()["variable"]) == (503, "CRON_SECRET")


async def test_metrics_are_for_this_machine(browser: Browser) -> None:
    assert (await browser().get("/metrics")).status_code == 401
    assert (await browser("127.0.0.1").get("/metrics")).status_code == 200
    proxied = browser("127.0.0.1", **{"X-Forwarded-For": "198.51.100.7"})
    assert (await proxied.get("/metrics")).status_code == 401


class TestInPublic:
    @pytest.fixture
    def settings(self) -> Settings:
        return settings_of(base_url="https://tolsey.example")

    async def test_metrics_need_their_token(self, browser: Browser) -> None:
        # A proxy that says nothing of its visitor looks like this machine.
        answer = await browser("127.0.0.1").get("/metrics")
        assert (answer.status_code, answer.json().get("variable")) == (503, "METRICS_TOKEN")


async def test_administrators_administer(sign_up: SignUp, service: Service) -> None:
    ann = await sign_up()
    assert (await ann.browser.get("/api/admin/probe")).status_code == 403
    await administrators.create_administrator(service.database, ann.email, "a new password 1")
    login = {"email": ann.email, "password": "a new password 1"}
    assert (await ann.browser.post("/api/auth/login", json=login)).status_code == 200
    assert (await ann.browser.get("/api/admin/probe")).status_code == 200


class TestWithSecrets:
    @pytest.fixture
    def settings(self) -> Settings:
        return settings_of(
            encryption_keys="k:" + "A" * 43,
            cron_secret="c" * 32,
            metrics_token="m" * 32,
        )

    async def test_only_the_secret_opens(self, browser: Browser) -> None:
        for secret, path in (("c" * 32, "/api/cron/launch-tick"), ("m" * 32, "/metrics")):
            for given, status in ((secret, 200), (secret[:-1], 401), ("caf\xe9", 401), ("", 401)):
                header = {b"Authorization": f"Bearer {given}".encode("latin-1")}
                for peer in (None, "127.0.0.1"):
                    answer = await browser(peer).get(path, headers=header)
                    assert answer.status_code == status


async def test_a_route_that_does_not_say_who_may_call_stops_the_start(service: Service) -> None:
    routes = Blueprint("silent", __name__)

    async def view() -> str:
        return ""

    routes.get("/silent")(view)
    assert not hasattr(view, ATTRIBUTE)
    with pytest.raises(TypeError, match=r"silent\.view"):
        create_app(service, [routes], {})


async def test_the_interface_describes_itself(browser: Browser) -> None:
    described = (await browser().get("/openapi.json")).json()
    assert described["info"]["title"] == "tolsey"
    operation = described["paths"]["/api/stores"]["post"]
    assert operation["security"] == [{"session": []}]
    assert operation["responses"]["default"] == {"$ref": "#/components/responses/Problem"}
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    shapes = described["components"]["schemas"]
    assert set(shapes[reference.rpartition("/")[2]]["properties"]) == {"organizationId", "name"}
    assert shapes["Problem"]


async def test_a_websocket_is_closed(edge: Edge) -> None:
    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    await edge({"type": "websocket", "path": "/"}, cast("Any", None), send)
    assert sent == [{"type": "websocket.close", "code": 1000}]


async def test_the_description_is_made_once_while_others_are_answered(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, begun, others_answered = Provider.schema, threading.Event(), threading.Event()
    waited = list[bool]()

    def slow(provider: Provider) -> dict[str, Any]:
        begun.set()
        waited.append(others_answered.wait(30))
        return schema(provider)

    monkeypatch.setattr(Provider, "schema", slow)
    found = list[bytes]()

    async def ask() -> None:
        found.append((await browser().get("/openapi.json")).raise_for_status().content)

    async with anyio.create_task_group() as asked:
        for _ in range(3):
            asked.start_soon(ask)
        await anyio.to_thread.run_sync(begun.wait, 60)
        assert (await browser().get("/nowhere")).status_code == 404
        others_answered.set()
    assert waited == [True]
    assert found == [found[0]] * 3
