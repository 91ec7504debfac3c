"""Parses a tool module without running it: python3 -I -S -B _inspect.py <file>. Prints what it shows as JSON."""

import ast
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from skillhost._define import option_fault  # noqa: E402
from skillhost._loading import _defines_tools  # noqa: E402

_max_bytes = 4 * 1024 * 1024


def inspect(file):
    with open(file, "rb") as source:
        data = source.read(_max_bytes + 1)
    if len(data) > _max_bytes:
        return {"fault": {"kind": "threw", "message": f"the file is larger than {_max_bytes} bytes"}}
    try:
        tree = ast.parse(data, file)
    except SyntaxError as error:
        return {"fault": {"kind": "syntax", "message": str(error.msg), "line": error.lineno, "column": error.offset}}
    except (ValueError, RecursionError, MemoryError) as error:
        return {"fault": {"kind": "threw", "message": f"{type(error).__name__}: {error}"}}
    if not _defines_tools(tree):
        return {"tools": [], "isComputed": False}
    tools = [tool for node in tree.body for tool in _tools_in(node)]
    faults = [tool["fault"] for tool in tools if "fault" in tool]
    if faults:
        return {"fault": faults[0]}
    return {"tools": [tool for tool in tools if tool["name"]], "isComputed": not tools or any(not tool["name"] for tool in tools)}


def _tools_in(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for decorator in node.decorator_list:
            if _is_define_tool(decorator):
                yield _tool(node.name, ast.get_docstring(node), node.lineno)
            elif isinstance(decorator, ast.Call) and _is_define_tool(decorator.func):
                yield _called(decorator, node.name, ast.get_docstring(node))
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if isinstance(node.value, ast.Call) and _is_define_tool(node.value.func):
            yield _called(node.value, None, None)
        elif any(isinstance(target, ast.Name) and target.id == "SCHEMA" for target in targets):
            yield _schema(node)


def _is_define_tool(node):
    return (isinstance(node, ast.Name) and node.id == "define_tool") or (isinstance(node, ast.Attribute) and node.attr == "define_tool")


def _called(call, name, document):
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    unknown = option_fault(list(named))
    if unknown is not None:
        return {"name": None, "fault": {"kind": "threw", "message": f"TypeError: {unknown}", "line": call.lineno, "column": call.col_offset + 1}}
    given = named.get("name", call.args[0] if call.args else None)
    has_spread = any(keyword.arg is None for keyword in call.keywords)
    # The name of a passed function is known only at run time.
    known = name if given is None and not has_spread else _text(given)
    return _tool(known, _text(named.get("description")) or document, call.lineno)


def _schema(node):
    if not isinstance(node.value, ast.Dict):
        return _tool(None, None, node.lineno)
    fields = {_text(key): value for key, value in zip(node.value.keys, node.value.values)}
    return _tool(_text(fields.get("name")), _text(fields.get("description")), node.lineno)


def _tool(name, description, line):
    return {"name": name, "description": description, "line": line}


def _text(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


if __name__ == "__main__":
    print(json.dumps(inspect(sys.argv[1])))
