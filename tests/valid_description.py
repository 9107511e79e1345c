"""Validates what the service says of itself: `make check` runs `python -m tests.valid_description`."""

import sys

import openapi_spec_validator
import orjson
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from tests.described import described


def fault() -> str | None:
    """Say where `/openapi.json` is no description that programs can read; None when it is one."""
    try:
        openapi_spec_validator.validate(orjson.loads(orjson.dumps(described())))
    except OpenAPIValidationError as error:
        return f"/openapi.json: {'.'.join(map(str, error.absolute_path))}: {error.message}"
    return None


if __name__ == "__main__":
    sys.exit(fault())
