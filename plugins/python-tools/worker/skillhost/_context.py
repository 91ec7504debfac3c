"""What a handler gets beside its arguments."""

import asyncio
import os
import threading
from urllib.parse import unquote, urlparse


class ToolInvocation:
    """One call. Its fields can be read as keys, too: invocation["session_id"]."""

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
        """Whether nobody waits for the answer any more. Long work looks now and then, and stops."""
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
    """The way back to the host while a call runs."""

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
        """Says that the tool has written a file, and what it holds now."""
        self._link.tell("file_changed", {"path": os.path.abspath(os.path.join(self.workspace_root, os.fspath(path))), "content": str(content)})

    def sync_file_to_server(self, path, content):
        self.file_changed(path, content)

    def open_document(self, uri, language, text):
        """Says what a document holds, such as an editor's."""
        path = unquote(urlparse(uri).path) if uri.startswith("file:") else uri
        self.file_changed(path, text)

    def progress(self, message=None, progress=None, total=None):
        """Says how far the call is. Its deadline begins anew."""
        given = {"message": message, "progress": progress, "total": total}
        self._link.tell("progress", {key: value for key, value in given.items() if value is not None})

    def call_tool(self, name, arguments=None):
        """Calls another tool of the session and gives its result as a dict. To be awaited in a coroutine; elsewhere it blocks."""
        return self._ask("call_tool", {"name": name, "arguments": {} if arguments is None else arguments})

    def ask(self, kind, data):
        """Asks whoever is attached to the session, such as its user. Waits as call_tool does."""
        return self._ask("ask", {"kind": kind, "data": data})

    def _ask(self, what, data):
        answer = self._link.ask(what, data)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return answer.result()
        return asyncio.wrap_future(answer, loop=loop)
