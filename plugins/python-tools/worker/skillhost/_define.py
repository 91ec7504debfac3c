"""Tools from functions."""

import inspect
import typing

from ._context import ToolContext, ToolInvocation
from ._schema import Unsupported, is_object, schema_of, value_of, with_default

# The meaning of an argument without an annotation, by name.
_whole = ("params", "args", "arguments", "tool_input", "input")
_contexts = ("ctx", "context")

_options = {
    "title": "title",
    "output_schema": "outputSchema",
    "annotations": "annotations",
    "overrides_built_in_tool": "overridesBuiltInTool",
    "skip_permission": "skipPermission",
    "defer": "defer",
    "is_terminal": "isTerminal",
    "metadata": "metadata",
    "timeout": "timeout",
}

# Other names of these options, in MCP, the AI SDK and the JSON of skills.
_aliases = {"inputSchema": "parameters", "input_schema": "parameters", "execute": "handler"}
_aliases.update({alias: key for key, alias in _options.items() if alias != key})

_arguments = ("name", "description", "handler", "params_type", "parameters")


def option_fault(names):
    """The problem with the option names of define_tool, or None."""
    unknown = sorted(set(names) - set(_arguments) - set(_options) - set(_aliases))
    if unknown:
        return f"define_tool does not know {', '.join(unknown)}. It knows {', '.join(_arguments[1:] + tuple(_options))}."
    for alias in names:
        if alias in _aliases and (_aliases[alias] in names or any(other != alias and _aliases.get(other) == _aliases[alias] for other in names)):
            return f"define_tool got {_aliases[alias]} and another name for it, {alias}. Give one of them."
    return None


class Tool:
    """A function as a tool. It can still be called like the function."""

    def __init__(self, function, definition, bind):
        self.function = function
        self.definition = definition
        self.bind = bind
        self.name = definition["name"]
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.name)

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def define_tool(name=None, *, description=None, handler=None, params_type=None, parameters=None, **options):
    """Defines a tool: as a decorator, with or without arguments, or with `handler`.

    Default name: that of the function. Default description: the first paragraph of its docstring. The function may take
    no arguments, its arguments by name, or all of them as one model (Pydantic, a dataclass, a TypedDict, or a dict named
    `params`), followed by the invocation. `ctx` sends messages to the host. It may be a coroutine.
    """
    given = {"parameters": parameters, "handler": handler}
    fault = option_fault([*options, *(key for key, value in given.items() if value is not None)])
    if fault is not None:
        raise TypeError(fault)
    options = {_aliases.get(key, key): value for key, value in options.items()}
    parameters = options.pop("parameters", parameters)
    handler = options.pop("handler", handler)

    def decorate(function):
        return _make(function, name if isinstance(name, str) else None, description, params_type, parameters, options)

    if handler is not None:
        return decorate(handler)
    return decorate(name) if callable(name) else decorate


def _make(function, name, description, params_type, parameters, options):
    slots = _slots_of(function, params_type)
    definition = {"name": name or function.__name__}
    text = description if description is not None else _first_paragraph(function.__doc__)
    if text:
        definition["description"] = text
    definition["parameters"] = parameters if parameters is not None else _schema_of_slots(slots, function)
    definition.update({_options[key]: value for key, value in options.items() if value is not None})
    return Tool(function, definition, lambda args, invocation, context: _bind(slots, args, invocation, context))


def _slots_of(function, params_type):
    """How each parameter of the function is filled: (kind, name, annotation, default)."""
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception:
        # A name that only type checkers know: use the annotations that can be resolved.
        hints = {name: part.annotation for name, part in signature.parameters.items() if not isinstance(part.annotation, (str, type(inspect.Parameter.empty)))}
    names = [part for part in signature.parameters.values() if part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD)]
    slots = []
    for index, part in enumerate(names):
        annotation = hints.get(part.name, part.annotation)
        is_bare = annotation is inspect.Parameter.empty
        if params_type is not None and index == 0 and annotation not in (ToolInvocation, ToolContext):
            slots.append(("whole", part, params_type))
        elif annotation is ToolContext or (is_bare and part.name in _contexts):
            slots.append(("context", part, None))
        elif annotation is ToolInvocation or (is_bare and part.name == "invocation"):
            slots.append(("invocation", part, None))
        elif not is_bare and is_object(annotation) and not any(kind in ("whole", "one") for kind, _, _ in slots):
            slots.append(("whole", part, annotation))
        elif is_bare and part.name in _whole:
            slots.append(("whole", part, None))
        elif is_bare and index == len(names) - 1 and (index == 0 or slots[0][0] == "whole"):
            # As in the Copilot SDK, the remaining parameter is the invocation, whatever its name.
            slots.append(("invocation", part, None))
        else:
            slots.append(("one", part, typing.Any if is_bare else annotation))
    return slots


def _schema_of_slots(slots, function):
    for kind, _, annotation in slots:
        if kind == "whole":
            return {"type": "object"} if annotation is None or annotation is dict else schema_of(annotation)
    properties, required = {}, []
    for kind, part, annotation in slots:
        if kind != "one":
            continue
        try:
            properties[part.name] = schema_of(annotation)
        except Unsupported as problem:
            raise TypeError(f'{function.__name__}: the type of "{part.name}" cannot be given to a model: {problem}.') from None
        if part.default is inspect.Parameter.empty:
            required.append(part.name)
        else:
            with_default(properties[part.name], part.default)
    return {"type": "object", "properties": properties, "required": required}


def _bind(slots, args, invocation, context):
    positional, named = [], {}
    for kind, part, annotation in slots:
        if kind == "one" and part.name not in args:
            if part.default is inspect.Parameter.empty:
                raise TypeError(f'The argument "{part.name}" is missing.')
            value = part.default
        elif kind == "one":
            value = value_of(annotation, args[part.name])
        elif kind == "whole":
            value = args if annotation is None else value_of(annotation, args)
        else:
            value = invocation if kind == "invocation" else context
        if part.kind is part.KEYWORD_ONLY:
            named[part.name] = value
        else:
            positional.append(value)
    return positional, named


def _first_paragraph(text):
    return " ".join((inspect.cleandoc(text).split("\n\n")[0] if text else "").split())
