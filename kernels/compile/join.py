"""Plans of the segments -> one plan, with transfers of what each leaves to the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernels.compile.assemble import BLOB
from kernels.ir.graph import Graph
from kernels.plan.files import content_of, sha256_of
from kernels.plan.model import (
    ITEM_BYTES,
    Buffer,
    Bundle,
    Plan,
    Port,
    Requires,
    Step,
    Transfer,
)
from kernels.plan.steps import renamed


def join(graph: Graph, bundles: Sequence[Bundle]) -> Bundle:
    """The plan of a graph whose segments are compiled, in order. Pools, buffers and programs get the segment's number.

    A segment's memory is its own, so that it may compute one frame while another computes the next.
    """
    blobs = [bundle.files[BLOB] for bundle in bundles]
    blob = content_of(blobs, sum(map(len, blobs)))
    files = {name: content for bundle in bundles for name, content in bundle.files.items()} | {BLOB: blob}
    own = next(bundle.plan for bundle in bundles if bundle.plan.api != "cpu")
    parts = [_Part(number, bundle.plan, own.api) for number, bundle in enumerate(bundles)]
    ports = _Ports(graph, parts)
    offset, buffers = 0, []
    for part in parts:
        buffers += [ports.role(buffer) for buffer in part.buffers(offset)]
        offset += part.plan.blob_bytes
    options = {key: value for part in parts for key, value in part.plan.options.items() if ":" in key}
    plan = Plan(
        name=graph.name,
        api=own.api,
        precision=own.precision,
        options={**own.options, **options},
        blob_bytes=len(blob),
        files={name: sha256_of(content) for name, content in sorted(files.items())},
        requires=_together([part.plan.requires for part in parts if part.plan.api != "cpu"]),
        programs=tuple(program for part in parts for program in part.programs()),
        pools=tuple(pool for part in parts for pool in part.pools()),
        buffers=tuple(buffers),
        steps=tuple(ports.steps()),
        inputs=tuple(ports.inputs[name] for name in graph.inputs if name in ports.inputs),
        outputs=tuple(ports.outputs[name] for name in ports.wanted),
    )
    return Bundle(plan, files)


class _Part:
    """The plan of one segment, its parts named as in the whole."""

    def __init__(self, number: int, plan: Plan, api: str) -> None:
        self._prefix, self.plan = f"{number + 1}.", plan
        self._side = {} if plan.api == api else {"api": "cpu"}

    def name(self, id: str) -> str:
        return self._prefix + id

    def port(self, port: Port) -> Port:
        return port.model_copy(update={"buffer": self.name(port.buffer)})

    def programs(self) -> list[object]:
        return [each.model_copy(update={"id": self.name(each.id), **self._side}) for each in self.plan.programs]

    def pools(self) -> list[object]:
        return [each.model_copy(update={"id": self.name(each.id), **self._side}) for each in self.plan.pools]

    def buffers(self, offset: int) -> Iterator[Buffer]:
        """`offset`: of its content in the blob of the whole."""
        for each in self.plan.buffers:
            start = None if each.blob_offset is None else offset + each.blob_offset
            new = {"id": self.name(each.id), "pool": self.name(each.pool), "blob_offset": start}
            yield each.model_copy(update=new)

    def step(self, step: Step) -> Step:
        return renamed(step, self.name, self.name)


class _Ports:
    """The makers and readers of the tensors between segments."""

    def __init__(self, graph: Graph, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self.inputs: dict[str, Port] = {}
        """Inputs of the whole: where the first segment that reads one has it."""
        self.outputs = {port.name: part.port(port) for part in parts for port in part.plan.outputs}
        inner = {port.name for part in parts for port in part.plan.inputs}
        kept = [name for name in self.outputs if name not in inner and name not in graph.outputs]
        self.wanted = (*graph.outputs, *kept)
        """Outputs of the whole: the graph's own, and what was asked to be kept."""
        for part in parts:
            for port in part.plan.inputs:
                if port.name in graph.inputs:
                    self.inputs.setdefault(port.name, part.port(port))

    def role(self, buffer: Buffer) -> Buffer:
        """A buffer between segments is an activation of the whole."""
        ports = (*self.inputs.values(), *(self.outputs[name] for name in self.wanted))
        inner = buffer.role in ("input", "output") and buffer.id not in {port.buffer for port in ports}
        return buffer.model_copy(update={"role": "activation"}) if inner else buffer

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the segments; what one leaves goes on to the others when it is done."""
        yield from self._transfers(self.inputs, 0)
        for number, part in enumerate(self._parts):
            yield from (part.step(step) for step in part.plan.steps)
            left = {port.name: part.port(port) for port in part.plan.outputs if port.name not in self.inputs}
            yield from self._transfers(left, number + 1)

    def _transfers(self, sources: dict[str, Port], first: int) -> Iterator[Transfer]:
        """Yield the transfers to the segments from `first` on."""
        for part in self._parts[first:]:
            for port in part.plan.inputs:
                source, target = sources.get(port.name), part.port(port)
                if source is not None and source.buffer != target.buffer:
                    size = ITEM_BYTES[port.dtype]
                    for extent in port.shape:
                        size *= extent
                    yield Transfer(layer=port.name, source=source.buffer, target=target.buffer, bytes=size)


def _together(each: Sequence[Requires]) -> Requires:
    """Join the needs of segments of one device: their memory side by side, and of all else the most."""
    most = {name: max(getattr(one, name) for one in each) for name in Requires.model_fields}
    return Requires(**{**most, "total_bytes": sum(one.total_bytes for one in each)})
