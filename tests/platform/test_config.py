"""Files become frozen dataclasses, or every problem is reported at once with its place."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanista.envs.errors import InputError
from lanista.platform.config import make, parse_document, read_document, to_plain


@dataclass(frozen=True)
class Wheel:
    size: int
    kind: Literal["slick", "wet"] = "slick"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"size is {self.size}; it must be at least 1.")


@dataclass(frozen=True)
class Car:
    name: str
    wheels: tuple[Wheel, ...]
    rate: float = 1.0
    spare: Wheel | None = None
    stops: tuple[int, ...] | Literal["all"] = "all"
    extras: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.wheels:
            raise InputError("a car has wheels.")


GOOD = """
name: one
wheels:
  - {size: 3}
  - {size: 4, kind: wet}
rate: 3e-4
spare: {size: 2}
profiles:
  quick: {rate: 2, spare: {size: 9}, wheels: [{size: 1}]}
"""


def car(text: str, *overrides: str, profile: str | None = None) -> Car:
    return make(Car, parse_document(text, "car.yaml", overrides=overrides, profile=profile))


def problems(text: str, *overrides: str, profile: str | None = None) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        car(text, *overrides, profile=profile)
    return caught.value.problems


def test_a_good_file_becomes_its_dataclass() -> None:
    made = car(GOOD)
    assert made == Car("one", (Wheel(3), Wheel(4, "wet")), 3e-4, Wheel(2))
    assert car(GOOD, profile="quick") == Car("one", (Wheel(1),), 2.0, Wheel(9))


@pytest.mark.parametrize(
    ("override", "attribute", "value"),
    [
        ("rate=0.5", "rate", 0.5),
        ("spare.size=7", "spare", Wheel(7)),
        ("spare=null", "spare", None),
        ("wheels.1.kind=slick", "wheels", (Wheel(3), Wheel(4))),
        ("stops=[1, 2]", "stops", (1, 2)),
        ("stops=all", "stops", "all"),
        ("extras.tow=2", "extras", {"tow": 2}),
    ],
)
def test_overrides_are_read_as_yaml(override: str, attribute: str, value: object) -> None:
    assert getattr(car(GOOD, override), attribute) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [1\n", ("car.yaml:2:1: malformed YAML: expected ',' or ']'",)),
        ("name: a\nname: b\n", ("car.yaml:2:1: malformed YAML: key 'name' is written twice.",)),
        ("- 1\n", ("car.yaml: it must hold keys and values, not a list.",)),
        ("", ("car.yaml: it must hold keys and values, not nothing.",)),
        ("1: x\n", ("car.yaml:1:1: malformed YAML: key 1 is no text.",)),
        ("name: x\nwheels: []\n", ("car.yaml: a car has wheels.",)),
        (
            "name: x\nwheels: [{size: 0}, {size: -4}]\n",
            ("car.yaml:2: wheels.0: size is 0", "car.yaml:2: wheels.1: size is -4"),
        ),
        (
            "nam: x\nwheels:\n  - {size: big}\n  - {size: 1, kind: dry}\nrate: fast\n",
            (
                "car.yaml: name: it is missing.",
                "car.yaml:3: wheels.0.size: input should be a valid integer",
                "car.yaml:4: wheels.1.kind: input should be 'slick' or 'wet', not 'dry'.",
                "car.yaml:5: rate: input should be a valid number",
                "car.yaml:1: nam: there is no such key; did you mean name?",
            ),
        ),
        ("name: !!python/object/apply:os.getcwd []\nwheels: []\n", ("car.yaml:1:7: malformed",)),
        ("name: 2020-13-45\n", ("car.yaml: malformed YAML: a value is none: month must be",)),
        ("name: \x00\n", ("car.yaml: malformed YAML: unacceptable character",)),
        (f"name: {'[' * 5000}\n", ("car.yaml: malformed YAML: it is nested too deeply.",)),
        (
            "name: x\nwheels: [{size: 1}]\nextras: {Red (dark): much}\n",
            ("car.yaml:3: extras.Red (dark): input should be a valid integer",),
        ),
    ],
)
def test_every_problem_is_one_line_with_its_place(text: str, expected: tuple[str, ...]) -> None:
    found = problems(text)
    assert len(found) == len(expected)
    for line, start in zip(found, expected, strict=True):
        assert line.startswith(start)
        assert "\n" not in line


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("rate", "--set 'rate' is not of the form"),
        ("a..b=1", "--set 'a..b=1' is not of the form"),
        ("wheels.7.size=1", "wheels has items 0 to 1"),
        ("rate=[1", "the value is malformed YAML"),
        ("colour=red", "colour: there is no such key."),
        ("spare.siz=1", "spare.siz: there is no such key; did you mean size?"),
    ],
)
def test_overrides_that_make_no_sense_are_refused(override: str, expected: str) -> None:
    [line] = problems(GOOD, override)
    assert expected in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wheels: [3]", "wheels.0 is 3, which holds no keys."),
        ("wheels: []", "wheels is an empty list."),
    ],
)
def test_an_override_below_what_holds_no_keys_is_refused(text: str, expected: str) -> None:
    [line] = problems(text, "wheels.0.size=1")
    assert line.endswith(expected)


def test_an_override_changes_one_place_of_what_an_anchor_shares() -> None:
    text = "name: a\nwheels: [&w {size: 1}, *w]\nspare: *w\n"
    made = car(text, "wheels.0.size=2")
    assert [wheel.size for wheel in made.wheels] == [2, 1]
    assert made.spare == Wheel(1)


def test_an_unknown_profile_names_those_there_are() -> None:
    assert problems(GOOD, profile="fast") == ("car.yaml has no profile 'fast'; it has quick.",)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        read_document(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_document(tmp_path / "binary.yaml")
    with pytest.raises(InputError, match="cannot be read"):
        read_document(tmp_path)


wheels = st.builds(Wheel, st.integers(1, 99), st.sampled_from(["slick", "wet"]))
cars = st.builds(
    Car,
    st.text(min_size=1, max_size=8),
    st.lists(wheels, min_size=1, max_size=3).map(tuple),
    st.floats(allow_nan=False, allow_infinity=False),
    st.none() | wheels,
    st.just("all") | st.lists(st.integers(), max_size=3).map(tuple),
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(), max_size=2),
)


@given(cars)
def test_what_is_written_is_read_back(made: Car) -> None:
    import yaml

    assert car(yaml.safe_dump(to_plain(made))) == made
