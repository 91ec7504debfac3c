"""Tool modules: what they define, and which files they are made of."""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import traceback
import types

from ._checked import CheckedFiles, Untrusted
from ._context import ToolContext, ToolInvocation
from ._define import Tool, define_tool
from ._results import ToolResult, result_of, result_of_execute

# Names that tool modules for other hosts import.
_shims = {
    "copilot.tools": {"define_tool": define_tool, "Tool": Tool, "ToolInvocation": ToolInvocation, "ToolResult": ToolResult},
    "tools._base": {"ToolContext": ToolContext},
}


class LoadedTool:
    def __init__(self, definition, call):
        self.definition = definition
        self.call = call


class Modules:
    """The modules of one skill in this process.

    `sources` replace the contents of the files: a process that replaces another one runs the same texts, even if the
    files have changed. With `digests`, only files of the folder that have one are used.
    """

    def __init__(self, folder, sources, digests=None):
        self.folder = os.path.realpath(folder)
        self._given = folder
        self._count = 0
        self._sources = sources
        self._read = importlib.machinery.SourceFileLoader.get_data
        self._checked = None if digests is None else CheckedFiles(folder, digests, sources)
        if self._checked is None:
            importlib.machinery.SourceFileLoader.get_data = lambda loader, path: self._data(loader, path)
        else:
            self._checked.install()
        sys.meta_path.insert(0, _Shims(first=True))
        sys.meta_path.append(_Shims(first=False))
        sys.path.insert(0, folder)

    def load(self, file):
        """The tools of a file. A file that defines no tools is not run."""
        tree = ast.parse(self._data(importlib.machinery.SourceFileLoader("", file), file), file)
        if not _defines_tools(tree):
            return []
        directory = os.path.dirname(file)
        if directory not in sys.path:
            sys.path.insert(1, directory)
        return _tools_of(self._run(file))

    def _data(self, loader, path):
        if self._checked is not None:
            return self._checked.data(path)
        if not path.endswith(".py") or not _is_inside(os.path.realpath(path), self.folder):
            return self._read(loader, path)
        if path not in self._sources:
            self._sources[path] = self._read(loader, path).decode("latin-1")
        return self._sources[path].encode("latin-1")

    def sources(self):
        """Path and text of the files read so far, byte for byte as Latin-1."""
        return dict(self._sources)

    def _run(self, file):
        name = self._name_of(file)
        loader = None if self._checked is None else self._checked.loader(name, file)
        spec = importlib.util.spec_from_file_location(name, file, loader=loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module

    def _name_of(self, file):
        parts = os.path.relpath(os.path.splitext(file)[0], self._given).split(os.sep)
        name = ".".join(parts)
        if all(part.isidentifier() for part in parts) and name not in sys.modules:
            return name
        self._count += 1
        return f"_skill_tools_{self._count}"

    def files(self):
        """Every file of the skill that has been imported so far."""
        found = set()
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and self.owns(path):
                found.add(path)
        return sorted(found)

    def owns(self, path):
        """Whether a file belongs to the skill."""
        if self._checked is not None:
            return self._checked.is_file(path)
        return _is_inside(os.path.realpath(path), self.folder)

    def candidates(self, name, file):
        """The paths where a missing module was searched."""
        path = name.replace(".", os.sep)
        roots = {self._given, os.path.dirname(file)}
        return [os.path.join(root, end) for root in sorted(roots) for end in (path + ".py", os.path.join(path, "__init__.py"))]


def _is_inside(path, folder):
    return path.startswith(folder + os.sep)


def _defines_tools(tree):
    """Whether the text contains SCHEMA and execute, or define_tool. Any other script must not run."""
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    if {"SCHEMA", "execute"} <= names:
        return True
    return any(
        (isinstance(node, ast.Name) and node.id == "define_tool") or (isinstance(node, ast.Attribute) and node.attr == "define_tool")
        for node in ast.walk(tree)
    )


def _tools_of(module):
    found = []
    execute, schema = getattr(module, "execute", None), getattr(module, "SCHEMA", None)
    if callable(execute) and isinstance(schema, dict):
        found.append(_execute_tool(schema, execute))
    seen = set()
    for value in vars(module).values():
        if isinstance(value, Tool) and id(value) not in seen and value.function.__module__ == module.__name__:
            seen.add(id(value))
            found.append(LoadedTool(value.definition, _caller(value)))
    return found


def _execute_tool(schema, execute):
    # The host accepts both names of the parameters, and reports unknown ones.
    return LoadedTool(dict(schema), (execute, lambda args, invocation, context: ((args, context), {}), result_of_execute))


def _caller(tool):
    return (tool.function, tool.bind, result_of)


class _Shims(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Provides the names that tool modules of other hosts import. Creates parent packages only where they are missing."""

    def __init__(self, first):
        self._names = set(_shims) if first else {"copilot", "tools"}

    def find_spec(self, name, path=None, target=None):
        if name not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=name not in _shims)

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        vars(module).update(_shims.get(module.__name__, {}))


_max_frames = 50


def frames_of(error, modules):
    """The frames of an exception, from the innermost to the outermost one of the skill."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((at for at, frame in enumerate(frames) if modules.owns(frame.filename)), len(frames))
    return [{"file": frame.filename, "line": frame.lineno, "name": frame.name} for frame in reversed(frames[first:])][:_max_frames]


def fault_of(error, file, modules):
    """The report to the host about a module that could not be loaded."""
    fault = {"kind": "threw", "message": f"{type(error).__name__}: {error}", "file": file}
    if isinstance(error, SyntaxError):
        fault = {"kind": "syntax", "message": str(error.msg), "file": error.filename or file, "line": error.lineno, "column": error.offset}
    else:
        if isinstance(error, Untrusted):
            fault["kind"] = "untrusted"
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if modules.owns(frame.filename)]
        if frames:
            fault.update(file=frames[-1].filename, line=frames[-1].lineno)
    missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
    fault["files"] = modules.files() + (modules.candidates(missing, file) if missing else [])
    return fault
