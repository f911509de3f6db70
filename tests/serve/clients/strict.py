"""Holds answers against the types of a client package strictly: values have the types that the package declares, and there are no other members."""

import typing

import pydantic


def extras(value, path, found):
    """Members that no type declares."""
    if isinstance(value, pydantic.BaseModel):
        found += [f"{path}.{name}" for name in value.model_extra or {}]
        for name in type(value).model_fields:
            extras(getattr(value, name), f"{path}.{name}", found)
    elif isinstance(value, list):
        for i, one in enumerate(value):
            extras(one, f"{path}[{i}]", found)
    return found


def strict(model, value, allowed=()):
    """The value as an instance of this class; `allowed`: members that dtrun adds."""
    held = pydantic.TypeAdapter(model).validate_python(value, strict=True)
    found = [name for name in extras(held, "", []) if name not in allowed]
    assert not found, (model.__name__, found, value)
    return held


def by_type(union):
    """The classes of a union by the value of their member type."""
    classes = {}
    for one in typing.get_args(typing.get_args(union)[0]):
        for name in typing.get_args(one.model_fields["type"].annotation):
            classes[name] = one
    return classes
