"""What Prometheus makes of us: its own tool reads the alert rules and the metrics (rules/service#alerts).

`promtool` comes with Debian's package `prometheus`; without it the rules are held against the metrics alone.
"""

import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

RULES = Path(__file__).parents[2] / "deploy" / "prometheus-alerts.yaml"
WHEN = Path(__file__).with_name("alerts.yaml")
METRIC = re.compile(r"\b(?:tolsey|http_server)_[a-z_]+\b")


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed")
    return found


def told(*command: str, sent: str | None = None) -> str:
    ended = subprocess.run(command, input=sent, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


async def test_every_metric_that_an_alert_asks_for_is_told(
    browser: httpx.AsyncClient,
) -> None:
    rules = [line for line in RULES.read_text().splitlines() if not line.startswith("#")]
    asked = set(METRIC.findall("\n".join(rules)))
    assert len(asked) >= "\n".join(rules).count("alert:")
    await browser.get("/api/health")
    assert (await browser.post("/api/mcp/v1/store_1", json={})).status_code == 401
    text = (await browser.get("/metrics")).text
    declared = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert {name for name in asked if name.removesuffix("_count") not in declared} == set()
    # The route by which refused agents are counted is the one that their requests are counted under.
    assert 'http_route="/api/mcp/' in text


async def test_promtool_takes_the_rules_and_the_metrics(
    promtool: str, browser: httpx.AsyncClient, tmp_path: Path
) -> None:
    told(promtool, "check", "rules", str(RULES))
    await browser.get("/api/health")
    text = (await browser.get("/metrics")).text
    told(promtool, "check", "metrics", sent=text)
    cases = tmp_path / "alerts.yaml"
    cases.write_text(WHEN.read_text().replace("RULES", str(RULES)))
    told(promtool, "test", "rules", str(cases))
