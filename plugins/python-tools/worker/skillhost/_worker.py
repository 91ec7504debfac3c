"""The process that runs the Python tools of one skill.

It reads and writes one JSON object per line, on its original standard input and output. Output of modules goes to
standard error, so that it cannot get between the lines.
"""

import asyncio
import concurrent.futures
import inspect
import itertools
import json
import os
import sys
import threading
import traceback

from ._context import ToolContext, ToolInvocation
from ._loading import Modules, fault_of, frames_of
from ._results import NotJson, encode

_max_threads = 32


class Channel:
    """The line protocol with the host."""

    def __init__(self):
        self._in = os.fdopen(os.dup(0), "rb")
        self._out = os.dup(1)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)

    def lines(self):
        return self._in

    def send(self, message):
        data = encode(message)
        # A process that a tool forks has a copy of this object and must not answer for its parent.
        if os.getpid() != self._pid:
            return
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self._out, view):]


class Link:
    """The messages of one call to the host."""

    def __init__(self, worker, call_id):
        self._worker = worker
        self._call = call_id

    def notify(self, what, data):
        self._worker.channel.send({"call": self._call, "notify": what, "data": data})

    def ask(self, what, data):
        number, answer = self._worker.expect()
        self._worker.channel.send({"call": self._call, "ask": number, "what": what, "data": data})
        return answer


class Worker:
    def __init__(self, channel):
        self.channel = channel
        self._modules = None
        self._tools = {}
        self._running = {}
        self._in_threads = set()
        self._asked = {}
        self._numbers = itertools.count(1)
        self._threads = concurrent.futures.ThreadPoolExecutor(_max_threads, "tool")
        self._loop = asyncio.new_event_loop()

    def run(self):
        asyncio.set_event_loop(self._loop)
        threading.Thread(target=self._read, daemon=True).start()
        self.channel.send({"ready": {"version": sys.version.split()[0], "executable": sys.executable}})
        self._loop.run_forever()

    def expect(self):
        number, answer = next(self._numbers), concurrent.futures.Future()
        self._asked[number] = answer
        return number, answer

    def _read(self):
        for line in self.channel.lines():
            message = json.loads(line)
            if message["do"] == "answer":
                # On this thread, since the thread of the loop may be waiting for it.
                self._answer(message)
            else:
                self._loop.call_soon_threadsafe(self._take, message)
        # The host has ended: exit even while a tool is running.
        os._exit(0)

    def _answer(self, message):
        answer = self._asked.pop(message["ask"], None)
        if answer is None or answer.cancelled():
            return
        if "problem" in message:
            answer.set_exception(RuntimeError(message["problem"]))
        else:
            answer.set_result(message.get("value"))

    def _take(self, message):
        kind = message["do"]
        if kind == "load":
            self._load(message)
        elif kind == "call":
            invocation = ToolInvocation(message["invocation"])
            self._running[message["id"]] = (self._loop.create_task(self._call(message, invocation)), invocation)
        elif kind == "cancel":
            self._cancel(message["id"])

    def _load(self, message):
        file = message["file"]
        if self._modules is None:
            self._modules = Modules(message["folder"], message["sources"], message.get("digests"))
        try:
            tools = self._modules.load(file)
        except BaseException as error:
            traceback.print_exc()
            self._reply(message["id"], {"fault": fault_of(error, file, self._modules)})
            return
        self._tools[file] = tools
        value = {"tools": [tool.definition for tool in tools], "files": self._modules.files(), "sources": self._modules.sources()}
        self._reply(message["id"], {"value": value})

    async def _call(self, message, invocation):
        number = message["id"]
        try:
            function, bind, result_of = self._tools[message["file"]][message["index"]].call
            value = await self._invoke(function, bind, (message["args"], invocation, ToolContext(invocation, Link(self, number))), number)
            self._reply(number, {"value": result_of(value)})
        except asyncio.CancelledError:
            self._reply(number, {"fault": {"kind": "cancelled", "message": "The call was cancelled."}})
        except BaseException as error:
            self._reply(number, {"fault": self._describe(error)})
        finally:
            self._running.pop(number, None)

    async def _invoke(self, function, bind, given, number):
        positional, named = bind(*given)
        if inspect.iscoroutinefunction(function):
            return await function(*positional, **named)
        self._in_threads.add(number)
        try:
            value = await self._loop.run_in_executor(self._threads, lambda: function(*positional, **named))
        finally:
            self._in_threads.discard(number)
        return await value if inspect.isawaitable(value) else value

    def _describe(self, error):
        if type(error).__name__ == "ValidationError" and hasattr(error, "errors"):
            lines = [f'{".".join(str(part) for part in item["loc"])}: {item["msg"]}' for item in error.errors()]
            return {"kind": "arguments", "message": "; ".join(lines)}
        traceback.print_exception(type(error), error, error.__traceback__)
        return {"kind": "threw", "message": f"{type(error).__name__}: {error}", "frames": frames_of(error, self._modules)}

    def _cancel(self, number):
        task, invocation = self._running.get(number, (None, None))
        if task is None:
            return
        invocation._ended.set()
        # A thread cannot be stopped from here: the call ends when the function returns or the host ends the process.
        if number not in self._in_threads:
            task.cancel()

    def _reply(self, number, answer):
        try:
            self.channel.send({"id": number, **answer})
        except NotJson as problem:
            self.channel.send({"id": number, "fault": {"kind": "not-json", "message": str(problem)}})


def main():
    channel = Channel()
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)
    Worker(channel).run()
