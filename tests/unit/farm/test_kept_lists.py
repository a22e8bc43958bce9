"""Lists of kept files: one that is damaged costs its own row, whatever happened to it, and the others stay."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.acts.access.storage import Storage
from orchestrator.acts.engine_builds import EngineBuilds
from orchestrator.acts.submission.uploads import Uploads
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.model.engine_build import EngineBuild
from orchestrator.model.enrolment import Enrolment
from orchestrator.system.durable_files import write_durably
from workers.enrolment import store
from workers.session import saved_settings
from workers.session.supply import journal
from workers.spool.bundles import Bundles

Listed = Callable[[Path], dict[str, Any]]
Kept = dict[str, list[Path]]
"""The files of each member of a list, by its name."""
NAMES = [f"m{number}" for number in range(6)]


def _engines(state: Path, chance: random.Random) -> Kept:
    """A build has a file that names it, one that describes it, and those of its folder."""
    artifacts, made = Artifacts(state), Kept()
    builds = EngineBuilds(artifacts, "p")
    for name in NAMES:
        files = {each: artifacts.put_bytes(chance.randbytes(50)) for each in ("a", "b")}
        build = EngineBuild(engine="llama.cpp", abi=name, program="a", files=files, bytes=100)
        builds.keep(build)
        kept = [builds.put(build), *files.values()]
        named = state / "artifacts" / "engines-of" / "p" / "llama.cpp" / name
        made[name] = [named, *(artifacts.path(each) for each in kept)]
    return made


def _of_engines(state: Path) -> dict[str, Any]:
    """Tell of each of its engines what is counted, too."""
    storage, found = Storage(state, "p", lambda: ((), 0)), dict[str, Any]()
    for each in EngineBuilds(Artifacts(state), "p").all():
        files = dict.fromkeys(each.build.files.values() if each.build else (), 0)
        found[each.abi] = (each.build, each.damaged, storage.used() - storage.used(files))
    return found


def _uploads(state: Path, chance: random.Random) -> Kept:
    made = {f"{number:064x}": [state / "uploads" / "p" / f"{number:064x}"] for number in range(6)}
    for (path,) in made.values():
        write_durably(path, chance.randbytes(10).hex())
    return made


def _of_uploads(state: Path) -> dict[str, Any]:
    storage = Storage(state, "p", lambda: ((), 0))
    assert storage.used() >= 0
    return {f"{number:064x}": Uploads(storage).held(f"{number:064x}") for number in range(6)}


def _enrolments(state: Path, _: random.Random) -> Kept:
    for name in NAMES:
        store.save(state, Enrolment(serial=name, fingerprint="a", enrolled_at=1.0))
    return {name: list((state / "enrolments" / name).iterdir()) for name in NAMES}


def _journals(folder: str, content: dict[str, Any]) -> Callable[[Path, random.Random], Kept]:
    def made(state: Path, _: random.Random) -> Kept:
        for name in NAMES:
            write_durably(state / folder / f"{name}.json", json.dumps({"serial": name, **content}))
        return {name: [state / folder / f"{name}.json"] for name in NAMES}

    return made


def _bundles(state: Path, _: random.Random) -> Kept:
    made = Kept()
    for name in NAMES:
        before = {*state.glob("*")}
        Bundles(state).write({name: "{}"})
        made[name] = [*({*state.glob("*")} - before)]
    return made


LISTS: dict[str, tuple[Callable[[Path, random.Random], Kept], Listed]] = {
    "engines": (_engines, _of_engines),
    "uploads": (_uploads, _of_uploads),
    "enrolments": (_enrolments, lambda state: dict.fromkeys(store.serials(state))),
    "settings": (_journals(saved_settings.FOLDER, {"changed": {"a": {}}}), saved_settings.changed_settings),
    "supplies": (
        _journals(journal.FOLDER, {"way": "root", "told": {}}),
        lambda state: dict.fromkeys(journal.cut_supplies(state)),
    ),
    "bundles": (_bundles, lambda state: Bundles(state).take_back()),
}


def _to_folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _to_nowhere(path: Path, _: random.Random) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGE: dict[str, Callable[[Path, random.Random], object]] = {
    "gone": lambda path, _: path.unlink(),
    "empty": lambda path, _: path.write_bytes(b""),
    "cut": lambda path, chance: path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)]),
    "no text": lambda path, chance: path.write_bytes(b"\xff" + chance.randbytes(30)),
    "another": lambda path, chance: path.write_text(chance.choice(["[]", "1", '{"a": 1}', "0" * 64])),
    "deep": lambda path, _: path.write_text("[" * 100_000),
    "a folder": _to_folder,
    "leads nowhere": _to_nowhere,
}

CHANGED = ("empty", "cut", "no text", "another", "deep")
"""Damage after which there is a file still."""


@pytest.mark.parametrize("what", LISTS)
def test_one_that_is_damaged_costs_itself(what: str, tmp_path: Path, seed: int) -> None:
    chance, (make, listed) = random.Random(seed), LISTS[what]
    made = make(tmp_path, chance)
    before, contents = listed(tmp_path), {path: path.read_bytes() for paths in made.values() for path in paths}
    assert before.keys() == made.keys()
    hurt = {name: (chance.choice(made[name]), chance.choice(list(DAMAGE))) for name in chance.sample(sorted(made), 4)}
    for path, how in hurt.values():
        DAMAGE[how](path, chance)
    after = listed(tmp_path)
    assert [after[name] for name in made if name not in hurt] == [before[name] for name in made if name not in hurt], (
        hurt, seed
    )  # fmt: skip
    if what == "engines":
        for name, (path, how) in hurt.items():
            is_content = path in made[name][2:]  # which is read where it is sent
            is_told = name in after and name in after[name][1]
            assert is_told or (name not in after and how == "gone") or (is_content and how in CHANGED), (hurt, seed)
            for content in (contents[each] for each in made[name][2:]):
                Artifacts(tmp_path).put_bytes(content)
            EngineBuilds(Artifacts(tmp_path), "p").keep(before[name][0])
        assert listed(tmp_path) == before, ("added again", hurt, seed)
        assert {path: path.read_bytes() for path in contents} == contents, ("added again", hurt, seed)
