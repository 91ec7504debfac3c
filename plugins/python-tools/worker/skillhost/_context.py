"""The context of a call: what a handler receives in addition to its arguments."""

import asyncio
import os
import threading
from urllib.parse import unquote, urlparse


class ToolInvocation:
    """One call. Its fields can also be read as keys: invocation["session_id"]."""

    __slots__ = ("session_id", "tool_call_id", "tool_name", "arguments", "working_directory", "traceparent", "tracestate", "_ended")

    def __init__(self, data):
        self.session_id = data.get("sessionId", "")
        self.tool_call_id = data.get("toolCallId", "")
        self.tool_name = data.get("toolName", "")
        self.arguments = data.get("arguments", {})
        self.working_directory = data.get("workingDirectory", "")
        self.traceparent = data.get("traceparent")
        self.tracestate = data.get("tracestate")
        self._ended = threading.Event()

    @property
    def cancelled(self):
        """Whether the call was cancelled. Long-running work should check it regularly and stop."""
        return self._ended.is_set()

    def __getitem__(self, key):
        if key.startswith("_") or key not in self.__slots__:
            raise KeyError(key)
        return getattr(self, key)

    def get(self, key, default=None):
        try:
            return self[key]
        except KeyError:
            return default


class ToolContext:
    """Messages to the host while a call runs."""

    def __init__(self, invocation, link):
        self.invocation = invocation
        self._link = link

    @property
    def workspace_root(self):
        return self.invocation.working_directory

    @property
    def working_directory(self):
        return self.invocation.working_directory

    def file_changed(self, path, content):
        """Reports that the tool has written a file, with its new content."""
        self._link.notify("file_changed", {"path": os.path.abspath(os.path.join(self.workspace_root, os.fspath(path))), "content": str(content)})

    def sync_file_to_server(self, path, content):
        self.file_changed(path, content)

    def open_document(self, uri, language, text):
        """Reports the content of a document, such as one of an editor."""
        path = unquote(urlparse(uri).path) if uri.startswith("file:") else uri
        self.file_changed(path, text)

    def progress(self, message=None, progress=None, total=None):
        """Reports the progress of the call and restarts its deadline."""
        given = {"message": message, "progress": progress, "total": total}
        self._link.notify("progress", {key: value for key, value in given.items() if value is not None})

    def call_tool(self, name, arguments=None):
        """Calls another tool of the session and returns its result as a dict. Await it in a coroutine; elsewhere it blocks."""
        return self._ask("call_tool", {"name": name, "arguments": {} if arguments is None else arguments})

    def ask(self, kind, data):
        """Asks the user of the session. Waits like call_tool."""
        return self._ask("ask", {"kind": kind, "data": data})

    def _ask(self, what, data):
        answer = self._link.ask(what, data)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return answer.result()
        return asyncio.wrap_future(answer, loop=loop)
