"""Steps on a GPU whose launches and trips through memory count: a product goes on with what follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernels.catalog.product import PRODUCTS
from kernels.options import Limits, Options
from kernels.training.gpu_kernels import KERNELS
from kernels.training.machine import Activation, GpuMachine, Rows, Source, Windows, activation_code
from kernels.training.options import TrainingOptions

from .kernels import COLUMNS, COUNT, ENDS, Columns, End, product_kernel, squared_error, sum_step
from .tiles import Shared, has_room, share

Way = Literal["as it is", "transposed"]
_WINDOWS = ("channels", "oh", "ow", "kw", "sh", "sw", "pad_t", "pad_l", "dh", "dw")
_COUNTING = 64
"""Work-items that add up the losses."""


def is_fused(training: TrainingOptions, options: Options, limits: Limits) -> bool:
    """Return whether a training's steps are joined."""
    wanted = training.steps == "joined"
    if training.steps == "auto":
        wanted = (
            training.updates == "device"
            and not limits.cpu_device
            and not limits.unified_memory
            and PRODUCTS.is_open(options)
        )
    return wanted and has_room(limits.within("training_product"))


class FusedMachine(GpuMachine):
    """Steps for OpenCL and Vulkan, of which several are one."""

    def shared(self, rows: int, columns4: int, depth: int, *, sums: bool = False, may_part: bool = False) -> Shared:
        """Tell how a product is shared out."""
        return share(rows, columns4, depth, self._limits.within("training_product"), sums=sums, may_part=may_part)

    def join(
        self, layer: str, way: Shared, a: Source, b: Rows, *, rows: int, columns4: int, end: End,
        buffers: Mapping[str, str], a_turned: bool = False, b_way: int = 0, ints: Mapping[str, int] | None = None,
        floats: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """A product and its end. `a_turned`: its rows are the depth; `b_way`: as the body says."""
        tile, source = way.tile, a.source if isinstance(a, Windows) else a
        momentum, adds = "momentum" in (floats or {}), "addend" in buffers
        geometry: dict[str, int] = {}
        if isinstance(a, Windows):
            geometry = {name.upper(): a.geometry[name] for name in _WINDOWS}
            geometry |= {"IMAGE_H": a.geometry["h"], "IMAGE_W": a.geometry["w"]}
            geometry["TAPS"] = a.geometry["kh"] * a.geometry["kw"]
        kernel = product_kernel(end, sums=bool(tile.column_sums), adds=adds, momentum=momentum, shared=tile.slices > 1)
        depth = way.each * way.parts
        switches = {
            "A_WAY": 2 * bool(geometry) + a_turned, "B_WAY": b_way, "END": ENDS[end], "ADDS": int(adds),
            "MOMENTUM": int(momentum), **geometry,
        }  # fmt: skip
        sizes = {
            "rows": rows, "columns4": columns4, "depth": depth, "each": way.each, "a_stride": source.stride // 4,
            "b_stride": b.stride // 4,
        }  # fmt: skip
        across, down = -(-columns4 // tile.tile_columns4), -(-rows // (4 * tile.tile_rows4))
        self._context.dispatch(
            kernel, layer, {"a": source.buffer, "b": b.buffer, **buffers}, {**sizes, **(ints or {})},
            (across * tile.group, down, way.parts), floats=floats, tile=tile, switches=switches, group=tile.group,
            flops=8 * rows * depth * columns4, traffic=4 * (a.rows * source.stride + b.elements + 4 * rows * columns4),
        )  # fmt: skip

    def store(
        self, layer: str, way: Shared, a: Source, b: Rows, target: str, *, rows: int, columns4: int, bias: str = "",
        activation: Activation = (), addend: str = "", part_size: int = 0, a_turned: bool = False, b_way: int = 0,
    ) -> None:  # fmt: skip
        """A product that is kept."""
        code, lo, hi = activation_code(activation)
        self.join(
            layer, way, a, b, rows=rows, columns4=columns4, end="store",
            buffers={"bias": bias or b.buffer, "dst": target, **({"addend": addend} if addend else {})},
            ints={"part_size": part_size, "has_bias": int(bool(bias)), "activation": code}, floats={"lo": lo, "hi": hi},
            a_turned=a_turned, b_way=b_way,
        )  # fmt: skip

    def sum_step(
        self, layer: str, buffers: Mapping[str, str], ints: Mapping[str, int], floats: Mapping[str, float]
    ) -> None:
        """Adds up the parts of a gradient and takes the step."""
        bias, momentum = "bias" in buffers, bool(floats)
        switches = {"BIAS": int(bias), "MOMENTUM": int(momentum)}
        items = (ints["all_count"], 1, 1)
        kernel = sum_step(bias=bias, momentum=momentum)
        self._context.dispatch(kernel, layer, buffers, ints, items, floats=floats, switches=switches)

    def squared_error(
        self, layer: str, buffers: Mapping[str, str], ints: Mapping[str, int], floats: Mapping[str, float]
    ) -> None:
        """Loss, gradient, and the step of the last bias."""
        bias, momentum = "bias" in buffers, "momentum" in floats
        tile = self._columns()
        self._context.dispatch(
            squared_error(bias=bias, momentum=momentum), layer, buffers, ints,
            (-(-ints["columns4"] // tile.cx) * tile.shared, 1, 1), floats=floats, tile=tile, group=tile.shared,
            switches={"BIAS": int(bias), "MOMENTUM": int(momentum)},
        )  # fmt: skip

    def _columns(self) -> Columns:
        most = self._limits.max_work_group or COLUMNS.shared
        return COLUMNS if most >= COLUMNS.shared else Columns(1, 1 << (most.bit_length() - 1))

    @property
    def takes_whole(self) -> bool:
        """See `GpuMachine`: never."""
        return False

    def is_fixed(self, name: str) -> bool:
        """See `GpuMachine`."""
        return name in _DIVIDING

    def kernel(
        self, name: str, layer: str, buffers: Mapping[str, str], ints: Mapping[str, int], items: tuple[int, int],
        floats: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """See `GpuMachine`; a work-group adds up the losses."""
        if name != "count_batch":
            super().kernel(name, layer, buffers, ints, items, floats)
            return
        most = min(_COUNTING, self._limits.max_work_group or _COUNTING)
        tile = Columns(1, 1 << (most.bit_length() - 1))
        self._context.dispatch(COUNT, layer, buffers, ints, (tile.shared, 1, 1), tile=tile, group=tile.shared)


_DIVIDING = frozenset(name for name, kernel in KERNELS.items() if {"kh", "hw"} & set(kernel.ints)) | {"cross_entropy"}
