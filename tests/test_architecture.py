"""The house's directions and habits, enforced over every module (docs/architecture/README.md)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_tree import ROOMS, ROOT, Module, modules, owner

MODULES = modules()

COMMON_GROUND = ("system", "model", "energy", "coordination")
"""The rooms of the orchestrator that workers use too: settings, nouns, energy, what is in Redis."""

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "kernels": (),
    "client": (),
    "device_agent": (),
    "virtual_phones": (),
    "orchestrator": ("kernels",),
    "workers": ("kernels", *(f"orchestrator.{room}" for room in (*COMMON_GROUND, "spec.wiring_file"))),
    "dashboards": ("orchestrator",),
    "farm": ROOMS,
}
"""The names that a house may import beside itself; a prefix allows all below it."""

FLOORS: dict[str, tuple[str, ...]] = {
    "orchestrator": (
        *COMMON_GROUND,
        *("spec", "figures", "ledger", "analysis", "exchange", "scheduling"),
        *("answers", "acts", "nightly", "queueing", "report", "metrics"),
    ),
    "workers": (
        *("connection", "devices", "power", "session", "files", "engines", "enrolment", "claim"),
        *("execution", "discovery", "spool", "tasks", "serving", "infer", "tuning", "host"),
    ),
    "kernels": (
        *(
            "errors",
            "ir",
            "options",
            "reference",
            "frontend",
            "plan",
            "source",
            "catalog",
            "lower",
            "passes",
            "codegen",
        ),
        *("memory", "compile", "training", "tuning"),
    ),
    "virtual_phones": (
        *("replay", "profile", "adb", "hardware", "system", "phone", "programs", "shell", "commands"),
        *("faults", "control", "server", "simulation", "launch", "__main__"),
    ),
    "device_agent/src": (
        "system",
        "journal",
        "process",
        "device",
        "plan",
        "ordering",
        "telemetry",
        "backends",
        "run",
        "main",
    ),
}
"""The rooms of each house from the ground up: none imports a room above it."""

ARROWS = {
    "kernels": 69,  # angles of places become tables by their meaning
    "orchestrator": 61,  # acts know ledger, answers, Redis, what is submitted, and tables of others
    "workers": 50,
    "virtual_phones": 38,
    "farm": 55,  # doors know a farm here and one elsewhere; the notebook asks the ledger itself
    "farm.cli": 31,  # people
}
"""Pairs of rooms of a folder of which one imports the other."""

CIRCLES: dict[str, int] = {
    "farm": 2,
    "orchestrator.ledger": 10,
    "kernels.catalog": 3,
    "kernels.frontend.onnx.operators": 2,
    "kernels.ir": 2,
    "dashboards.web": 2,
}
"""Rooms of a folder that lie in a circle of imports, those of types among them; all other folders have none."""

DOORS: dict[str, tuple[str, ...]] = {
    "dashboards.api": ("",),
    "dashboards.boards": (),
    "dashboards.web": ("", "access"),
    "farm.cli": (),
    "farm.web": ("pages",),
    "kernels.codegen": ("render",),
    "kernels.memory": ("choose_layout", "fit_to_budget", "layout"),
    "kernels.reference": ("", "inputs"),
    "kernels.source": ("chunks", "dialects.opencl", "dialects.vulkan", "dot_products", "kernel", "texts", "tile"),
    "kernels.training": ("",),
    "kernels.tuning": ("", "tune"),
    "orchestrator.answers": ("", "fleet", "glossary", "hosts", "story", "waiting"),
    "orchestrator.exchange": (
        "baselines",
        "export",
        "power_traces",
        "power_traces.comparison",
        "row_files",
        "samples",
        "series",
    ),
    "orchestrator.metrics": ("backfill", "past"),
    "orchestrator.nightly": ("", "keeper", "past", "schedule", "summary"),
    "orchestrator.scheduling": (),
    "orchestrator.spec": (
        *("", "validation", "wiring_file", "yaml_tree"),
        *("expansion.device_selection", "expansion.expand", "expansion.run_order"),
    ),
    "workers.engines.wait": (),
    "workers.enrolment": ("", "load_steps", "nodes", "store"),
    "workers.spool": ("",),
    "workers.tuning": ("plan_comparison", "split_network", "tune_device"),
    "virtual_phones.adb": ("cable", "key", "wire"),
    "virtual_phones.commands": ("",),
    "virtual_phones.control": ("", "client", "injector", "listener"),
    "virtual_phones.programs": ("execution", "low_memory", "slowing", "streams"),
    "virtual_phones.replay": ("player", "recording"),
    "virtual_phones.server": ("phones",),
    "virtual_phones.shell": ("interpreter", "releases", "table"),
    "virtual_phones.simulation": (),
}
"""The names that others import of a room, "" for the room itself: all else is its inside."""

NAMES_ON_A_FLOOR = 15
_CROWDED = {
    24: (
        "kernels/ir",  # 4: a decoder, its cache, packed matrices, parts that tables and layers share; intervals
        "orchestrator/model",  # a file is a kind of data: doubts, the sampler's events; text of others
    ),
    22: ("workers/session/conditions", "orchestrator/ledger"),  # a file is a condition; people, packing of rows
    21: ("orchestrator/energy", "farm"),  # phases; doors
    20: (
        *("dashboards/web", "kernels/frontend/onnx/operators"),
        *("orchestrator/queueing", "orchestrator/report"),  # one environment of templates, before four
    ),
    18: (
        *("kernels/lower/gpu", "workers/power"),
        "workers/engines",  # eleven of them are an engine
        *("orchestrator/analysis", "orchestrator/analysis/statistics"),
    ),
    17: (
        *("device_agent/src/backends/cpu/operations", "kernels/catalog/convolution", "kernels/passes"),
        *("orchestrator/exchange/power_traces", "orchestrator/report/charts"),  # a file is a kind of chart
        "farm/cli",  # a folder is what its commands are on
        "orchestrator/model/experiment",  # a file is a part of an experiment's file
    ),
    16: (
        "device_agent/src/backends/cpu/nc16",
        *("orchestrator", "workers"),
        "orchestrator/scheduling",  # the history of devices is a look of its own in the turn
    ),
}
CROWDED = {folder: names for names, folders in _CROWDED.items() for folder in folders}
"""Folders with more names, and how many they may have."""

DESKTOP_IS_MET_IN = (
    "kernels.catalog.convolution",
    "kernels.catalog.convolution.group_tile",
    "kernels.catalog.convolution.squeeze",
    "kernels.catalog.product",
    "kernels.catalog.product.tiled.cost",
)
"""Modules that import `kernels.catalog.desktop`, beside the lowering of operators on GPUs."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "celery": ("orchestrator.coordination", "orchestrator.nightly.schedule", "workers.tasks", "farm.tasks.beat"),
    "kombu": ("orchestrator.coordination.tasks.queue",),
    "adbutils": ("workers.connection.adb",),
    "typer": ("farm",),
    "click": ("farm",),
    "rich": ("farm", "orchestrator.report.console", "orchestrator.report.listing"),
    "grafana_foundation_sdk": ("dashboards.boards",),
    "alembic": ("orchestrator.ledger",),
    "cryptography": ("farm.reach.certificates",),
    "argon2": ("orchestrator.ledger.people.passwords",),
    "authlib": ("dashboards.web.people.provider",),
    "joserfc": ("dashboards.web.people.provider",),
    "apprise": ("orchestrator.report.nights.tell",),
    "fastapi": ("dashboards.api",),
    "starlette": ("dashboards.api", "dashboards.web", "farm.web"),
    "uvicorn": ("farm.web",),
    "sqlalchemy": ("orchestrator.ledger",),
    "prometheus_client": ("orchestrator.metrics",),
    "pyopencl": ("kernels", "farm"),
    "onnx": ("kernels",),
    "filelock": ("kernels.tuning.database",),
    "httpx": ("client",),
    "google": ("kernels.frontend.onnx", "orchestrator.energy.perfetto_trace"),
    "lark": ("orchestrator.spec.expansion.device_selection",),
    "yaml": ("orchestrator.spec", "virtual_phones", "client"),
    "jinja2": ("dashboards.web", "orchestrator.report"),
    "matplotlib": ("orchestrator.report", "farm.api.plot"),
    "pandas": ("farm.api",),
    "torch": ("farm.api", "workers.engines.torch"),
    "tqdm": ("farm.api",),
    "psutil": ("farm.processes",),
    "pyarrow": (
        *("orchestrator.exchange.row_files", "orchestrator.exchange.power_traces"),
        *("orchestrator.ledger.upkeep.archives", "orchestrator.queueing.kept.columns"),
        "orchestrator.acts.submission.training_sets",
    ),
    "scipy": (
        *("orchestrator.analysis", "orchestrator.queueing.capacity"),
        *("workers.enrolment.sampler_cost", "workers.tuning.plan_comparison"),
    ),
}
"""Third-party packages with one home."""

MAY_READ_ENVIRONMENT = ("orchestrator.system.config", "virtual_phones", "farm")
"""Settings are read once; virtual phones and the supervisor hand their environment on."""

AGENT_SOURCES = ROOT / "device_agent" / "src"
AGENT_FILES = [path for path in sorted(AGENT_SOURCES.rglob("*.*")) if path.suffix in (".cc", ".h", ".inc")]
ONLY_IN_THE_AGENTS: dict[str, tuple[str, ...]] = {
    r"\b[io]?fstream\b|\bfilebuf\b|\bfilesystem\b|\bf?open64\b|\bfopen\b|\bpopen\b|\bcin\b": (),
    r"(?<!\w)::p?readv?\(|\bfread\b|\bfgets\b|\bopendir\b": ("system/files.cc",),
    r"\bstd::thread\(|\bstd::async\b|\bpthread_create\b|\.emplace_back\(\[": ("system/thread.h",),
    r"\bthrow\b": ("system/json_reader.h",),
    r"\bstd::sto(i|l|ll|ul|ull|f|d|ld)\(": (),
    r"(?<!\w)(std::)?(abort|exit|quick_exit)\(|::_exit\(": ("main.cc", "process/child.cc"),
    r"\bstd::terminate\b": ("system/thread.h",),
    r"\bthread_local\b|\b__thread\b": (),
}
"""Code that may throw, end the process, read, or is a call at each use on phones (thread-local variables). Each is a
pattern in the agent's sources, with the files that may have it."""

LONGEST_MODULE = 450
LOOK_AGAIN = 300

WORK_AT_IMPORT = {
    "open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "glob", "rglob", "iterdir",
    "exists", "run", "Popen", "check_output", "system", "socket", "create_connection", "urlopen", "create_engine",
    "Redis", "from_url", "settings", "Settings", "getenv", "sleep", "which", "gethostname", "load", "connect",
}  # fmt: skip
"""Names of calls that touch the world: a module that is imported must not."""


def _under(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@pytest.mark.parametrize("room", ROOMS)
def test_imports_only_from_the_rooms_that_it_may(room: str) -> None:
    allowed = (room, *MAY_IMPORT[room])
    wrong = [
        f"{module.where}:{each.line} imports {each.target}"
        for module in MODULES.values()
        for each in module.imports
        if module.name.split(".")[0] == room and each.target.split(".")[0] in (*ROOMS, "tests")
        if not _under(each.target, allowed)
    ]
    assert not wrong, f"{room} may import only {allowed}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("house", [house for house in FLOORS if "/" not in house])
def test_no_import_climbs(house: str) -> None:
    floors = FLOORS[house]
    rooms = {name.split(".")[1] for name in MODULES if name.startswith(f"{house}.")}
    assert rooms == set(floors)
    wrong = [
        f"{module.where}:{each.line} imports {each.target}"
        for module in MODULES.values()
        for each in module.imports
        if module.name.startswith(f"{house}.") and each.target.startswith(f"{house}.")
        if floors.index(each.target.split(".")[1]) > floors.index(module.name.split(".")[1])
    ]
    assert not wrong, f"{house}, from the ground up: {', '.join(floors)}\n" + "\n".join(wrong)


def test_no_include_of_the_agent_climbs() -> None:
    floors = FLOORS["device_agent/src"]
    wrong = [
        f"{path.relative_to(ROOT)} includes {included}"
        for path in AGENT_FILES
        for included in re.findall(r'#include "([^"]+)"', path.read_text())
        if (AGENT_SOURCES / included).exists() and floors.index(included.split("/")[0]) > floors.index(_room(path))
    ]
    assert {_room(path) for path in AGENT_FILES} == set(floors)
    assert not wrong, f"from the ground up: {', '.join(floors)}\n" + "\n".join(wrong)


def _room(path: Path) -> str:
    return path.relative_to(AGENT_SOURCES).with_suffix("").parts[0]


def test_a_floor_has_few_names() -> None:
    files = [*(module.path for module in MODULES.values()), *AGENT_FILES]
    floors: dict[str, set[str]] = {}
    for path in files:
        for inner in (path, *path.parents):
            if inner != ROOT and inner.is_relative_to(ROOT) and inner.stem != "__init__":
                floors.setdefault(inner.parent.relative_to(ROOT).as_posix(), set()).add(inner.stem)
    crowded = {floor: len(names) for floor, names in floors.items() if len(names) > NAMES_ON_A_FLOOR}
    more = {floor: names for floor, names in crowded.items() if names > CROWDED.get(floor, 0)}
    assert not more, f"{more}: divide it; where its files are things of one kind, raise its number in CROWDED"
    assert not CROWDED.keys() - crowded, "no longer crowded: take it from CROWDED"


def test_models_import_nothing_above_them() -> None:
    """Nouns know the compiler's axes, and nothing else of ours."""
    known = ("orchestrator.model", "kernels.options")
    wrong = [
        f"{module.where}:{each.line} imports {each.target}"
        for module in MODULES.values()
        for each in module.imports
        if _under(module.name, ("orchestrator.model",)) and each.target.split(".")[0] in ROOMS
        if not _under(each.target, known)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ONLY_IN)
def test_third_party_package_stays_at_home(package: str) -> None:
    wrong = [
        f"{module.where}:{each.line}"
        for module in MODULES.values()
        for each in module.imports
        if each.target.split(".")[0] == package and not _under(module.name, ONLY_IN[package])
    ]
    assert not wrong, f"{package} belongs in {ONLY_IN[package]} only: {wrong}"


def test_what_only_desktops_run_is_met_in_registries_and_costs_alone() -> None:
    """A reader of phones' kernels never comes to matrix units and warpgroups."""
    desktop = "kernels.catalog.desktop"
    found = {
        module.name
        for module in MODULES.values()
        for each in module.imports
        if _under(each.target, (desktop,)) and _under(module.name, ("kernels",)) and not _under(module.name, (desktop,))
    }
    in_catalog = {name for name in found if not name.startswith("kernels.lower.gpu.")}
    assert in_catalog == {*DESKTOP_IS_MET_IN}, "a name that is gone leaves the list, too"


ACTS_OF_PEOPLE = re.compile(
    r"\bledger(\(\))?\.(cancel|retry|submit)\(|\.(end_hold|clear_quarantine|clear_host|say_of_host|admit_host|unschedule)\("
)


def test_people_act_in_one_place() -> None:
    """Whoever writes for a person beside `orchestrator/acts/` leaves no row in the audit; the notebook has no command
    line inside."""
    rooms = ("orchestrator.acts", "orchestrator.ledger")
    found = {name for name, module in MODULES.items() if ACTS_OF_PEOPLE.search(module.text)}
    assert {name for name in found if _under(name, rooms)}, "the pattern is not theirs any more"
    assert not {name for name in found if not _under(name, (*rooms, "tests", "benchmarks"))}
    assert not [
        e
        for m in MODULES.values()
        if _under(m.name, ("farm.api",))
        for e in m.imports
        if _under(e.target, ("farm.cli",))
    ]


def test_no_row_of_the_audit_is_changed() -> None:
    found = {name for name, module in MODULES.items() if re.search(r"\b(update|delete)\(\s*AUDIT\b", module.text)}
    assert not found and any(re.search(r"\binsert\(AUDIT\)", module.text) for module in MODULES.values())


ENGINES, OURS = "workers.engines", "workers.engines.pocketfarm"
SHARED = tuple(f"workers.engines.{room}" for room in ("agent", "folder", "models", "packaged"))
"""Rooms of engines for what several engines share."""
USE_OUR_ENGINE = ("workers.tuning", "workers.serving", "workers.infer", "workers.enrolment", "farm.cli")
"""They tune, serve, infer and enrol with our own engine, outside the queue's way."""


def test_an_engine_is_met_at_its_door() -> None:
    """Runners, keepers and pages of blocks know `workers.engines` alone, and no engine knows another."""
    wrong = [
        f"{module.where}:{each.line} imports {each.target}"
        for module in MODULES.values()
        for each in module.imports
        if (target := owner(each.target, MODULES)) and _under(target, (ENGINES,)) and target != ENGINES
        if not _under(module.name, _may_meet(target))
    ]
    assert not wrong, "\n".join(wrong)


def _may_meet(target: str) -> tuple[str, ...]:
    """The modules that may import this one of the engines' room."""
    engine = ".".join(target.split(".")[:3])
    if MODULES[engine].path.name != "__init__.py":
        return (ENGINES,)
    others = USE_OUR_ENGINE if engine in (OURS, *SHARED) else ()
    return (ENGINES if engine in SHARED else engine, *others)


def test_a_slow_package_is_imported_where_it_is_used() -> None:
    """SciPy takes as long as half of `farm --help`; no start pays for it."""
    wrong = [
        f"{module.where}:{each.line}"
        for module in MODULES.values()
        for each in module.imports
        if each.top_level and each.target.split(".")[0] == "scipy"
    ]
    assert not wrong, f"import it inside the function that calls it: {wrong}"


def test_no_cycles_between_modules() -> None:
    edges = {name: set(_import_edges(module)) for name, module in MODULES.items()}
    cycle = _find_cycle(edges)
    assert cycle is None, " -> ".join(cycle or [])


def _import_edges(module: Module) -> Iterator[str]:
    """Modules of ours that must be loaded before this one; a package's own __init__ is loaded anyway."""
    for each in module.imports:
        target = owner(each.target, MODULES)
        if target and each.top_level and not each.of_types and target not in (module.name, module.package):
            yield target


def _find_cycle(edges: dict[str, set[str]]) -> list[str] | None:
    finished: set[str] = set()

    def visit(name: str, way: list[str]) -> list[str] | None:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in finished:
            return None
        for target in sorted(edges[name]):
            if (cycle := visit(target, [*way, name])) is not None:
                return cycle
        finished.add(name)
        return None

    return next((cycle for name in edges if (cycle := visit(name, [])) is not None), None)


def _arrows(folder: str) -> dict[tuple[str, str], str]:
    """Pairs of rooms, files and folders alike, of which the first imports the second, with a place where it does."""
    return {
        (_room_of(folder, module.name), _room_of(folder, target)): f"{module.where}:{each.line}"
        for module in MODULES.values()
        if module.name.startswith(f"{folder}.")
        for each in module.imports
        if (target := owner(each.target, MODULES)) and target.startswith(f"{folder}.")
        if _room_of(folder, module.name) != _room_of(folder, target)
    }


def _room_of(folder: str, name: str) -> str:
    return name.removeprefix(f"{folder}.").partition(".")[0]


@pytest.mark.parametrize("folder", ARROWS)
def test_rooms_know_few_others(folder: str) -> None:
    assert 0 < len(_arrows(folder)) <= ARROWS[folder], "find another way, or what both need and put it below them"


def test_rooms_of_a_folder_form_no_circle() -> None:
    """Whoever reads one room of a circle reads them all."""
    folders = {module.package for module in MODULES.values()}
    found = {folder: len(rooms) for folder in folders if (rooms := _in_circles(set(_arrows(folder))))}
    more = {folder: rooms for folder, rooms in found.items() if rooms > CIRCLES.get(folder, 0)}
    assert not more, "let one of them know an interface, or put what both need below them"


def _in_circles(arrows: set[tuple[str, str]]) -> set[str]:
    """Rooms from which a way leads back to them."""
    rooms = {room for arrow in arrows for room in arrow}
    reach = {room: {b for a, b in arrows if a == room} for room in rooms}
    for way in rooms:
        for room in rooms:
            if way in reach[room]:
                reach[room] |= reach[way]
    return {room for room in rooms if room in reach[room]}


@pytest.mark.parametrize("room", DOORS)
def test_others_come_through_the_doors_of_a_room(room: str) -> None:
    doors = {f"{room}.{door}".rstrip(".") for door in DOORS[room]}
    used = {
        target: f"{module.where}:{each.line}"
        for module in MODULES.values()
        if not _under(module.name, (room,))
        for each in module.imports
        if (target := owner(each.target, MODULES)) and _under(target, (room,))
    }
    assert used.keys() == doors, f"its inside: {used.keys() - doors}; no longer used: {doors - used.keys()}: {used}"


def test_a_cycle_is_found() -> None:
    assert _find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert _find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None
    assert _in_circles({("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("c", "e")}) == {*"bcd"}


def test_no_inner_function_names_itself() -> None:
    """It is a cycle: what it reads stays until a search for garbage, and commands search seldom."""
    assert not [
        f"{module.where}:{inner.lineno} {inner.name}"
        for module in MODULES.values()
        for outer in module.nodes
        if isinstance(outer, ast.FunctionDef)
        for inner in ast.walk(outer)
        if isinstance(inner, ast.FunctionDef) and inner is not outer
        if any(isinstance(each, ast.Name) and each.id == inner.name for part in inner.body for each in ast.walk(part))
    ]


def test_does_no_work_at_import() -> None:
    calls = [
        f"{module.where}:{call.lineno} {ast.unparse(call)[:80]}"
        for module in MODULES.values()
        for statement in module.tree.body
        for call in _calls_at_import(statement)
        if _called(call) in WORK_AT_IMPORT
    ]
    assert not calls, "touches the world while it is imported:\n" + "\n".join(calls)


def _calls_at_import(node: ast.AST) -> Iterator[ast.Call]:
    """Calls that importing executes: not the bodies of functions, nor `if __name__ == "__main__"`."""
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in node.decorator_list:
            yield from _calls_at_import(decorator)
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Call):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _calls_at_import(child)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_work_at_import_is_found() -> None:
    (statement,) = ast.parse("X = Path('x').read_text()").body
    assert [_called(call) for call in _calls_at_import(statement)] == ["read_text", "Path"]
    (statement,) = ast.parse("def f():\n    return open('x')").body
    assert not list(_calls_at_import(statement))


def test_does_not_read_the_environment() -> None:
    reads = [
        f"{module.where}:{node.lineno}"
        for module in MODULES.values()
        if not _under(module.name, MAY_READ_ENVIRONMENT)
        for node in module.nodes
        if isinstance(node, ast.Attribute) and node.attr in ("getenv", "environ")
        if not _is_harmless(module.text.splitlines()[node.lineno - 1])
    ]
    assert not reads, f"only orchestrator/system/config.py reads the environment: {reads}"


def _is_harmless(line: str) -> bool:
    """`{**os.environ, ...}` gives the whole environment to a child: it reads nothing. XDG folders are no settings."""
    return any(harmless in line for harmless in ("**os.environ", "dict(os.environ)", "os.environ.copy()", "XDG_"))


ROOTS_OF_ERRORS = {"FarmError", "StableError"}


def test_an_error_says_its_cause() -> None:
    """The roots of the tree have none of their own that would tell a program anything."""
    raised = [
        f"{module.where}:{node.lineno}"
        for module in MODULES.values()
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ROOTS_OF_ERRORS
    ]
    assert not raised, f"give the error a class with a cause (orchestrator/model/errors.py): {raised}"


def test_modules_are_small() -> None:
    sizes = {module.where: module.lines for module in MODULES.values()}
    print("look again at:", {where: lines for where, lines in sizes.items() if lines > LOOK_AGAIN})
    too_long = {where: lines for where, lines in sizes.items() if lines > LONGEST_MODULE}
    assert not too_long, f"more than {LONGEST_MODULE} lines: {too_long}"


def test_names_say_what_things_are() -> None:
    vague = {"util", "utils", "common", "helper", "helpers", "misc"}
    files = [module.where for name, module in MODULES.items() if vague & set(name.split("."))]
    classes = [
        f"{module.where}: {node.name}"
        for module in MODULES.values()
        for node in module.nodes
        if isinstance(node, ast.ClassDef) and node.name.endswith("Manager")
    ]
    assert not files + classes


NO_SUBJECT = re.compile(
    r"(?:Of|As|By|In|For|So|What|Whether|Where|How|Why|Who|Whose|Which|That|Those|Such|From|To|Into|Up|At|On|Over|With"
    r"|Without|Between|Along|Beside|Only|Also|If|Around|After|Before|Beyond|Behind|Below|Until|Since|Within|Instead"
    r"|Neither|Not|Among|Under|Than|Even|Just|Per|And|Or|Across|When|While|Always)\b"
)


def test_a_docstring_begins_with_a_subject_or_an_imperative() -> None:
    """ "Of two sums." is a riddle; "Return the larger of two sums." is a docstring. A field's text is one, too."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = {module.where: module.nodes for module in MODULES.values()}
    beside = [path for room in ("benchmarks", "scripts", "tests") for path in sorted((ROOT / room).rglob("*.py"))]
    nodes |= {path.relative_to(ROOT).as_posix(): tuple(ast.walk(ast.parse(path.read_text()))) for path in beside}
    checked = {
        f"{where}:{each.lineno}": each.value.value
        for where, every in nodes.items()
        for holder in every
        for each in (holder.body if isinstance(holder, holders) else ())
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)
    }
    wrong = [f"{where}: {text.splitlines()[0]}" for where, text in checked.items() if NO_SUBJECT.match(text)]
    assert len(checked) > 10_000 and not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pattern", ONLY_IN_THE_AGENTS)
def test_the_agent_reads_starts_threads_and_ends_in_one_place(pattern: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()[:80]}"
        for path in AGENT_FILES
        if path.relative_to(AGENT_SOURCES).as_posix() not in ONLY_IN_THE_AGENTS[pattern]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(pattern, line.partition("//")[0])
    ]
    assert not found, f"an error belongs in a Status, in {ONLY_IN_THE_AGENTS[pattern] or 'no file'} only: {found}"


def test_what_tests_draw_has_a_seed() -> None:
    """The `seed` that pytest's header prints, else a failure cannot be brought back."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    drawn = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tests
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\b(default_rng|Random)\(\)", line)
    ]
    assert len(tests) > 100 and not drawn, f"draw from the fixture `seed`: {drawn}"
