"""Reads messages of the Copilot protocol as the generated clients of the official SDKs do.

The readers are built from the schemas of the official runtime. A value is refused where a generated client raises:
a required member is missing or null, a value has another type than the schema says, an enum has an unknown value,
a union has an unknown discriminator, a date, UUID or address cannot be parsed, or an integer does not fit in 64 bits
(Go and .NET). Unknown members are ignored, as they are by all of these clients.

    python3 strict_reader.py <folder of the schemas> <file with frames>...

A frame is a line of JSON: {"event": ...}, {"result": ..., "method": ...} or {"params": ..., "method": ...}.
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from urllib.parse import urlparse
from uuid import UUID


class Violation(Exception):
    """A generated client could not read this value."""


def fail(path, problem):
    raise Violation(f"{path or '/'}: {problem}")


# Results that the official runtime sends although its schema does not allow them. The generated clients read them: Python takes
# a missing agent as None, and the types of TypeScript have it as optional.
CUSTOMARY = {"session.agent.getCurrent": {}}


class Contract:
    """The readers of all methods and events."""

    def __init__(self, folder):
        self.api = json.loads((Path(folder) / "api.schema.json").read_text("utf-8"))
        self.events = json.loads((Path(folder) / "session-events.schema.json").read_text("utf-8"))
        self.documents = {"": self.api, "session-events.schema.json": self.events}
        self.methods = {}
        for group in ("server", "session", "clientSession", "clientGlobal"):
            self._find_methods(self.api[group])
        definitions = self.events["definitions"]
        self.event_types = {}
        for entry in definitions["SessionEvent"]["anyOf"]:
            schema = definitions[entry["$ref"].split("/")[-1]]
            self.event_types[schema["properties"]["type"]["const"]] = schema

    def _find_methods(self, group):
        if isinstance(group.get("rpcMethod"), str):
            self.methods[group["rpcMethod"]] = group
            return
        for member in group.values():
            if isinstance(member, dict):
                self._find_methods(member)

    def read_event(self, event):
        """An event of a type that the schema does not know is kept as it is: every client has a case for it."""
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            fail("/type", "is missing")
        schema = self.event_types.get(event["type"])
        if schema is not None:
            self.read(schema, event, self.events, "")
        return schema is not None

    def read_result(self, method, value):
        if method in CUSTOMARY and value == CUSTOMARY[method]:
            return
        if method in ("session.getMessages", "session.eventLog.read"):
            for event in value["events"]:
                self.read_event(event)
            value = {**value, "events": []}
        group = self.methods.get(method)
        if group is not None and group.get("result") is not None:
            self.read(group["result"], value, self.api, "")

    def read_params(self, method, value):
        group = self.methods.get(method)
        if group is not None and group.get("params") is not None:
            self.read(group["params"], value, self.api, "")

    def read(self, schema, value, document, path):
        if schema is True or schema == {} or schema.get("x-opaque-json") or schema.get("not") is not None:
            return
        if "$ref" in schema:
            target, document = self._resolve(schema["$ref"], document)
            self.read(target, value, document, path)
            return
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            self._read_union(branches, value, document, path)
            return
        if "const" in schema:
            if value != schema["const"]:
                fail(path, f"{json.dumps(value)} is not {json.dumps(schema['const'])}")
            return
        if "enum" in schema:
            if value not in schema["enum"]:
                fail(path, f"{json.dumps(value)} is not one of {', '.join(map(str, schema['enum']))}")
            return
        kinds = schema.get("type")
        if kinds is None:
            return
        if isinstance(kinds, list):
            self._read_union([{**schema, "type": kind} for kind in kinds], value, document, path)
        else:
            getattr(self, f"_read_{kinds}")(schema, value, document, path)

    def _resolve(self, ref, document):
        file, _, pointer = ref.partition("#")
        if file:
            document = self.documents[file]
        target = document
        for key in pointer.strip("/").split("/"):
            target = target[key.replace("~1", "/").replace("~0", "~")]
        return target, document

    def _read_union(self, branches, value, document, path):
        if value is None and any(branch.get("type") == "null" for branch in branches):
            return
        tag = self._discriminator(branches, document)
        if tag is not None and isinstance(value, dict):
            name, cases = tag
            case = cases.get(value.get(name)) if isinstance(value.get(name), str) else None
            if case is None:
                fail(f"{path}/{name}", f"{json.dumps(value.get(name))} is not a known discriminator")
            self.read(case[0], value, case[1], path)
            return
        problems = []
        for branch in branches:
            try:
                self.read(branch, value, document, path)
                return
            except Violation as violation:
                problems.append(str(violation))
        fail(path, f"no case of the union fits: {'; '.join(problems[:3])}")

    def _discriminator(self, branches, document):
        resolved = []
        for branch in branches:
            if branch.get("type") == "null":
                continue
            inner = document
            while "$ref" in branch:
                branch, inner = self._resolve(branch["$ref"], inner)
            resolved.append((branch, inner))
        for name in ("kind", "type", "status", "action"):
            cases = {}
            for branch, inner in resolved:
                const = (branch.get("properties") or {}).get(name, {}).get("const")
                if not isinstance(const, str) or name not in branch.get("required", ()) or const in cases:
                    break
                cases[const] = (branch, inner)
            else:
                if len(cases) > 1:
                    return name, cases
        return None

    def _read_object(self, schema, value, document, path):
        if not isinstance(value, dict):
            fail(path, f"{json.dumps(value)[:60]} is not an object")
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            # A member that may be null is read as null where it is missing.
            if name not in value and not self._takes_null(properties.get(name, True), document):
                fail(f"{path}/{name}", "is missing")
        for name, member in value.items():
            if name not in properties:
                rest = schema.get("additionalProperties")
                if isinstance(rest, dict):
                    self.read(rest, member, document, f"{path}/{name}")
            # Every generated client reads null as absent where the member is optional.
            elif member is not None or name in schema.get("required", ()):
                self.read(properties[name], member, document, f"{path}/{name}")

    def _takes_null(self, schema, document):
        try:
            self.read(schema, None, document, "")
            return True
        except Violation:
            return False

    def _read_array(self, schema, value, document, path):
        if not isinstance(value, list):
            fail(path, f"{json.dumps(value)[:60]} is not an array")
        for index, item in enumerate(value):
            self.read(schema.get("items", True), item, document, f"{path}/{index}")

    def _read_string(self, schema, value, _document, path):
        if not isinstance(value, str):
            fail(path, f"{json.dumps(value)[:60]} is not a string")
        parse = formats.get(schema.get("format"))
        if parse is None:
            return
        try:
            parse(value)
        except ValueError as error:
            fail(path, f"{value[:60]!r} is not a {schema['format']}: {error}")

    def _read_integer(self, _schema, value, _document, path):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or (isinstance(value, float) and not value.is_integer()):
            fail(path, f"{json.dumps(value)[:60]} is not an integer")
        # An exponent in the text is a number with a fraction to encoding/json of Go.
        if isinstance(value, float) or not -(2**63) <= value < 2**63:
            fail(path, f"{value} is not an integer of 64 bits")

    def _read_number(self, _schema, value, _document, path):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            fail(path, f"{json.dumps(value)[:60]} is not a number")

    def _read_boolean(self, _schema, value, _document, path):
        if not isinstance(value, bool):
            fail(path, f"{json.dumps(value)[:60]} is not a boolean")

    def _read_null(self, _schema, value, _document, path):
        # Clients take what they do not read, such as an empty object for "no result".
        if value is not None and value != {}:
            fail(path, f"{json.dumps(value)[:60]} is not null")


def read_date(text):
    # Go reads RFC 3339 only: with a "T", seconds and an offset.
    if "T" not in text or not (text.endswith("Z") or text[-6] in "+-"):
        raise ValueError("it is not in the form of RFC 3339")
    datetime.fromisoformat(text.replace("Z", "+00:00"))


def read_address(text):
    if not urlparse(text).scheme:
        raise ValueError("it has no scheme")


formats = {"date-time": read_date, "uuid": UUID, "uri": read_address}


def main(folder, files):
    contract = Contract(folder)
    counts = {"events": 0, "results": 0, "requests": 0}
    unknown, violations = {}, {}
    for file in files:
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                frame = json.loads(line)
                try:
                    if "event" in frame:
                        counts["events"] += 1
                        name = f"event {frame['event'].get('type')}"
                        if not contract.read_event(frame["event"]):
                            unknown[name] = unknown.get(name, 0) + 1
                    elif "params" in frame:
                        counts["requests"] += 1
                        name = f"request {frame['method']}"
                        contract.read_params(frame["method"], frame["params"])
                    else:
                        counts["results"] += 1
                        name = f"result of {frame['method']}"
                        contract.read_result(frame["method"], frame.get("result"))
                except Violation as violation:
                    text = f"{name}: {violation}"
                    violations[text] = violations.get(text, 0) + 1
    for text, times in sorted(violations.items()):
        print(f"{text} ({times} times)")
    for name, times in sorted(unknown.items()):
        print(f"{name} is unknown to the schemas ({times} times)")
    total = sum(violations.values())
    print(f"{counts['events']} events, {counts['results']} results and {counts['requests']} requests were read, {total} violations.")
    return 1 if violations or unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
