"""All that a project keeps at the farm, of every kind, has one count and one bound."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from redis import Redis

from dashboards.answers.answers import projects_now
from orchestrator import acts
from orchestrator.acts.access.storage import GIB, Storage
from orchestrator.acts.submission.uploads import Uploads
from orchestrator.coordination.inventory import Inventory
from orchestrator.ledger import JobState, Ledger
from orchestrator.ledger.packed import pack
from orchestrator.model.errors import NotAllowed
from orchestrator.model.rights import Terms
from orchestrator.system.config import Settings
from tests.unit.orchestrator import make

from .ledgers import begun, record_of
from .sites import ME, site


def model(folder: Path, content: bytes) -> Path:
    """A network whose file has these bytes among its weights."""
    given, told = (helper.make_tensor_value_info(each, TensorProto.FLOAT, [1, 1, 1, len(content)]) for each in "xy")
    weights = numpy_helper.from_array(np.frombuffer(content, np.uint8).astype(np.float32).reshape(1, 1, 1, -1), "w")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "added", [given], [told], [weights])
    file = folder / "net.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    file.write_bytes(made.SerializeToString())
    return file


def test_a_project_keeps_what_it_may_of_every_kind(
    farm: Settings, url: str, redis: Redis, seed: int, tmp_path: Path
) -> None:
    """Files that are sent, of experiments, of engines, and records; what is kept twice counts once; of what is refused
    nothing counts, and another project has its own count."""
    chance, kept, records = random.Random(seed), dict[str, int](), 0
    bench = tmp_path / "bench"
    bench.mkdir()
    with Ledger(url) as ledger:
        stage, limit = site(farm, ledger, redis), 100_000
        ledger.people.add_project("vision", "", Terms(storage_gib=limit / GIB))
        ledger.people.add_project("speech", "")

        def sent(content: bytes) -> dict[str, int]:
            uploads, sha256 = Uploads(Storage.of(ledger, farm, "vision")), hashlib.sha256(content).hexdigest()
            if not uploads.held(sha256).whole:
                with uploads.coming(sha256, 0, len(content)) as coming:
                    coming.write(content)
                    coming.end()
            return {sha256: len(content)}

        def submitted(content: bytes) -> dict[str, int]:
            nonlocal records
            Inventory(redis).announce_device(make.device("A"))
            file = model(tmp_path, content[:4000])
            asked = make.experiment(name=f"e{len(content)}", workload={"onnx": file.name})
            done = acts.submit(stage, ME, asked, tmp_path, project="vision")
            if done.did and (job := done.expansion.jobs[0]):
                record = record_of(begun(ledger, job))
                ledger.keep(record)
                records += len(pack(record))
            return {hashlib.sha256(file.read_bytes()).hexdigest(): file.stat().st_size}

        def added(content: bytes) -> dict[str, int]:
            (bench / "llama-bench").write_bytes(b"#!/bin/sh\n" + content)
            abi = chance.choice(["x86", "x86_64"])
            acts.engines.add_engine(stage, ME, "llama.cpp", bench, abi, ["llama-bench"], project="vision")
            folders[abi] = [hashlib.sha256(b"#!/bin/sh\n" + content).hexdigest(), len(content) + 10]
            return {}

        folders, contents = dict[str, list[object]](), [chance.randbytes(chance.randint(1, 40_000)) for _ in range(6)]
        for number in range(16):
            bring, content = chance.choice([sent, submitted, added]), chance.choice(contents)
            before = Storage.of(ledger, farm, "vision").used()
            try:
                kept |= bring(content)
            except NotAllowed as e:
                assert "vision" in str(e) and f"{limit}" in str(e) and "--storage-gib" in e.remedy, (seed, number)
                more = 4 * len(content[:4000]) if bring is submitted else len(content)
                assert before + more + 500 > limit, (seed, number)
                assert Storage.of(ledger, farm, "vision").used() == before, (seed, number)
            engines = {str(sha256): int(str(size)) for sha256, size in folders.values()}
            used = Storage.of(ledger, farm, "vision").used()
            assert used == sum((kept | engines).values()) + records, (seed, number, bring)
            assert used <= limit + records
        assert Storage.of(ledger, farm, "speech").used() == 0
        for path in (farm.state / "artifacts" / "engines-of" / "vision").glob("*/*"):
            path.write_bytes(b"\xff")
        ledger.people.set_project("vision", "", Terms(storage_gib=1.0))
        kept |= submitted(chance.randbytes(4000))  # a build that cannot be read holds back no submission
        used = {"common": 0, "speech": 0, "vision": sum(kept.values()) + records}
        assert Storage.all_used(ledger, farm.state, used) == used
        found = {each.name: each for each in projects_now(ledger, farm.state, None)}
        assert {name: round(each.stored_gib * GIB) for name, each in found.items()} == used
        wait = sum(row.state is JobState.WAITING for name in ledger.experiment_names() for row in ledger.jobs(name))
        assert found["vision"].waiting == wait > 0 == found["common"].waiting
        assert found["vision"].uses["GiB kept"].endswith(" of 1")
