"""What became of a plan that the chat showed."""

from typing import Any, Literal

from tolsey.http.answers.base import ApiAnswer, Omittable


class ChatPlanAnswer(ApiAnswer):
    """What became of a plan: carried out once, however often it is confirmed; `detail` says why it was not."""

    status: Literal["applied", "replayed", "rejected", "unknown", "planned", "declined"]
    operation_id: Omittable[str] = None
    before: Omittable[dict[str, Any]] = None
    after: Omittable[dict[str, Any]] = None
    code: Omittable[str] = None
    detail: Omittable[str] = None
