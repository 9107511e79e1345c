"""The application behind nginx and haproxy, where they are found."""

import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.http.people import PASSWORD, settings_of
from tests.http.serving.conftest import Serve, head_of
from tests.http.test_edge import probes
from tests.journeys.conftest import free_port
from tolsey.http.app import create_app
from tolsey.http.people import auth
from tolsey.http.web.context import Service
from tolsey.http.web.edge import Edge
from tolsey.settings import Settings

DEPLOY = Path(__file__).parents[3] / "deploy"
NAME = "tolsey.example"
TOKEN = "m" * 32
SIGN_UPS = 5

needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
needs_haproxy = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not found")

PLAIN = """
server {
    listen 443 ssl;
    ssl_certificate /etc/nginx/tls/fullchain.pem;
    ssl_certificate_key /etc/nginx/tls/privkey.pem;
    location / { proxy_pass http://${UPSTREAM}; proxy_set_header Host tolsey.example; }
}
"""
"""Says nothing of its visitors but whose service they want, and passes on what they say."""

HAPROXY = """
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend visitors
    bind 127.0.0.1:{port}
    http-request deny if {{ path /metrics }}
    option forwardfor
    default_backend tolsey
backend tolsey
    server one 127.0.0.1:{upstream}
"""


@pytest.fixture
def settings() -> Settings:
    return settings_of(
        base_url=f"https://{NAME}", trusted_proxies=("127.0.0.1/32",), metrics_token=TOKEN
    )


@pytest.fixture
def edge(service: Service) -> Edge:
    return create_app(service, [auth.routes, probes()], {})


def certify(folder: Path) -> None:
    """Write a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    at = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(at - timedelta(days=1))
        .not_valid_after(at + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "fullchain.pem").write_bytes(made.public_bytes(pem))
    form, seal = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "privkey.pem").write_bytes(key.private_bytes(pem, form, seal))


@contextmanager
def running(*command: str) -> Iterator[None]:
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            yield
        finally:
            process.terminate()


async def until_open(port: int) -> None:
    with anyio.fail_after(60):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            except OSError:
                await anyio.sleep(0.02)
            else:
                return


@asynccontextmanager
async def nginx(folder: Path, template: str, upstream: int) -> AsyncIterator[httpx.AsyncClient]:
    """Serve a template of nginx's image at a port of ours, and answer a visitor of the name."""
    certify(folder)
    port, other = free_port(), free_port()
    site = template.replace("${UPSTREAM}", f"127.0.0.1:{upstream}")
    site = site.replace("/etc/nginx/tls", str(folder)).replace("listen 443", f"listen {port}")
    site = site.replace("listen 80;", f"listen {other};")
    kept = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    written = folder / "nginx.conf"
    written.write_text(
        f"daemon off; master_process off; pid {folder}/pid;\nerror_log stderr warn;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{kept}\n{site}}}\n"
    )
    unknown = ssl.create_default_context()
    unknown.check_hostname, unknown.verify_mode = False, ssl.CERT_NONE
    with running("nginx", "-c", str(written), "-e", "stderr"):
        await until_open(port)
        async with httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{port}",
            headers={"Host": NAME, "Origin": f"https://{NAME}"},
            verify=unknown,
            timeout=60,
        ) as visitor:
            yield visitor


async def signed_up(visitor: httpx.AsyncClient, number: int, **headers: str) -> httpx.Response:
    body = {
        "email": f"a{number}@example.com",
        "password": PASSWORD,
        "organizationName": "A",
    }
    return await visitor.post("/api/auth/signup", json=body, headers=headers)


@needs_nginx
async def test_the_proxy_of_the_compose_file_serves_over_tls(
    serve: Serve, edge: Edge, tmp_path: Path
) -> None:
    template = (DEPLOY / "nginx.conf.template").read_text()
    async with serve(edge) as served, nginx(tmp_path, template, served.port) as visitor:
        made = await signed_up(visitor, 0)
        assert made.status_code == 201, made.text
        assert "Secure" in made.headers["set-cookie"]
        assert "strict-transport-security" in made.headers
        (cookie,) = re.findall(r"^[^;]+", made.headers["set-cookie"])
        session = await visitor.get("/api/auth/session", headers={"Cookie": cookie})
        assert session.status_code == 200
        # It says who visits, whatever the visitor says: all of these count as one.
        statuses = [
            (
                await signed_up(visitor, number, **{"X-Forwarded-For": f"192.0.2.{number}"})
            ).status_code
            for number in range(1, SIGN_UPS + 1)
        ]
        assert statuses == [201] * (SIGN_UPS - 1) + [429]
        assert (await visitor.get("/metrics")).status_code == 401
        answered = await visitor.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answered.status_code == 200


def test_the_compose_file_believes_its_own_proxy_and_lets_nobody_past_it() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    (named,) = re.findall(r"TRUSTED_PROXIES: (\S+)", text)
    (address,) = re.findall(r"ipv4_address: (\S+) ", text)
    assert named == address
    (opened,) = re.findall(r"ports: (\[.*\])", text)
    assert "8000" not in opened


class TestUnnamed:
    """A proxy that nobody named, and that says nothing of its visitors."""

    @pytest.fixture(params=[None, TOKEN])
    def settings(self, request: pytest.FixtureRequest) -> Settings:
        return settings_of(base_url=f"https://{NAME}", metrics_token=request.param)

    @needs_nginx
    async def test_nothing_is_believed_and_metrics_are_closed(
        self, serve: Serve, edge: Edge, tmp_path: Path
    ) -> None:
        async with serve(edge) as served, nginx(tmp_path, PLAIN, served.port) as visitor:
            assert (await visitor.get("/metrics")).status_code in {401, 503}
            statuses = [
                (await signed_up(visitor, number, **{"X-Forwarded-For": f"192.0.2.{number}"}))
                for number in range(SIGN_UPS + 1)
            ]
            assert [one.status_code for one in statuses] == [201] * SIGN_UPS + [429]


@needs_haproxy
async def test_no_upgrade_leads_past_the_rules_of_haproxy(
    serve: Serve, edge: Edge, tmp_path: Path
) -> None:
    port = free_port()
    async with serve(edge) as served:
        written = tmp_path / "haproxy.cfg"
        written.write_text(HAPROXY.format(port=port, upstream=served.port))
        with running("haproxy", "-db", "-f", str(written)):
            await until_open(port)
            async with await anyio.connect_tcp("127.0.0.1", port) as visitor:
                await visitor.send(
                    b"GET /api/auth/session HTTP/1.1\r\nHost: tolsey.example\r\n"
                    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                    b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
                )
                assert (await head_of(visitor)).startswith(b"http/1.1 401")
                await visitor.send(b"GET /metrics HTTP/1.1\r\nHost: tolsey.example\r\n\r\n")
                assert (await head_of(visitor)).startswith(b"http/1.1 403")
