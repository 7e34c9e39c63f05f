"""Configuration files: YAML read safely, overridden, checked as a whole, made into dataclasses.

Every problem of a file is reported at once, a line each, with the file's line and the key's path.
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from lanista.envs.errors import InputError

KeyPath = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True)
class Document:
    """A file's content after profile and overrides.

    Attributes:
        value: The mapping, made of plain YAML values.
        source: What to call it in messages: the file's name.
        lines: Line of each key that still comes from the file itself.
    """

    value: dict[str, Any]
    source: str
    lines: Mapping[KeyPath, int]


class _Loader(yaml.SafeLoader):
    """Safe YAML that refuses a mapping with the same key twice instead of dropping one."""


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: dict[Any, Any] = {}
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.MarkedYAMLError(
                problem=f"key {key!r} is no text", problem_mark=key_node.start_mark
            )
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key {key!r} is written twice", problem_mark=key_node.start_mark
            )
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def _load(text: str) -> Any:
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def read_document(
    path: Path, *, overrides: Sequence[str] = (), profile: str | None = None
) -> Document:
    """Read a YAML file, apply one of its profiles, then overrides.

    Args:
        path: The file.
        overrides: ``a.b=value``; the value is read as YAML, a number in the path is a list index.
        profile: Name under the file's ``profiles:``; its values are laid over the file's, lists
            as a whole.

    Raises:
        InputError: If the file is not there or malformed, or profile or override cannot apply.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"{path} cannot be read: {reason}.") from error
    return parse_document(text, str(path), overrides=overrides, profile=profile)


def parse_document(
    text: str, source: str, *, overrides: Sequence[str] = (), profile: str | None = None
) -> Document:
    """Read YAML text; see :func:`read_document`."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        value = _load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise InputError(f"{place}: malformed YAML: {error.problem or error.context}.") from error
    except yaml.YAMLError as error:
        raise InputError(f"{source}: malformed YAML: {_one_line(error)}.") from error
    except RecursionError as error:
        raise InputError(f"{source}: malformed YAML: it is nested too deeply.") from error
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{source}: malformed YAML: a value is none: {_one_line(error)}."
        ) from error
    if not isinstance(value, dict):
        raise InputError(f"{source}: it must hold keys and values, not {_kind(value)}.")
    value = _apart(value)
    lines = dict(_lines(node, ())) if node is not None else {}
    value, lines = _with_profile(value, lines, profile, source)
    for override in overrides:
        _override(value, lines, override)
    return Document(value, source, lines)


def _apart(value: Any) -> Any:
    """Copy a value so that what an anchor shares can be overridden in one place alone."""
    if isinstance(value, dict):
        return {key: _apart(item) for key, item in value.items()}
    return [_apart(item) for item in value] if isinstance(value, list) else value


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _kind(value: object) -> str:
    names = {type(None): "nothing", list: "a list", str: "text"}
    return names.get(type(value), type(value).__name__)


def _lines(node: yaml.Node, path: KeyPath) -> typing.Iterator[tuple[KeyPath, int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*path, key.value)
            yield from _lines(value, inner)
            yield inner, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _lines(value, (*path, index))


def _with_profile(
    value: dict[str, Any], lines: dict[KeyPath, int], profile: str | None, source: str
) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    profiles = value.pop("profiles", None) or {}
    if not isinstance(profiles, dict):
        raise InputError(f"{source}: profiles: it must hold names and overrides.")
    if profile is None:
        return value, lines
    if not isinstance(profiles.get(profile), dict):
        known = ", ".join(sorted(profiles)) or "none"
        raise InputError(f"{source} has no profile {profile!r}; it has {known}.")

    def lay(base: dict[str, Any], over: dict[str, Any], path: KeyPath) -> None:
        for key, item in over.items():
            inner = (*path, key)
            if isinstance(base.get(key), dict) and isinstance(item, dict):
                lay(base[key], item, inner)
            else:
                base[key] = item
                _forget(lines, inner)

    lay(value, profiles[profile], ())
    return value, lines


def _forget(lines: dict[KeyPath, int], path: KeyPath) -> None:
    for known in [known for known in lines if known[: len(path)] == path]:
        del lines[known]


def _override(value: dict[str, Any], lines: dict[KeyPath, int], override: str) -> None:
    name, equals, text = override.partition("=")
    keys = name.strip().split(".")
    if not equals or not all(keys):
        raise InputError(f"--set {override!r} is not of the form key.key=value.")
    try:
        item = _load(text)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"--set {override!r}: the value is malformed YAML.") from error
    place: Any = value
    path: list[str | int] = []
    for position, key in enumerate(keys):
        last = position == len(keys) - 1
        if isinstance(place, list):
            if not key.isdecimal() or int(key) >= len(place):
                where = ".".join(keys[:position])
                held = f"has items 0 to {len(place) - 1}" if place else "is an empty list"
                raise InputError(f"--set {override!r}: {where} {held}.")
            path.append(int(key))
        elif isinstance(place, dict):
            if not last and not isinstance(place.get(key), dict | list):
                place[key] = {}
            path.append(key)
        else:
            where = ".".join(keys[:position])
            raise InputError(f"--set {override!r}: {where} is {place!r}, which holds no keys.")
        if last:
            place[path[-1]] = item
        place = place[path[-1]]
    _forget(lines, tuple(path))


@cache
def model_of(kind: Any) -> type[BaseModel]:
    """Make the strict Pydantic twin of a frozen dataclass, nested dataclasses included.

    Unknown keys are errors in it. What ``kind.__post_init__`` refuses with an ``InputError`` is
    reported by :func:`make` beside what the types refuse.
    """
    hints = typing.get_type_hints(kind)
    fields: dict[str, Any] = {}
    for item in dataclasses.fields(kind):
        if not item.init:
            continue
        if item.default is not dataclasses.MISSING:
            default: Any = item.default
        elif item.default_factory is not dataclasses.MISSING:
            default = Field(default_factory=item.default_factory)
        else:
            default = ...
        fields[item.name] = (_twin(hints[item.name]), default)
    configuration = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
    return create_model(kind.__name__, __config__=configuration, **fields)


def _twin(hint: Any) -> Any:
    """Replace dataclasses in a type by their Pydantic twins."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return model_of(hint)
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if not arguments or origin is typing.Literal:
        return hint
    inner = tuple(_twin(argument) for argument in arguments)
    if inner == arguments:
        return hint
    if origin in (typing.Union, types.UnionType):
        return typing.Union[inner]  # noqa: UP007 - made at run time
    return origin[inner] if origin is not None else hint


def make[T](kind: Callable[..., T], document: Document) -> T:
    """Check a document and make the frozen dataclass ``kind`` that it describes.

    Raises:
        InputError: With one line for each problem: file, line, path of the key, what is wrong.
    """
    model = model_of(kind)
    try:
        checked = model.model_validate(document.value)
    except ValidationError as error:
        names = sorted(_field_names(model))
        raise InputError(
            *(
                _line(document, _path_of(item["loc"], document.value), _message(item, names))
                for item in error.errors()
            )
        ) from error
    problems: list[str] = []
    made = _build(kind, checked, (), document, problems)
    if problems:
        raise InputError(*problems)
    return typing.cast("T", made)


def _build(hint: Any, value: Any, path: KeyPath, document: Document, problems: list[str]) -> Any:
    """Turn checked models into their dataclasses, the inner ones first."""
    if isinstance(value, BaseModel):
        kind = _dataclass_of(hint, type(value))
        hints = typing.get_type_hints(kind)
        before = len(problems)
        parts = {
            name: _build(hints[name], getattr(value, name), (*path, name), document, problems)
            for name in type(value).model_fields
        }
        if len(problems) > before:
            return None
        try:
            return kind(**parts)
        except InputError as error:
            problems.extend(_line(document, path, problem) for problem in error.problems)
            return None
    arguments = [item for item in _leaves(hint) if item is not ...] or [Any]
    if isinstance(value, tuple | list):
        inner = _union(arguments)
        return type(value)(
            _build(inner, item, (*path, index), document, problems)
            for index, item in enumerate(value)
        )
    if isinstance(value, dict):
        return {
            key: _build(_union(arguments), item, (*path, key), document, problems)
            for key, item in value.items()
        }
    return value


def _leaves(hint: Any) -> typing.Iterator[Any]:
    """Yield the types inside a type, however deep."""
    for argument in typing.get_args(hint):
        yield argument
        yield from _leaves(argument)


def _union(arguments: Sequence[Any]) -> Any:
    types_only = tuple(item for item in arguments if not isinstance(item, str | int))
    return typing.Union[types_only] if types_only else Any  # noqa: UP007 - made at run time


def _dataclass_of(hint: Any, model: type[BaseModel]) -> Any:
    """Find the dataclass in a type whose twin is the model."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and model_of(hint) is model:
        return hint
    for argument in typing.get_args(hint):
        found = _dataclass_of(argument, model)
        if found is not None:
            return found
    return None


def _field_names(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    queue: list[Any] = [model]
    while queue:
        item = queue.pop()
        if isinstance(item, type) and issubclass(item, BaseModel):
            names |= set(item.model_fields)
            queue += [field.annotation for field in item.model_fields.values()]
        else:
            queue += typing.get_args(item)
    return names


def _path_of(location: tuple[str | int, ...], value: Any) -> KeyPath:
    """Leave out what Pydantic adds to a location to say which member of a union it tried."""
    path: list[str | int] = []
    place = value
    for part in location:
        there = (isinstance(place, dict) and part in place) or (
            isinstance(place, list) and isinstance(part, int) and part < len(place)
        )
        made_up = isinstance(part, str) and (part[:1].isupper() or set(part) & {"[", "("})
        if made_up and not there:
            continue
        path.append(part)
        place = place[part] if there else None
    return tuple(path)


def _message(item: Any, names: Sequence[str]) -> str:
    if item["type"] == "extra_forbidden":
        near = get_close_matches(str(item["loc"][-1]), names, n=1, cutoff=0.6)
        return f"there is no such key{f'; did you mean {near[0]}?' if near else '.'}"
    if item["type"] == "missing":
        return "it is missing."
    message = str(item["msg"]).removeprefix("Value error, ")
    given = item["input"]
    shown = f", not {given!r}" if isinstance(given, str | int | float | bool | None) else ""
    return f"{message[:1].lower()}{message[1:]}{shown}."


def _line(document: Document, path: KeyPath, message: str) -> str:
    place = document.source
    for length in range(len(path), 0, -1):
        if path[:length] in document.lines:
            place += f":{document.lines[path[:length]]}"
            break
    key = ".".join(map(str, path))
    return f"{place}: {key}: {message}" if key else f"{place}: {message}"


def to_plain(value: Any) -> Any:
    """Turn dataclasses and tuples into what JSON and YAML know, so that it can be made again."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            item.name: to_plain(getattr(value, item.name))
            for item in dataclasses.fields(value)
            if item.init
        }
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
