"""The rooms: imports point one way, no package is crowded, and help comes without torch."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import counterpoint

PACKAGE = Path(counterpoint.__file__).parent
# A module may import from its own tier and from those above it in this list.
TIERS = [
    {
        "errors",
        "seeding",
        "policy",
        "own_images",
        "config",
        "model_names",
        "devices",
        "normalisation",
        "processes",
        "setting_types",
        "threads",
        "time_limit",
    }
    | {"watching", "storage", "records", "parallel"},
    {"images", "data", "augment", "corrupt", "nn", "models", "metrics", "recalibration"},
    {"runs", "training", "evaluation"},
    {"experiments", "launching", "reproduction", "report", "pictures", "serving", "export"},
    {"cli", "__main__"},
]
TIER_OF = {room: number for number, rooms in enumerate(TIERS) for room in rooms}
MOST_MODULES = 20


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_names(name: str) -> Iterator[str]:
    """Whatever a module imports of counterpoint, wherever in its code, absolutely or relatively."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "counterpoint":
                    yield alias.name.removeprefix("counterpoint").lstrip(".")
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, node.module] if node.module else above)
            elif node.module and node.module.split(".")[0] == "counterpoint":
                base = node.module.removeprefix("counterpoint").lstrip(".")
            else:
                continue
            for alias in node.names:
                yield f"{base}.{alias.name}".lstrip(".")


def imported_modules(name: str) -> set[str]:
    """The modules among the imported names: the longest part of each that is one."""
    found = set()
    for imported in imported_names(name):
        parts = imported.split(".")
        prefixes = [".".join(parts[:length]) for length in range(len(parts), 0, -1)]
        module = next((prefix for prefix in prefixes if prefix in MODULES), "")
        found.add(module)
    return found - {name, ""}  # the package itself holds the version, and its lazy names are no import


GRAPH = {name: imported_modules(name) for name in MODULES if name}


def test_every_module_has_a_tier() -> None:
    assert {name.split(".")[0] for name in GRAPH} == set(TIER_OF)


@pytest.mark.parametrize("name", GRAPH)
def test_imports_do_not_point_upward(name: str) -> None:
    tier = TIER_OF[name.split(".")[0]]
    upward = {imported for imported in GRAPH[name] if TIER_OF[imported.split(".")[0]] > tier}
    assert not upward


def test_no_module_imports_itself_through_others() -> None:
    finished: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail[trail.index(name) :], name))
        if name not in finished:
            # A package's __init__ gathers the names of its modules, which then do not import it back.
            for imported in sorted(GRAPH[name]):
                visit(imported, (*trail, name))
            finished.add(name)

    for name in GRAPH:
        visit(name, ())


@pytest.mark.parametrize("name", [name for name, path in MODULES.items() if path.name == "__init__.py"])
def test_no_package_is_crowded(name: str) -> None:
    assert len([path for path in MODULES[name].parent.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES


@pytest.mark.parametrize(
    "arguments", [["--help"], ["train", "--help"], ["experiments"], ["settings"], ["--version"]], ids=" ".join
)
def test_help_comes_without_torch(arguments: list[str]) -> None:
    code = (
        "import sys; from counterpoint.cli import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "--out", "x"],
        ["train", "digits/quickstrat", "--out", "x"],
        ["train", "digits/quickstart", "--set", "epochs=many", "--out", "x"],
        ["train", "--images", "photos", "--set", "images.gray=true", "--out", "x"],
        ["views", "digits/quickstart", "--model", "resnett"],
    ],
    ids=" ".join,
)
def test_a_wrong_setting_is_refused_without_torch(arguments: list[str]) -> None:
    """Torch's import takes seconds."""
    code = "import sys; sys.modules['torch'] = None; from counterpoint.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


def test_a_run_folder_needs_no_torch() -> None:
    code = "import sys, counterpoint.runs.folder, counterpoint.runs.transfer; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_processes_that_decode_images_start_without_torch() -> None:
    code = "import sys, counterpoint.images; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("name", counterpoint.__all__)
def test_a_public_name_is_that_of_its_room(name: str) -> None:
    assert name in dir(counterpoint)
    assert "import_module" not in dir(counterpoint)
    found = getattr(counterpoint, name)
    # Its private list of rooms: there is no public one.
    assert any(found is getattr(sys.modules.get(f"counterpoint.{room}"), name, None) for room in counterpoint._PUBLIC)


def test_every_public_name_is_listed_once() -> None:
    assert sorted(counterpoint._ROOM_OF) == sorted(counterpoint.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ecee'"):
        _ = counterpoint.ecee  # type: ignore[attr-defined]  # mypy knows the public names
