"""An experiment that another lab takes in is told with the same figures; a bundle that is not whole is refused."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.acts import Site
from orchestrator.acts.submission.importing import import_bundle, keeper
from orchestrator.coordination.artifacts import Artifacts
from orchestrator.ledger import Ledger
from orchestrator.ledger.upkeep import bundles
from orchestrator.ledger.upkeep.bundles.manifest import BLOCKS, MANIFEST, MOST_BYTES
from orchestrator.ledger.upkeep.check import check
from orchestrator.model.errors import NoData, SetupError
from orchestrator.model.event import Sample
from orchestrator.model.exclusion import Exclusion
from orchestrator.model.record import Outcome
from orchestrator.report.export import as_data
from orchestrator.report.gathering import gather
from orchestrator.system.config import Settings
from tests.fuzz.mutations import mutate
from tests.integration.orchestrator import ledgers
from tests.unit.orchestrator import make

from .sites import ME

REMARK = "<b>report</b> of \u00fc"
MARK = "@berlin"


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


def measured(ledger: Ledger, chance: random.Random) -> str:
    """An experiment that is over: blocks that went well, at once or later, that failed, that nobody ran."""
    serials = chance.choice([("A",), ("A", "B")])
    jobs = [make.job("first-1", block, serials[: 1 + block % 2]) for block in range(chance.randrange(4, 9))]
    left_out = [Exclusion("A", "lenet vulkan fp32", "no Vulkan", "lenet", "vulkan", "fp32", {"threads": 2})]
    ledger.submit("first-1", make.many(len(jobs), name="first"), jobs, left_out)
    for job in jobs[:-1]:
        if chance.random() < 0.4:
            ledger.end_attempt(job.job_id, ledgers.begun(ledger, job).attempt, Outcome.LOST, "transport_lost")
        start = ledgers.begun(ledger, job)
        times = (chance.randrange(4 * 10**6, 6 * 10**6) for _ in range(12))
        samples = tuple(
            Sample(seq=i, t_ns=i, index=i, phase="timed", start_ns=i * 10**9, duration_ns=ns)
            for i, ns in enumerate(times)
        )
        fails = chance.random() < 0.2
        more: dict[str, Any] = {"outcome": Outcome.FAILED, "cause": "build_failed"} if fails else {"samples": samples}
        at = 100.0 + 10 * job.block
        ledger.keep(ledgers.record_of(start, started_at=at, ended_at=at + 1.0, **more))
    return jobs[-1].job_id


def told(ledger: Ledger, name: str) -> dict[str, Any]:
    """All that JSON and reports have of an experiment, under the names that it had there."""
    row = ledger.experiment(name)
    text = json.dumps(as_data(gather(ledger, row), ledger.records(name)))
    for here, there in ((name, "first-1"), (row.experiment.name, "first"), (MARK, "")):
        text = text.replace(here, there)
    data: dict[str, Any] = json.loads(text)
    for each in data["records"]:
        del each["token"], each["job_id"]
    return {key: value for key, value in data.items() if key not in ("origin", "generated_at")}


@pytest.fixture
def there(tmp_path: Path, chance: random.Random) -> Iterator[tuple[Ledger, Path]]:
    """The ledger of a lab, and the bundle that it wrote."""
    url, file = f"sqlite:///{tmp_path / 'there.sqlite'}", tmp_path / "first.zip"
    with Ledger(url, rest_s=0.0, quarantine_after=99) as ledger, ledgers.database(url) as database:
        last = measured(ledger, chance)
        given = {"lab": "berlin", "version": "1", "report": REMARK}
        with pytest.raises(NoData, match="not over"):
            bundles.write(database, file, "first-1", **given)
        ledger.cancel(last)
        bundles.write(database, file, "first-1", **given)
        again = tmp_path / "again.zip"
        bundles.write(database, again, "first-1", **given)
        first, second = (zipfile.ZipFile(each).read(BLOCKS) for each in (file, again))
        assert (first == second and b"transport_lost" in first) or b'"attempt":2' not in first
        yield ledger, file


def test_another_lab_tells_the_same_figures_and_counts_nothing_as_its_own(
    there: tuple[Ledger, Path], url: str, tmp_path: Path
) -> None:
    source, file = there
    with Ledger(url) as ledger, ledgers.database(url) as database:
        ledgers.filled(ledger, 3)  # of the same names, and not over
        found, again = bundles.take_in(ledger, file), bundles.take_in(ledger, file)
        name = found.experiment
        assert (found.created, again.created, again.experiment) == (True, False, name)
        assert told(ledger, name) == told(source, "first-1")
        row = ledger.experiment(name)
        assert row.finished and dict(row.counts) == dict(source.experiment("first-1").counts)
        assert row.origin is not None and (row.origin.lab, row.origin.experiment) == ("berlin", "first-1")
        assert "berlin" in gather(ledger, row).origin and row.experiment.name == "first-from-berlin"
        assert [each.serial for each in ledger.listed.of_device("A", 99)] == ["A"] * 2, "its own alone"
        assert name not in [each.experiment_id for each in ledger.waiting()] and ledger.retry(name) == []
        assert [fault for looked in check(database) for fault in looked.faults] == []
        with pytest.raises(SetupError, match="measured in the lab berlin"):
            bundles.write(database, tmp_path / "b.zip", name, lab="rome", version="1", report="")


def changed(file: Path, parts: dict[str, bytes], *, signed: bool = True, more: str = "") -> Path:
    """A bundle with other parts. `signed`: the manifest has their hashes."""
    with zipfile.ZipFile(file) as bundle:
        own = {name: bundle.read(name) for name in bundle.namelist()} | parts
    manifest = json.loads(own[MANIFEST])
    for name in parts if signed else ():
        manifest["parts"][name] = {"bytes": len(own[name]), "sha256": hashlib.sha256(own[name]).hexdigest()}
    with zipfile.ZipFile(made := file.with_name("changed.zip"), "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in {**own, MANIFEST: json.dumps(manifest).encode(), **({more: b"x"} if more else {})}.items():
            bundle.writestr(name, content)
    return made


def refused(file: Path, url: str) -> str:
    with Ledger(url) as ledger:
        with pytest.raises(SetupError) as caught:
            bundles.take_in(ledger, file)
        assert ledger.experiments() == []
    assert caught.value.remedy
    return str(caught.value)


def test_a_bundle_that_is_not_whole_is_refused_with_its_part(
    there: tuple[Ledger, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, file = there
    url = f"sqlite:///{tmp_path / 'here.sqlite'}"
    blocks = zipfile.ZipFile(file).read(BLOCKS)
    lines = blocks.splitlines(keepends=True)
    assert "cannot be read: No such file" in refused(tmp_path / "none.zip", url)
    assert "changed or cut" in refused(changed(file, {BLOCKS: b"".join(lines[1:])}, signed=False), url)
    assert f"{BLOCKS}, line 2" in refused(changed(file, {BLOCKS: lines[0] + lines[-1][:-9]}), url)
    assert BLOCKS in refused(changed(file, {BLOCKS: b"".join([*lines, *lines])}), url), "a job that comes twice"
    for more in ("../../etc/passwd", "/etc/passwd", "experiment.json/x"):
        assert more in refused(changed(file, {}, more=more), url)
    with monkeypatch.context() as patch:
        patch.setitem(MOST_BYTES, BLOCKS, len(blocks) - 1)
        assert f"{len(blocks)} bytes unpacked" in refused(file, url)
    monkeypatch.setattr("orchestrator.ledger.upkeep.bundles.read.MOST_LINE_BYTES", 1000)
    assert "line 1: it has more than 1000" in refused(changed(file, {BLOCKS: b" " * 10**7}), url)


def test_files_of_models_come_along_by_their_hash(
    there: tuple[Ledger, Path], tmp_path: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is not what its name says is refused, as is one that the manifest omits, and nothing is stored."""
    model, kept = chance.randbytes(5000), Artifacts(tmp_path / "here")
    keep = keeper(kept)
    (tmp_path / "m.onnx").write_bytes(model)
    name, file = hashlib.sha256(model).hexdigest(), tmp_path / "with.zip"
    given: dict[str, Any] = {"lab": "berlin", "version": "1", "report": ""}
    given["files_of"] = lambda _: {name: tmp_path / "m.onnx"}
    with ledgers.database(f"sqlite:///{tmp_path / 'there.sqlite'}") as database:
        bundles.write(database, file, "first-1", **given)
        with monkeypatch.context() as patch:
            patch.setitem(bundles.write.__globals__, "MOST_FILE_BYTES", 4999)
            with pytest.raises(SetupError, match="5000 bytes"):
                bundles.write(database, tmp_path / "more.zip", "first-1", **given)
    other = model[::-1]
    with Ledger(f"sqlite:///{tmp_path / 'here.sqlite'}") as ledger:
        for content, more in ((other, ""), (model[1:], ""), (model, f"files/{'ab' * 32}"), (model, "files/x")):
            wrong = changed(file, {f"files/{name}": content}, signed=False, more=more)
            with pytest.raises(SetupError):
                bundles.take_in(ledger, wrong, keep)
        assert ledger.experiments() == [] and not [each for each in kept.folder.rglob("*") if each.is_file()]
        if chance.random() < 0.5:  # the experiment came before, without them
            assert bundles.take_in(ledger, there[1], keep).created
        farm = Site(Settings(state=tmp_path / "here"), ledger, lambda: pytest.fail("it needs no Redis"))
        first, again = (import_bundle(farm, ME, file) for _ in range(2))
        assert (first.brought.files, first.did, again.brought.files, again.did) == (1, True, 0, False)
        assert [each.said for each in ledger.audit.newest(9)] == [first.text] and len(ledger.experiments()) == 1
    assert kept.path(name).read_bytes() == model


def test_whatever_is_changed_is_refused_or_leaves_a_ledger_that_can_be_read(
    there: tuple[Ledger, Path], tmp_path: Path, chance: random.Random
) -> None:
    source, file = there
    whole, url = file.read_bytes(), f"sqlite:///{tmp_path / 'here.sqlite'}"
    parts = {name: zipfile.ZipFile(io.BytesIO(whole)).read(name) for name in (BLOCKS, "experiment.json")}
    with Ledger(url) as ledger, ledgers.database(url) as database:
        taken = 0
        for number in range(80):
            other = tmp_path / "other.zip"
            if number % 2:
                other.write_bytes(mutate([whole], chance) if number % 4 == 1 else whole[: chance.randrange(len(whole))])
            else:
                name = chance.choice([*parts])
                other = changed(file, {name: mutate([parts[name]], chance)})
            try:
                found = bundles.take_in(ledger, other)
            except SetupError as e:
                assert e.remedy, e
                continue
            taken += found.created
            if number % 2:
                assert told(ledger, found.experiment) == told(source, "first-1"), "its bytes were changed, and not seen"
        assert len(ledger.experiments()) == taken
        assert [fault for looked in check(database) for fault in looked.faults] == []
