"""Files on their way into a shop: put where the platform takes them from, which changes nothing in the shop."""

from typing import Final

from tolsey.actors.ports import (
    PlatformDenied,
    PlatformDocument,
    PlatformUnreachable,
    Shop,
    Upload,
)
from tolsey.http.clients.commerce import shapes
from tolsey.http.clients.commerce.bodies import TransientFault, fetch
from tolsey.http.clients.commerce.calls import CallBudget, Calls
from tolsey.http.clients.commerce.edits.way import tail

STAGE: Final = """
mutation StageUploads($input: [StagedUploadInput!]!) {
  stagedUploadsCreate(input: $input) {
    stagedTargets { url resourceUrl parameters { name value } }
    userErrors { field message }
  }
}
"""
TAKEN: Final = frozenset({200, 201, 204})
ANSWER_BYTES: Final = 64 * 1024
CLIENT_ERRORS: Final = range(400, 500)


def told(upload: Upload) -> PlatformDocument:
    """Say what is sent to be told where a file is put."""
    asked = {
        "filename": upload.filename,
        "mimeType": upload.mime,
        "resource": "IMAGE",
        "httpMethod": "PUT",
        "fileSize": str(len(upload.content)),
    }
    return PlatformDocument(document=STAGE, variables={"input": [asked]})


async def stage(calls: Calls, shop: Shop, upload: Upload) -> str:
    """Put a file where the platform takes it from, and answer where that is."""
    sent = told(upload)
    answer = await calls.ask(shop, sent.document, sent.variables, repeatable=True)
    payload = shapes.mapping(answer.get("stagedUploadsCreate"), "staged uploads")
    errors = tail(payload.get("userErrors"), "user errors")
    if errors:
        raise PlatformDenied(400, str(errors[0].get("message")))
    target = tail(payload.get("stagedTargets"), "staged targets")[0]
    url = shapes.text(target.get("url"), "the address of an upload")
    if not calls.address.may_download(url):
        raise PlatformUnreachable("Shopify's upload URL isn't allowed. Contact support.")
    parameters = {
        shapes.text(one.get("name"), "a parameter"): shapes.text(one.get("value"), "a parameter")
        for one in tail(target.get("parameters"), "parameters")
    }
    await _put(calls, url, upload, parameters)
    return shapes.text(target.get("resourceUrl"), "the address of a resource")


async def _put(calls: Calls, url: str, upload: Upload, parameters: dict[str, str]) -> None:
    """Send the bytes. The host is not the platform's API: no token goes there."""
    request = calls.http.build_request(
        "PUT", url, content=upload.content, headers={"Content-Type": upload.mime, **parameters}
    )
    limits = calls.limits
    patience = CallBudget(
        calls.pace, limits, attempts=limits.attempts, seconds=limits.deadline_seconds
    )
    while True:
        try:
            seconds = max(0.1, min(limits.attempt_seconds, patience.seconds_left))
            reply = await fetch(calls.http, request, limit_bytes=ANSWER_BYTES, seconds=seconds)
        except TransientFault as fault:
            await patience.after(fault)
            continue
        if reply.status in TAKEN:
            return
        if reply.status in CLIENT_ERRORS:
            raise PlatformDenied(
                400,
                f"Shopify's file storage returned status {reply.status}. Try again in a minute.",
            )
        await patience.after(
            TransientFault(
                f"Shopify's file storage returned status {reply.status}. Try again in a minute."
            )
        )
