"""Makes a Python client out of `/openapi.json`: `python -m tests.client FOLDER`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.described import described

NAME: Final = "tolsey_client"
GENERATOR: Final = Path(sys.executable).with_name("openapi-python-client")
CONFIG: Final = {
    "package_name_override": NAME,
    "post_hooks": [],
    # the generator knows no pictures, documents and archives
    "content_type_overrides": {
        "image/svg+xml": "text/html",
        "image/png": "application/octet-stream",
        "application/pdf": "application/octet-stream",
        "application/zip": "application/octet-stream",
        "application/x-pem-file": "text/html",
        "text/event-stream": "text/html",
    },
}


def generate(folder: Path) -> Path:
    """Write the client as a package of a folder; answers where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    description, config = folder / "openapi.json", folder / "config.json"
    description.write_text(json.dumps(described()))
    config.write_text(json.dumps(CONFIG))
    package = folder / NAME
    subprocess.run(
        [
            *(GENERATOR, "generate", "--meta", "none", "--overwrite", "--fail-on-warning"),
            *("--path", description, "--config", config, "--output-path", package),
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return package


if __name__ == "__main__":
    print(generate(Path(sys.argv[1])))  # noqa: T201 - what a command says
