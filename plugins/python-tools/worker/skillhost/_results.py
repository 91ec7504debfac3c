"""Converts the return value of a handler to JSON for the host."""

import base64
import dataclasses
import datetime
import enum
import json
import pathlib
import uuid

_wire_names = {
    "text_result_for_llm": "textResultForLlm",
    "result_type": "resultType",
    "binary_results_for_llm": "binaryResultsForLlm",
    "session_log": "sessionLog",
    "tool_telemetry": "toolTelemetry",
    "tool_references": "toolReferences",
    "mime_type": "mimeType",
}

# The limit of a line. The host cuts results for models far below it.
_max_bytes = 32 * 1024 * 1024


@dataclasses.dataclass
class ToolResult:
    """A complete result. result_type: success, failure, rejected, denied or timeout."""

    text_result_for_llm: str = ""
    result_type: str = "success"
    error: "str | None" = None
    binary_results_for_llm: "list | None" = None
    session_log: "str | None" = None
    tool_telemetry: "dict | None" = None
    tool_references: "list | None" = None


class NotJson(TypeError):
    """A result that cannot be converted to JSON."""


def encode(message):
    """One line of the protocol."""
    try:
        line = json.dumps(message, default=_plain, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise NotJson(f"The result cannot be given as JSON: {problem}") from None
    data = line.encode("utf-8", "replace")
    if len(data) > _max_bytes:
        raise NotJson(f"The result is {len(data)} bytes long; {_max_bytes} are allowed.")
    return data + b"\n"


def result_of(value):
    """A tool result object with its wire names; any other value unchanged."""
    if isinstance(value, ToolResult):
        value = {key: item for key, item in dataclasses.asdict(value).items() if item is not None}
    if isinstance(value, dict) and "text_result_for_llm" in value:
        value = _renamed(value)
        if isinstance(value.get("binaryResultsForLlm"), list):
            value["binaryResultsForLlm"] = [_renamed(item) if isinstance(item, dict) else item for item in value["binaryResultsForLlm"]]
    return value


def _renamed(value):
    return {_wire_names.get(key, key): item for key, item in value.items()}


def result_of_execute(value):
    """The result formats of an `execute` module: a list of text parts, or an outcome with a message."""
    if isinstance(value, list) and all(_is_part(part) for part in value):
        return "\n".join(part["value"] for part in value)
    if isinstance(value, dict) and value.get("result") in ("success", "error") and set(value) <= {"result", "message"}:
        is_error = value["result"] == "error"
        text = value.get("message") or ("Tool reported an error without saying what went wrong." if is_error else "success")
        return {"textResultForLlm": str(text), "resultType": "failure" if is_error else "success"}
    return result_of(value)


def _is_part(part):
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("value"), str)


def _plain(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, (pathlib.PurePath, uuid.UUID)):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in it")
