"""A help desk over the Copilot protocol with Python's standard library only.

It reads every message as the generated readers of the official Python SDK do, which raise on the first value that breaks
the schema: a message that does so ends this program with a traceback.

    python3 help_desk.py <folder of the schemas> <working directory> <command of the runtime>...
"""

import json
import subprocess
import sys
from itertools import count

from strict_reader import Contract


class Runtime:
    """A client of one runtime over stdio, with the framing of the Language Server Protocol."""

    def __init__(self, contract, command):
        self.contract = contract
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ids = count(1)
        self.methods = {}
        self.answers = {}
        self.events = []
        self.on_event = lambda session_id, event: None

    def request(self, method, **params):
        """Sends a request, and reads messages until its answer is there."""
        number = self.send(method, params)
        while number not in self.answers:
            self.take()
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        self.contract.read_result(method, answer.get("result"))
        return answer.get("result")

    def send(self, method, params):
        number = next(self.ids)
        self.write({"id": number, "method": method, "params": params})
        return number

    def write(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def take(self):
        """Reads one message."""
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length == 0:
            raise EOFError("The runtime has ended.")
        message = json.loads(self.process.stdout.read(length))
        method = message.get("method")
        if method is None:
            self.answers[message["id"]] = message
        elif method == "session.event":
            session_id, event = message["params"]["sessionId"], message["params"]["event"]
            self.contract.read_event(event)
            self.events.append(event)
            self.on_event(session_id, event)
        elif "id" in message:
            self.contract.read_params(method, message["params"])
            self.write({"id": message["id"], "result": {}})

    def wait_for(self, event_type):
        """Reads messages until the next event of a type."""
        before = len(self.events)
        while not any(event["type"] == event_type for event in self.events[before:]):
            self.take()

    def stop(self):
        self.request("runtime.shutdown")
        self.process.stdin.close()
        return self.process.wait()


def main(schemas, folder, command):
    runtime = Runtime(Contract(schemas), command)
    tickets = {"17": "The printer on floor 2 is out of paper."}

    def on_event(session_id, event):
        data = event["data"]
        if event["type"] == "permission.requested":
            request = data["permissionRequest"]
            print("asked for", request["kind"], request.get("fullCommandText", request.get("toolName", "")))
            runtime.send(
                "session.permissions.handlePendingPermissionRequest",
                {"sessionId": session_id, "requestId": data["requestId"], "result": {"kind": "approve-once"}},
            )
        elif event["type"] == "external_tool.requested":
            runtime.send(
                "session.tools.handlePendingToolCall",
                {"sessionId": session_id, "requestId": data["requestId"], "result": tickets[data["arguments"]["id"]]},
            )
        elif event["type"] == "tool.execution_complete":
            print("finished", data["toolCallId"], data["success"])
        elif event["type"] == "assistant.message" and data["content"]:
            print("answer:", data["content"])

    runtime.on_event = on_event
    ticket = {
        "name": "get_ticket",
        "description": "Returns the text of a ticket.",
        "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    }
    options = {"model": "claude-sonnet-4.5", "tools": [ticket], "requestPermission": True, "workingDirectory": folder}
    print("protocol", runtime.request("connect")["protocolVersion"])
    session_id = runtime.request("session.create", **options)["sessionId"]
    runtime.request("session.send", sessionId=session_id, prompt="Look at ticket 17, and list the files here.")
    runtime.wait_for("session.idle")
    runtime.request("session.destroy", sessionId=session_id)
    runtime.request("session.resume", sessionId=session_id, **options)
    events = runtime.request("session.getMessages", sessionId=session_id)["events"]
    types = [event["type"] for event in events]
    print("resumed with", types.count("user.message"), "message and", types.count("tool.execution_complete"), "results")
    runtime.request("session.send", sessionId=session_id, prompt="Thanks.")
    runtime.wait_for("session.idle")
    print("ended with", runtime.stop())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
