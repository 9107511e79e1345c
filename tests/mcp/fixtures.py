"""What the official conformance suite asks a server to offer, behind our own transport.

The names and behaviours are the suite's (rules/agents#suite); nothing of it is ever served.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.mcp.speaking import meta_of, tell, write_log
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.registry import (
    READS,
    Argument,
    InputRequired,
    OfferedResource,
    Prompt,
    Registry,
    Template,
    Tool,
    ToolFailed,
    ToolResult,
)
from tolsey.http.mcp.server import answer_to

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE: Final = {"type": "image", "data": PNG, "mimeType": "image/png"}
ELICIT: Final = "elicitation/create"
SAMPLE: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"

NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": False}

Contents = Mapping[str, str]
Given = Mapping[str, Any]


def text(said: str) -> dict[str, Any]:
    """Make a block of text."""
    return {"type": "text", "text": said}


def embedded(uri: str, mime_type: str, said: str) -> dict[str, Any]:
    """Make a block that holds a resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": said}}


def said(*blocks: Mapping[str, Any]) -> ToolResult:
    """Make a result of blocks."""
    return ToolResult(blocks)


def form(message: str, **fields: str) -> dict[str, Any]:
    """Ask the user for a few values, by name and JSON type."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in fields.items()},
        "required": list(fields),
    }
    return {"method": ELICIT, "params": {"message": message, "requestedSchema": schema}}


def sample(question: str) -> dict[str, Any]:
    """Ask the client's model."""
    message = {"role": "user", "content": text(question)}
    return {"method": SAMPLE, "params": {"messages": [message], "maxTokens": 100}}


NAME: Final = form("What is your name?", name="string")
FOLDERS: Final = {"method": ROOTS, "params": {}}


async def simple_text(call: ToolCall, given: Given) -> ToolResult:
    """Answer with a text."""
    del call, given
    return said(text("This is a simple text response for testing."))


async def image(call: ToolCall, given: Given) -> ToolResult:
    """Answer with an image."""
    del call, given
    return said(IMAGE)


async def audio(call: ToolCall, given: Given) -> ToolResult:
    """Answer with a sound."""
    del call, given
    return said({"type": "audio", "data": WAV, "mimeType": "audio/wav"})


async def resource(call: ToolCall, given: Given) -> ToolResult:
    """Answer with a resource."""
    del call, given
    held = "This is an embedded resource content."
    return said(embedded("test://embedded-resource", "text/plain", held))


async def mixed(call: ToolCall, given: Given) -> ToolResult:
    """Answer with three kinds of block."""
    del call, given
    held = json.dumps({"test": "data", "value": 123})
    return said(
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", held),
    )


async def logging(call: ToolCall, given: Given) -> ToolResult:
    """Write three log messages on the way."""
    del given
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await write_log(call, "info", message)
        await asyncio.sleep(0.02)
    return said(text("Tool with logging executed successfully"))


async def progress(call: ToolCall, given: Given) -> ToolResult:
    """Tell the progress three times."""
    del given
    for done in (0, 50, 100):
        await tell(call, done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(0.02)
    return said(text(str(meta_of(call).get("progressToken"))))


async def failing(call: ToolCall, given: Given) -> ToolResult:
    """Fail as a tool may."""
    del call, given
    raise ToolFailed("This tool intentionally returns an error for testing")


async def missing_capability(call: ToolCall, given: Given) -> ToolResult:
    """Need what hardly a client declares."""
    del given
    call.require("sampling")
    return said(text("The client can sample."))


async def greet(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Ask for a name and greet it."""
    del given
    answered = answer_to(call, "user_name", ELICIT)
    if answered is None:
        return InputRequired({"user_name": NAME})
    return said(text(f"Hello, {answered.get('content', {}).get('name')}!"))


async def ask_model(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Ask the client's model for a capital."""
    del given
    answered = answer_to(call, "capital_question", SAMPLE)
    if answered is None:
        return InputRequired({"capital_question": sample("What is the capital of France?")})
    return said(text(answered["content"]["text"]))


async def list_roots(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Ask for the client's folders."""
    del given
    answered = answer_to(call, "client_roots", ROOTS)
    if answered is None:
        return InputRequired({"client_roots": FOLDERS})
    return said(text(", ".join(root["uri"] for root in answered["roots"])))


async def request_state(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Give a state out and want it back."""
    del given
    if call.state is None or answer_to(call, "confirm", ELICIT) is None:
        return InputRequired({"confirm": form("Please confirm", ok="boolean")}, state="asked")
    return said(text("state-ok"))


async def multiple(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Ask three things at once."""
    del given
    wanted = {
        "user_name": NAME,
        "greeting": sample("Generate a greeting"),
        "client_roots": FOLDERS,
    }
    open_ones = {
        name: one for name, one in wanted.items() if answer_to(call, name, one["method"]) is None
    }
    if open_ones:
        return InputRequired(open_ones, state="asked")
    return said(text("All three were answered."))


async def rounds(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Ask twice, one thing after the other."""
    del given
    state = call.state or {"round": 1}
    if state["round"] == 1:
        named = answer_to(call, "step1", ELICIT)
        if named is None:
            step = form("Step 1: What is your name?", name="string")
            return InputRequired({"step1": step}, state={"round": 1})
        state = {"round": 2, "name": named.get("content", {}).get("name")}
    answered = answer_to(call, "step2", ELICIT)
    if answered is None:
        step = form("Step 2: What is your favorite color?", color="string")
        return InputRequired({"step2": step}, state=state)
    return said(text(f"{state['name']} likes {answered.get('content', {}).get('color')}."))


async def by_capability(call: ToolCall, given: Given) -> ToolResult | InputRequired:
    """Ask only what the client can answer."""
    del given
    wanted = {}
    if "elicitation" in call.request.capabilities:
        wanted["user_name"] = NAME
    if "sampling" in call.request.capabilities:
        wanted["greeting"] = sample("Generate a greeting")
    if "roots" in call.request.capabilities:
        wanted["client_roots"] = FOLDERS
    if not wanted or any(name in call.responses for name in wanted):
        return said(text("Nothing is left to ask."))
    return InputRequired(wanted, state="asked")


def tool(name: str, run: Any, schema: Mapping[str, Any] = NO_PARAMETERS) -> Tool:
    """Offer a function under the suite's name."""
    described = (run.__doc__ or name).splitlines()[0]
    return Tool(name, name, described, READS, schema, dict, run)


JSON_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def static_text(call: ToolCall) -> Contents:
    """Hold a text."""
    del call
    return {"text": "This is the content of the static text resource."}


async def static_binary(call: ToolCall) -> Contents:
    """Hold an image."""
    del call
    return {"blob": PNG}


async def data_of(call: ToolCall, variables: Mapping[str, str]) -> Contents:
    """Hold what the address says."""
    del call
    found = {"id": variables["id"], "templateTest": True, "data": f"Data for ID: {variables['id']}"}
    return {"text": json.dumps(found)}


async def ids(call: ToolCall, typed: str) -> Sequence[str]:
    """Propose numbers."""
    del call
    return [one for one in ("1", "12", "123") if one.startswith(typed)]


def user(*blocks: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make messages of a user."""
    return [{"role": "user", "content": block} for block in blocks]


async def simple_prompt(call: ToolCall, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    """A prompt without arguments."""
    del call, given
    return user(text("This is a simple prompt for testing."))


async def prompt_of(call: ToolCall, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    """A prompt with two arguments."""
    del call
    return user(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))


async def prompt_with_resource(
    call: ToolCall, given: Mapping[str, str]
) -> Sequence[Mapping[str, Any]]:
    """A prompt that holds a resource."""
    del call
    held = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
    return user(held, text("Please process the embedded resource above."))


async def prompt_with_image(
    call: ToolCall, given: Mapping[str, str]
) -> Sequence[Mapping[str, Any]]:
    """A prompt that holds an image."""
    del call, given
    return user(IMAGE, text("Please analyze the image above."))


async def prompt_asking(
    call: ToolCall, given: Mapping[str, str]
) -> Sequence[Mapping[str, Any]] | InputRequired:
    """A prompt that asks for its context first."""
    del given
    answered = answer_to(call, "user_context", ELICIT)
    if answered is None:
        asked = form("What context should the prompt use?", context="string")
        return InputRequired({"user_context": asked})
    return user(text(f"Use this context: {answered.get('content', {}).get('context')}"))


def fixtures() -> Registry:
    """Offer everything the suite asks for."""
    return Registry.of(
        tool("test_simple_text", simple_text),
        tool("test_image_content", image),
        tool("test_audio_content", audio),
        tool("test_embedded_resource", resource),
        tool("test_multiple_content_types", mixed),
        tool("test_tool_with_logging", logging),
        tool("test_logging_tool", logging),
        tool("test_tool_with_progress", progress),
        tool("test_streaming_elicitation", progress),
        tool("test_error_handling", failing),
        tool("test_missing_capability", missing_capability),
        tool("test_input_required_result_elicitation", greet),
        tool("test_input_required_result_sampling", ask_model),
        tool("test_input_required_result_list_roots", list_roots),
        tool("test_input_required_result_request_state", request_state),
        tool("test_input_required_result_multiple_inputs", multiple),
        tool("test_input_required_result_multi_round", rounds),
        tool("test_input_required_result_tampered_state", request_state),
        tool("test_input_required_result_capabilities", by_capability),
        tool("json_schema_2020_12_tool", simple_text, JSON_SCHEMA),
        OfferedResource(
            "test://static-text", "static-text", "Text", "A text.", "text/plain", static_text
        ),
        OfferedResource(
            "test://static-binary",
            "static-binary",
            "Image",
            "An image.",
            "image/png",
            static_binary,
        ),
        OfferedResource(
            "test://watched-resource", "watched", "Watched", "A text.", "text/plain", static_text
        ),
        Template(
            "test://template/{id}/data",
            "template",
            "Data",
            "Data by id.",
            "application/json",
            data_of,
            completions={"id": ids},
        ),
        Prompt("test_simple_prompt", "Simple", "A prompt.", simple_prompt),
        Prompt(
            "test_prompt_with_arguments",
            "Arguments",
            "A prompt with arguments.",
            prompt_of,
            (Argument("arg1", "The first."), Argument("arg2", "The second.")),
            completions={"arg1": ids},
        ),
        Prompt(
            "test_prompt_with_embedded_resource",
            "OfferedResource",
            "A prompt with a resource.",
            prompt_with_resource,
            (Argument("resourceUri", "Its address."),),
        ),
        Prompt("test_prompt_with_image", "Image", "A prompt with an image.", prompt_with_image),
        Prompt("test_input_required_result_prompt", "Asking", "A prompt that asks.", prompt_asking),
    )
