"""Models and inputs as files that the farm's commands take: ONNX and NPZ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from orchestrator.model.errors import ModelFileError, SetupError
from orchestrator.model.quantity import counted

Model: TypeAlias = "str | PathLike[str] | Any"
"""An ONNX file, the name of a built-in network, an `onnx.ModelProto`, or a `torch.nn.Module`."""
Inputs: TypeAlias = "Mapping[str, Any] | Sequence[Any] | Any"
"""Arrays or tensors: by the names of the model's inputs, in their order, or the only one."""


def network_of(model: Model) -> str | None:
    """The built-in network that is meant; None for a model of one's own."""
    if isinstance(model, str) and not model.endswith(".onnx") and not Path(model).exists():
        return model
    return None


def write_model(model: Model, inputs: Inputs | None, folder: Path, *, any_batch: bool = False) -> Path:
    """The model as an ONNX file; one that is a file stays where it is.

    A module is exported by `torch.onnx.export`, in evaluation mode, for inputs of these shapes; with `any_batch` for
    any size of their first dimension. Raises ModelFileError for what is no model, and where a module comes without
    inputs.
    """
    if isinstance(model, str | PathLike):
        path = Path(fspath(model))
        if not path.is_file():
            raise ModelFileError(f"there is no file {path}", remedy="give an ONNX file, or a name of `farm networks`")
        return path
    if hasattr(model, "SerializeToString"):
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return path
    if not hasattr(model, "state_dict"):
        raise ModelFileError(f"a {type(model).__name__} is no model", remedy="give an ONNX file or a PyTorch module")
    if inputs is None:
        raise ModelFileError("a PyTorch module is exported by running it", remedy="give `inputs=` of its shapes")
    path = folder / f"{type(model).__name__}.onnx"
    _export(model, inputs, path, any_batch=any_batch)
    return path


def _export(module: Any, inputs: Inputs, path: Path, *, any_batch: bool) -> None:
    try:
        import torch
    except ImportError as e:
        raise SetupError("PyTorch is not installed here", remedy="pip install torch, or give an ONNX file") from e
    positional, named = arguments(module, inputs)
    dynamic = None
    if any_batch:  # one example stands for no other number: the exporter would take it for a constant
        positional, named = tuple(map(_twice, positional)), {name: _twice(each) for name, each in named.items()}
        batch = torch.export.Dim("batch")
        of = [{0: batch} if each.ndim else None for each in positional]
        dynamic = {name: {0: batch} if each.ndim else None for name, each in named.items()} or _by_parameter(module, of)
    was_training = module.training
    try:
        torch.onnx.export(
            module.eval(),
            positional,
            path,
            kwargs=named,
            input_names=[*inputs] if isinstance(inputs, Mapping) and not named else [*named] or None,
            external_data=False,
            dynamic_shapes=dynamic,
        )
    except Exception as e:
        cause = e.__cause__ or e
        raise ModelFileError(
            f"PyTorch cannot export the {type(module).__name__} for these inputs: {type(cause).__name__}: {cause}",
            remedy="`model(...)` must run with them, for a matrix of batches with any number of them; what "
            "torch.onnx.export cannot trace, export with it yourself",
        ) from e
    finally:
        module.train(was_training)


def _twice(tensor: Any) -> Any:
    return tensor.repeat(2, *[1] * (tensor.ndim - 1)) if tensor.ndim and tensor.shape[0] == 1 else tensor


def _by_parameter(module: Any, of: Sequence[Any]) -> Any:
    """Return what is meant of each positional argument, in the order in which `forward` takes them."""
    rest = next(
        (each for each in signature(module.forward).parameters.values() if each.kind is each.VAR_POSITIONAL), None
    )
    return tuple(of) if rest is None else (tuple(of),)


def arguments(module: Any, inputs: Inputs) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The tensors with which a PyTorch module is called: by position, and by name.

    Inputs by name go to the parameters of `forward` that are called so, in their order; where one is called
    otherwise, all go by their position. Arrays of floats get the type of the module's weights.
    """
    import torch

    weights = (each.dtype for each in module.parameters() if each.dtype.is_floating_point)
    floats = next(weights, torch.float32)

    def tensor(value: Any) -> Any:
        made = torch.as_tensor(value)
        return made.to(floats) if made.is_floating_point() and isinstance(value, np.ndarray) else made

    if not isinstance(inputs, Mapping):
        return tuple(map(tensor, [inputs] if hasattr(inputs, "shape") else inputs)), {}
    known = [*signature(module.forward).parameters]
    if not set(inputs) <= set(known):
        return tuple(map(tensor, inputs.values())), {}
    return (), {name: tensor(inputs[name]) for name in known if name in inputs}


def write_inputs(inputs: Inputs, model: Path | None, network: str | None, path: Path) -> None:
    """The inputs as an NPZ file, by the names that the model gives them.

    Raises ModelFileError where there are fewer or more than the model takes.
    """
    arrays = inputs if isinstance(inputs, Mapping) else _named(inputs, model, network)
    np.savez(path, **{name: _array(value) for name, value in arrays.items()})


def _named(inputs: Inputs, model: Path | None, network: str | None) -> dict[str, Any]:
    from kernels.frontend.load import input_names

    values = [inputs] if hasattr(inputs, "shape") or isinstance(inputs, int | float) else list(inputs)
    names = input_names(network, model)
    if len(values) != len(names):
        raise ModelFileError(
            f"{counted(len(values), 'input was', 'inputs were')} given, and the model takes {len(names)}",
            remedy=f"give one array for each of {', '.join(names)}",
        )
    return dict(zip(names, values, strict=True))


def _array(value: Any) -> Any:
    """A tensor on any device, or numbers, in double precision: the command says what single precision does not hold."""
    own = value.detach().cpu().double() if hasattr(value, "detach") else value
    return np.asarray(own, np.float64)
