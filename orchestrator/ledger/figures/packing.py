"""Pack a block's figures into the columns of its row, and read them back."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import Any, Literal, get_args

from isal import isal_zlib
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from orchestrator.figures import BlockFigures, PerLayer
from orchestrator.figures.brief import COLUMNS, Brief, brief_of
from orchestrator.ledger.packed import PACK_LEVEL
from orchestrator.ledger.rows import AnyRow
from orchestrator.model.record import Predictions

Apart = Literal["per_layer", "predictions"]
"""Fields with columns of their own: large, and few questions are about them."""

WORDS = (
    b'"energy":{"source":"meter","rails","package","board","odpm","nvml","rapl","model","trace","idle_power_w":{"value'
    b'":"course":{"load_s":,"bins_ms":["first_ms":,"last_ms":"role":"canary","replay","import","workstation","stream":'
    b'true,"invalid":[{"code":"charging","gauge_frozen","thermal_status","background_load","clock_cap","throttled","ou'
    b'tcome":"invalid","failed","lost","killed","cancelled","cause":"","reasons":["{"code":"few_samples","detail":" ti'
    b'med samples"},{"code":"condition_unproven","detail":"thermal_status"},{"code":"hot"},{"code":"drift"},{"code":"u'
    b'nstable"},{"code":"not_warm"},{"code":"sampler_cost"},{"code":"rounding"},{"name":"airplane_mode","wanted":"on",'
    b'"before":"off","held":"on","bluetooth_off","screen_off","supply","discharging","vulkan","cpu","version":"1.3.","'
    b'vendor":"Qualcomm","ARM","Adreno","Mali-","device_name":"llvmpipe (LLVM ","phone","local_bytes":"subgroup_size":'
    b'"driver":"llvmpipe Mesa ","library":"libvulkan.so.1","experiment_id":"","job_id":"","attempt":1,"token":,"cell_i'
    b'd":"","block":,"worker":"","serial":"virtual-galaxy_s7-0","model":"SM-G930V","profile":"galaxy_s7","source":"vir'
    b'tual","boot_id":"","fingerprint":"","started_at":17,"ended_at":17,"outcome":"ok","doubts":[{"code":"virtual_devi'
    b'ce","detail":"galaxy_s7"},{"code":"shared_host","detail":"the cores of "},{"code":"condition_unproven","detail":'
    b'"thermal_status"},{"code":"relative_energy","detail":"gain known to 5%"},{"code":"short_load","detail":" s, want'
    b'ed are 30 s"},{"code":"modelled_power"}],"conditions":[{"name":"battery_percent","wanted":"20 to 100 %","before"'
    b':" %","proven":true},{"name":"battery_temp","wanted":"at most 40 C","before":" C","proven":true},{"name":"therma'
    b'l_status","wanted":"at most 1","proven":false},{"name":"free_storage","wanted":"200 MiB","before":" MiB","proven'
    b'":true},{"name":"awake","wanted":"awake, no time-out","before":"wakefulness=Awake, screen_off_timeout=30000, sta'
    b'y_on_while_plugged_in=0","held":"Awake, no time-out; at the end Awake, no time-out","proven":true,"restored":tru'
    b'e}],"runs_on":{"api":"opencl","precision":"fp32","facts":{"api":"opencl","version":"OpenCL 3.0","device_name":""'
    b',"vendor":"","driver":"Portable Computing Language 3.1","library":"libOpenCL.so.1","precisions":["fp32","relaxed'
    b'","fp16","fp16_arithmetic"],"global_bytes":,"max_buffer_bytes":,"local_bytes":,"max_work_group":1024,"max_work_i'
    b'tem_sizes":[1024,1024,1024],"compute_units":,"clock_mhz":,"offset_alignment":128,"unified_memory":true,"max_imag'
    b'e_width":16384,"max_image_height":16384},"threads":},"provenance":{"plan_hash":"","agent_sha256":"","agent_versi'
    b'on":"0.1.0","model_sha256":"","fingerprint":":user/release-keys","boot_id":"","farm_version":"0.1.0"},"times":{"'
    b'count":,"mean_ms":,"variance":0.0,"whole":true,"median_ms":,"min_ms":,"p90_ms":,"p99_ms":,"mad_ms":0.0,"quantile'
    b's_ms":[],"fifths_ms":[]},"inferences":,"rate":{"samples":,"frames":1,"median_per_s":,"slowest_per_s":},"setup_ns'
    b'":{"slot":,"library":,"discovery":,"context":,"build":,"pipeline":,"cache":,"allocate":,"descriptors":,"record":'
    b',"upload":,"input":,"readback":},"setup_cached":true,"first_ns":,"first_timed_ms":,"memory":{"device_peak_bytes"'
    b':,"vm_hwm_bytes":,"pss_bytes":},"pass_ms":,"energy":{"source":"gauge","scope":"device","name":"battery gauge","a'
    b'bsolute":false,"gain_uncertainty":0.05,"load_s":,"inferences":,"per_inference_j":{"value":,"std":},"gross_per_in'
    b'ference_j":{"value":0.0,"std":0.0},"load_power_w":{"value":,"std":},"idle_power_w":{"value":,"std":},"doubts":[{'
    b'"code":"relative_energy","detail":"gain known to 5%"},{"code":"short_load"},{"code":"modelled_power"}]}}'
)
"""The text from which compression starts, since bodies are mostly made of it: a row needs about half the bytes. A
change of it makes older rows unreadable, and so is one more in `FIGURES_VERSION`."""

MAX_BYTES = 64 << 20
_APART = set(get_args(Apart))


def parts(figures: BlockFigures) -> dict[str, Any]:
    """The columns of a row that hold the figures."""
    return {
        "body": _packed(figures.model_dump_json(exclude=_APART, exclude_defaults=True).encode(), WORDS),
        "per_layer": _apart(figures.per_layer),
        "predictions": _apart(figures.predictions),
        "brief": to_json(brief_of(figures)[len(COLUMNS) :], inf_nan_mode="constants").decode(),
    }


def brief(row: AnyRow, known: dict[str, dict[str, str]]) -> Brief:
    """Return the `Brief` of a row with `COLUMNS` and `brief`, or with `body` where an older ledger has no brief
    there. `known`: provenances by their JSON; most blocks have one in common, and then share it. Raises ValueError,
    TypeError, zlib.error."""
    text = row.brief
    if text is None:
        return brief_of(unpacked(row))
    end = text.rfind(',{"') if text.endswith('"}]') else 0
    if provenance := known.get(text[end:]):
        with suppress(ValueError):  # a text that ends with `,{` was cut in two
            return Brief(*(*row[: len(COLUMNS)], *from_json(f"{text[:end]}]", allow_inf_nan=False), provenance))
    found = Brief(*row[: len(COLUMNS)], *from_json(text, allow_inf_nan=False))
    if end > 0:
        known[text[end:]] = found.provenance
    return found


def _apart(part: BaseModel | None) -> bytes | None:
    return None if part is None else _packed(part.model_dump_json(exclude_defaults=True).encode(), b"")


def unpacked(row: AnyRow) -> BlockFigures:
    """The figures of a row, with what stands apart where its columns were read. Raises ValueError, zlib.error."""
    figures = BlockFigures.model_validate_json(_unpacked(row.body, WORDS))
    per_layer, predictions = (getattr(row, name) if name in row._fields else None for name in get_args(Apart))
    parts: dict[str, object] = {}
    if per_layer is not None:
        parts["per_layer"] = PerLayer.model_validate_json(_unpacked(per_layer, b""))
    if predictions is not None:
        parts["predictions"] = Predictions.model_validate_json(_unpacked(predictions, b""))
    return figures.model_copy(update=parts) if parts else figures


def _packed(text: bytes, words: bytes) -> bytes:
    packer = isal_zlib.compressobj(PACK_LEVEL, zdict=words) if words else isal_zlib.compressobj(PACK_LEVEL)
    return packer.compress(text) + packer.flush()


def _unpacked(packed: bytes, words: bytes) -> bytes:
    unpacker = zlib.decompressobj(zdict=words)
    text = unpacker.decompress(packed, MAX_BYTES)
    if not unpacker.eof:
        raise ValueError(f"figures unpack to more than {MAX_BYTES} bytes")
    return text
