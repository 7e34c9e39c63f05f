import pytest

from lanista.envs.errors import InputError
from lanista.envs.tracing.catalogue import Catalogue, Function

PLANT = Function("garden.objects:Plant.damage", "garden/objects.py", 10, "Plant")
ZOMBIE = Function("garden.objects:Zombie.damage", "garden/objects.py", 20, "Zombie")
GROW = Function("garden.objects:Plant.grow", "garden/objects.py", 12, "Plant")


def test_ids_follow_the_sorted_names_whatever_the_order_given() -> None:
    one = Catalogue.of([ZOMBIE, PLANT, GROW, PLANT], "class")
    two = Catalogue.of([GROW, PLANT, ZOMBIE], "class")
    assert one == two
    assert one.sha256 == two.sha256
    assert [one.name(index) for index in range(len(one))] == sorted(
        function.name for function in (PLANT, ZOMBIE, GROW)
    )


def test_the_hash_tells_catalogues_apart() -> None:
    hashes = {
        Catalogue.of([PLANT], "class").sha256,
        Catalogue.of([PLANT], "definition").sha256,
        Catalogue.of([PLANT, GROW], "class").sha256,
    }
    assert len(hashes) == 3


def test_a_function_is_named_by_any_unique_suffix() -> None:
    catalogue = Catalogue.of([PLANT, ZOMBIE, GROW], "class")
    for name in ("garden.objects:Plant.grow", "Plant.grow", "grow", "objects:Plant.grow"):
        assert catalogue.name(catalogue.resolve(name)) == GROW.name
    with pytest.raises(InputError, match=r"'damage' names 2 functions"):
        catalogue.resolve("damage")
    with pytest.raises(InputError, match=r"did you mean Plant\.grow"):
        catalogue.resolve("Plant.grw")
    with pytest.raises(InputError, match="No recorded function"):
        catalogue.resolve("row")


def test_json_round_trip_and_refusal() -> None:
    catalogue = Catalogue.of([PLANT, ZOMBIE], "definition")
    assert Catalogue.from_json(catalogue.to_json()) == catalogue
    with pytest.raises(InputError, match="not a function catalogue"):
        Catalogue.from_json({"scheme": "class"})
