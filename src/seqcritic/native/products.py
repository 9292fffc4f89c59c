"""Products of float32 matrices whose factors are rounded to bfloat16 and whose sums stay float32.

A matrix that others are multiplied with from the left is made a `Factor` once, in the form its kind multiplies fastest:

    Factor          as it is: PyTorch's own product, nothing is rounded
    PackedFactor    bfloat16 in the order of products.c, where the processor has instructions for it
    RoundedFactor   rounded to bfloat16, multiplied in float32: the same numbers on any processor, and no faster

The last two differ in the order of their sums alone. Shapes: A [M, K] times B [K, N].
"""

from __future__ import annotations

import ctypes
from functools import cache

import torch
from torch import Tensor

from seqcritic.native.kernels import SWITCH, function_of, switched_off
from seqcritic.native.library import NoLibrary, load


class Factor:
    """A matrix B [K, N], to be multiplied with others from the left."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    def write(self, left: Tensor, out: Tensor, bias: Tensor | None = None) -> None:
        """Write A B, and where there is one the bias [N], to `out` [M, N]."""
        if bias is None:
            torch.mm(left, self.matrix, out=out)
        else:
            torch.addmm(bias, left, self.matrix, out=out)

    def add(self, left: Tensor, out: Tensor) -> None:
        """Add A B to `out` [M, N]."""
        out.addmm_(left, self.matrix)


class RoundedFactor(Factor):
    """A factor with the numbers of bfloat16."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__(_rounded(matrix))

    def write(self, left: Tensor, out: Tensor, bias: Tensor | None = None) -> None:
        """Write A B, and where there is one the bias [N], to `out` [M, N]."""
        super().write(_rounded(left), out, bias)

    def add(self, left: Tensor, out: Tensor) -> None:
        """Add A B to `out` [M, N]."""
        super().add(_rounded(left), out)


class PackedFactor(Factor):
    """A factor as pairs of bfloat16 in panels, for the instructions of the processor."""

    def __init__(self, products: Products, matrix: Tensor) -> None:
        self.products = products
        matrix = _with_unit_stride(matrix)
        depth, self.width = matrix.shape
        # Pairs of bfloat16, 32 bits each; columns up to a whole register of 16 (LANES in products.c).
        self.panels = torch.empty((depth + 1) // 2 * (-(-self.width // 16) * 16), dtype=torch.int32)
        products.pack(depth, self.width, matrix.data_ptr(), *matrix.stride(), self.panels.data_ptr())

    def write(self, left: Tensor, out: Tensor, bias: Tensor | None = None) -> None:
        """Write A B, and where there is one the bias [N], to `out` [M, N]."""
        self._multiply(left, out, None if bias is None else bias.contiguous(), add=False)

    def add(self, left: Tensor, out: Tensor) -> None:
        """Add A B to `out` [M, N]."""
        self._multiply(left, out, None, add=True)

    def _multiply(self, left: Tensor, out: Tensor, bias: Tensor | None, add: bool) -> None:
        left = _with_unit_stride(left)
        assert out.stride(1) == 1 or self.width == 1, "rows of numbers that follow each other"
        self.products.product(
            len(left), self.width, left.shape[1], left.data_ptr(), *left.stride(), self.panels.data_ptr(),
            None if bias is None else bias.data_ptr(), out.data_ptr(), out.stride(0), add,
        )  # fmt: skip


class Products:
    """The functions of products.c; their arguments are sizes and addresses, in its order."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.pack = function_of(library, "pack", "ss a ss a")
        self.product = function_of(library, "product", "sss a ss aaa ss")


def narrow_factor(matrix: Tensor) -> Factor:
    """Return a float32 matrix as a factor in bfloat16."""
    products = None if switched_off() else _products()
    return RoundedFactor(matrix) if products is None else PackedFactor(products, matrix)


def describe() -> str:
    """Say in a few words whether products in bfloat16 are faster here than others, and if not, why."""
    if switched_off():
        return f"no, {SWITCH}=0"
    try:
        load("bfloat16")
    except NoLibrary as error:
        return f"no, {error}"
    return "yes, AVX512-BF16" if _products() else "no, the processor has no AVX512-BF16"


@cache
def _products() -> Products | None:
    try:
        library = load("bfloat16")
    except NoLibrary:
        return None
    # Compiled for this processor, the file itself says whether its instructions were there.
    return Products(library) if library.available() else None


def _rounded(matrix: Tensor) -> Tensor:
    return matrix.bfloat16().float()


def _with_unit_stride(matrix: Tensor) -> Tensor:
    # Turned or not, products.c reads a matrix as it lies; it only wants one of the two strides to be 1.
    return matrix if 1 in matrix.stride() else matrix.contiguous()
