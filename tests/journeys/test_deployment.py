"""What is deployed names what is there: settings, routes, metrics; each file is one that its program reads."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.http.test_tenants import routes_of
from tests.journeys.strangers import edge_of
from tolsey import __version__
from tolsey.service import Running
from tolsey.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus-alerts.yaml"
DASHBOARD = DEPLOY / "grafana-dashboard.json"
ANALYZE = shutil.which("systemd-analyze")
METRIC = re.compile(r"\b(?:tolsey|http_server|process)_[a-z_]+\b")
PARTS = ("", "_bucket", "_count", "_sum", "_total")
INSTRUCTIONS = {
    *("FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "STOPSIGNAL"),
    *("HEALTHCHECK", "CMD"),
}
LABELS = {"http_route", "http_response_status_code", "http_request_method"}


def manifests() -> dict[str, Any]:
    """Read the documents of Kubernetes by their kinds."""
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "tolsey.yaml").read_text())
    return {one["kind"]: one for one in documents}


def expressions() -> Iterator[tuple[str, str]]:
    """Give every expression of an alert or of a panel, with its title."""
    for group in yaml.safe_load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def known_settings() -> set[str]:
    """Name the variables that the service reads."""
    return {name.upper() for name in Settings.model_fields}


async def test_alerts_and_the_dashboard_ask_for_metrics_that_are_exposed(
    browser: httpx.AsyncClient,
) -> None:
    text = (await browser.get("/metrics")).text
    exposed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    asked = list(expressions())
    assert len(asked) > 30
    for title, expression in asked:
        named = set(METRIC.findall(expression)) - LABELS
        assert named, title
        for name in named:
            assert any(name == family + part for family in exposed for part in PARTS), (
                f"{title}: nothing exposes {name}"
            )


def test_every_panel_has_its_place() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    places = [
        (place["x"] + x, place["y"] + y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(places) == len(set(places))
    assert max(x for x, _y in places) < 24
    assert len({panel["id"] for panel in panels}) == len(panels)


async def test_kubernetes_runs_what_is_there_as_nobody(live: Running) -> None:
    found = manifests()
    deployment = found["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    labels = deployment["template"]["metadata"]["labels"]
    for selector in (
        deployment["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    assert container["image"] == f"tolsey:{__version__.partition('+')[0]}"
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == user_of_the_image()
    confined = container["securityContext"]
    assert confined["readOnlyRootFilesystem"]
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert not confined["allowPrivilegeEscalation"]
    probe = container["readinessProbe"]["httpGet"]
    assert ("GET", probe["path"]) in {(one[0], one[1]) for one in routes_of(edge_of(live))}
    assert {probe["port"]} == {one["name"] for one in container["ports"]}
    assert {one["name"] for one in container["env"]} <= known_settings()
    # A pod that is told to end says so for a while, hands its stores over and answers what it was sent.
    assert pod["terminationGracePeriodSeconds"] >= 5 + 10 + 10
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def user_of_the_image() -> int:
    """Read as whom the image runs."""
    text = (DEPLOY / "Dockerfile").read_text()
    (uid,) = re.findall(r"useradd --system --uid (\d+) --create-home tolsey", text)
    assert re.search(r"^USER tolsey$", text, re.MULTILINE)
    assert "--require-hashes -r requirements.lock" in text
    return int(uid)


def instructions() -> Iterator[tuple[str, str]]:
    """Give each instruction of the Dockerfile with what it is told, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, told = line.strip().partition(" ")
            yield name, told.strip()


def test_the_dockerfile_is_made_of_instructions_and_copies_what_is_there() -> None:
    """No daemon builds it here; what hadolint looks for and can be told by reading is held instead."""
    found = list(instructions())
    assert {name for name, _ in found} <= INSTRUCTIONS
    stages = [told for name, told in found if name == "FROM"]
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    for stage in stages:
        image, tag, *_ = re.split(r"[: ]", stage)
        version = re.fullmatch(r"3\.(\d+)-slim", tag)
        assert image == "python"
        assert version, f"{stage}: a version is named, never the latest"
        assert project["requires-python"] == ">=3.11,<3.14"
        assert 11 <= int(version[1]) < 14
    let_through = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    named = {stage.partition(" AS ")[2] for stage in stages}
    for told in (told for name, told in found if name == "COPY"):
        *sources, _ = [one for one in told.split() if not one.startswith("--from=")]
        built = re.match(r"--from=(\S+)", told)
        assert built is None or built[1] in named
        for one in sources if built is None else ():
            plain = one.removeprefix("./")
            assert (DEPLOY.parent / plain).exists(), told
            assert f"!{plain}" in let_through, told
    last = found[max(at for at, (name, _) in enumerate(found) if name == "FROM") :]
    assert "USER" in dict(last), "the image runs as nobody"
    command = json.loads(dict(last)["CMD"])
    assert command[0] in project["scripts"]
    assert not any(re.search(r"apt-get|curl |sudo|--privileged", told) for _, told in found)


def test_compose_gives_the_service_settings_that_it_reads() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    ours = services["tolsey"]
    assert set(ours["environment"]) <= known_settings()
    assert "METRICS_TOKEN" in ours["environment"]
    assert ours["read_only"]
    assert ours["cap_drop"] == ["ALL"]
    assert "ports" not in ours, "only the proxy is reached from outside"
    assert set(ours["depends_on"]) <= set(services)
    # Redis holds leases and frames of the bus: one that evicts them loses messages.
    assert "noeviction" in services["redis"]["command"]


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not here")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "tolsey.service").read_text()
    unit = tmp_path / "tolsey.service"
    # What the unit starts is not installed here; anything that can be started stands for it.
    unit.write_text(text.replace("/opt/tolsey/.venv/bin/tolsey", sys.executable))
    checked = subprocess.run(
        [ANALYZE or "", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (checked.returncode, checked.stderr) == (0, "")
