"""What browsers report: violations of our content security policy (rules/operators#what-is-shown)."""

import re
from typing import Any

import structlog
from pydantic_core import from_json
from quart import Blueprint, request
from quart_schema import tag_blueprint

from tolsey.http.answers.base import NoBody, NoContent
from tolsey.http.web import policies
from tolsey.http.web.access import public
from tolsey.http.web.limits import limited

REPORT_BYTES = 16 * 1024
NAMED = (
    "document-uri",
    "documentURL",
    "blocked-uri",
    "blockedURL",
    "effective-directive",
    "effectiveDirective",
    "violated-directive",
)
FIELD_CHARACTERS = 200

log = structlog.get_logger()
routes = Blueprint("security", __name__, url_prefix="/api/security")
tag_blueprint(routes, ["Health"])


@routes.post("/csp-report")
@public
@limited(policies.CSP_REPORT)
async def csp_report() -> tuple[NoBody, NoContent]:
    """Note a report in the log and answer 204; anything that is no report is answered alike."""
    request.max_content_length = REPORT_BYTES
    body = await request.get_data()
    try:
        parsed = from_json(body, allow_inf_nan=False)
    except ValueError:
        return "", 204
    for report in _reports(parsed)[:5]:
        said = {name: _place(report[name]) for name in NAMED if name in report}
        log.warning("csp.violation", **said)
    return "", 204


def _place(said: Any) -> str:
    """Write an address without its query and fragment, where codes, tokens and names of people stand."""
    return re.split(r"[?#;]", str(said)[:FIELD_CHARACTERS], maxsplit=1)[0]


def _reports(parsed: Any) -> list[dict[str, Any]]:
    """Find the reports in either form browsers send: one under `csp-report`, or a list."""
    given = parsed if isinstance(parsed, list) else [parsed]
    found = []
    for entry in given:
        if isinstance(entry, dict):
            inner = entry.get("csp-report", entry.get("body", entry))
            if isinstance(inner, dict):
                found.append(inner)
    return found
