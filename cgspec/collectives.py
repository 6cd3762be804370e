"""What collectives compute, on tensors of one process, as torch.distributed and Ray's collective nodes define it.

An allgather joins along the first dimension, a reducescatter cuts along it; ``avg`` of whole numbers is cut towards 0.
Sums are taken in the order of the ranks. torch is imported where it is needed: whoever has a tensor has it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from cgspec.graph import Collective

Tensor = Any


def unfit(collective: Collective, size: int, operands: Sequence[object]) -> str | None:
    """Why a member's operands cannot take part in a group of ``size``; None if they can."""
    torch = sys.modules.get("torch")
    for operand in operands:
        if torch is None or not isinstance(operand, torch.Tensor):
            return f"an operand of {collective.kind} has to be a tensor, and it is a {type(operand).__name__}"
    tensors: Sequence[Tensor] = operands
    kinds = {str(tensor.dtype) for tensor in tensors}
    if len(kinds) > 1 and collective.kind == "allreduce":
        return f"the operands of one fused {collective.kind} need one dtype, and these have {', '.join(sorted(kinds))}"
    for tensor in tensors:
        if collective.kind != "allreduce" and tensor.dim() == 0:
            return f"{collective.kind} works along the first dimension, and the operand has none"
        if collective.kind == "reducescatter" and tensor.shape[0] % size:
            return f"reducescatter cuts the first dimension into {size} equal parts, and it is {tensor.shape[0]}"
    return None


def ready(operand: Tensor, *, alone: bool) -> Tensor:
    """The operand as collectives need it: without history, its elements next to each other.

    Args:
        alone: whether the group has no other member, so that this is the result already: a tensor of its own.
    """
    operand = operand.detach()
    return operand.clone() if alone else operand.contiguous()


def together(collective: Collective, members: Sequence[Sequence[Tensor]]) -> list[tuple[Tensor, ...]]:
    """Every member's results, by rank; tensors of their own.

    Args:
        members: by rank, each one's operands.

    Raises:
        ValueError: the members disagree on shapes or dtypes, or torch cannot compute it.
    """
    columns = [_column(collective, operands) for operands in zip(*members, strict=True)]
    return list(zip(*columns, strict=True))


def _column(collective: Collective, operands: tuple[Tensor, ...]) -> list[Tensor]:
    """One operand of every member to one result of every member."""
    agree([told(operand) for operand in operands], collective)
    if collective.kind == "allgather":
        return [join(operands) for _ in operands]
    whole = reduced(collective.op or "sum", operands)
    if collective.kind == "reducescatter":
        return [part(whole, rank, len(operands)) for rank in range(len(operands))]
    return [whole.clone() for _ in operands]


def told(operand: Tensor) -> str:
    """Shape and dtype, for comparing and for people."""
    return f"{list(operand.shape)} {str(operand.dtype).removeprefix('torch.')}"


def agree(descriptions: Sequence[str], collective: Collective) -> None:
    """Asks that all members bring the same.

    Raises:
        ValueError: they do not.
    """
    for rank, description in enumerate(descriptions):
        if description != descriptions[0]:
            raise ValueError(
                f"the members of one {collective.kind} bring tensors of one shape and dtype: "
                f"rank 0 brings {descriptions[0]}, rank {rank} brings {description}"
            )


def join(operands: Sequence[Tensor]) -> Tensor:
    """The allgather of operands by rank."""
    import torch

    return torch.cat(tuple(operands))


def part(whole: Tensor, rank: int, size: int) -> Tensor:
    """A member's part of a reducescatter, a tensor of its own."""
    rows = whole.shape[0] // size
    return whole[rank * rows : (rank + 1) * rows].clone()


def reduced(op: str, operands: Sequence[Tensor]) -> Tensor:
    """The reduction of operands by rank, a new tensor.

    Raises:
        ValueError: there is no such reduction of this dtype.
    """
    dtype = operands[0].dtype
    try:
        total = operands[0].to(_carrier(dtype), copy=True)
        for operand in operands[1:]:
            total = _pair(op, total, operand.to(total.dtype))
    except RuntimeError as error:
        raise ValueError(f"{op} of {dtype}: {error}") from None
    return (average(total, len(operands)) if op == "avg" else total).to(dtype)


def average(total: Tensor, size: int) -> Tensor:
    """A sum over ``size`` members, divided."""
    import torch

    whole = not (total.dtype.is_floating_point or total.dtype.is_complex)
    return torch.div(total, size, rounding_mode="trunc") if whole else total / size


def _pair(op: str, total: Tensor, operand: Tensor) -> Tensor:
    import torch

    table = {"product": torch.mul, "max": torch.maximum, "min": torch.minimum}
    return table.get(op, torch.add)(total, operand)


def _carrier(dtype: Any) -> Any:
    """What a reduction is computed in: yes and no count as 1 and 0, eight bits are too few for floats."""
    import torch

    if dtype == torch.bool:
        return torch.uint8
    return torch.float32 if dtype.is_floating_point and dtype.itemsize == 1 else dtype
