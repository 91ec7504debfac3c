"""JSON Schemas for annotations, and typed values from validated JSON."""

import collections.abc
import dataclasses
import enum
import sys
import types
import typing

_plain = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_lists = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable)
_maps = (dict, collections.abc.Mapping)


class Unsupported(TypeError):
    """An annotation that JSON Schema cannot express."""


def is_model(annotation):
    """Whether it is a Pydantic model, without importing Pydantic."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel)


def is_object(annotation):
    """Whether its fields are the arguments of a tool."""
    return is_model(annotation) or dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation)


def schema_of(annotation, depth=0):
    if depth > 20:
        raise Unsupported("it refers to itself")
    if annotation in (typing.Any, object) or isinstance(annotation, typing.TypeVar):
        return {}
    if annotation is None:
        return {"type": "null"}
    if isinstance(annotation, type) and annotation in _plain:
        return {"type": _plain[annotation]}
    if is_model(annotation):
        return annotation.model_json_schema()
    if dataclasses.is_dataclass(annotation):
        return _fields_of_dataclass(annotation, depth)
    if typing.is_typeddict(annotation):
        return _fields_of_dict(annotation, depth)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [member.value for member in annotation]}
    return _generic(annotation, depth)


def _generic(annotation, depth):
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        texts = [part for part in args[1:] if isinstance(part, str)]
        return {**schema_of(args[0], depth + 1), **({"description": texts[0]} if texts else {})}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin in (typing.Union, getattr(types, "UnionType", typing.Union)):
        return {"anyOf": [schema_of(part, depth + 1) for part in args]}
    base = origin or annotation
    if base in _lists:
        return {"type": "array", **({"items": schema_of(args[0], depth + 1)} if args else {})}
    if base in _maps:
        values = schema_of(args[1], depth + 1) if len(args) == 2 else {}
        return {"type": "object", **({"additionalProperties": values} if values else {})}
    raise Unsupported(f"{annotation!r} has no form in JSON")


def _fields_of_dataclass(annotation, depth):
    hints = typing.get_type_hints(annotation, include_extras=True)
    fields = [field for field in dataclasses.fields(annotation) if field.init]
    properties = {field.name: schema_of(hints[field.name], depth + 1) for field in fields}
    for field in fields:
        if field.default is not dataclasses.MISSING:
            with_default(properties[field.name], field.default)
    missing = dataclasses.MISSING
    required = [field.name for field in fields if field.default is missing and field.default_factory is missing]
    return {"type": "object", "properties": properties, "required": required}


def _fields_of_dict(annotation, depth):
    hints = typing.get_type_hints(annotation, include_extras=True)
    properties = {name: schema_of(_bare(hint), depth + 1) for name, hint in hints.items()}
    return {"type": "object", "properties": properties, "required": sorted(annotation.__required_keys__)}


def _bare(hint):
    """Without Required[…] and NotRequired[…]."""
    name = getattr(typing.get_origin(hint), "_name", None)
    return typing.get_args(hint)[0] if name in ("Required", "NotRequired") else hint


def with_default(schema, value):
    """Adds a default if it can be converted to JSON."""
    if isinstance(value, enum.Enum):
        value = value.value
    if value is None or isinstance(value, (str, int, float, bool)) or value in ([], {}):
        schema["default"] = value
    return schema


def value_of(annotation, value, depth=0):
    """Converts the JSON of an argument to the annotated type: models, dataclasses and enums."""
    if depth > 20:
        return value
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return value_of(args[0], value, depth + 1)
    if is_model(annotation):
        return annotation.model_validate(value)
    if dataclasses.is_dataclass(annotation) and isinstance(value, dict):
        hints = typing.get_type_hints(annotation, include_extras=True)
        return annotation(**{name: value_of(hints[name], item, depth + 1) for name, item in value.items() if name in hints})
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return annotation(value)
    if origin in (typing.Union, getattr(types, "UnionType", typing.Union)):
        objects = [part for part in args if is_object(part) or (isinstance(part, type) and issubclass(part, enum.Enum))]
        return value_of(objects[0], value, depth + 1) if value is not None and len(objects) == 1 and len(args) <= 2 else value
    if isinstance(value, list) and origin in _lists and args:
        made = [value_of(args[0], item, depth + 1) for item in value]
        return origin(made) if origin in (tuple, set, frozenset) else made
    return value
