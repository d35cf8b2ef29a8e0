"""Eight matrices at once: a number type for compiled code that holds one value a matrix.

Small matrices are too small for the vector units of a processor: a row of three or twenty numbers is over
before it starts.  Many small matrices are not.  Here one `Lanes` value holds the *same* entry of LANES
different matrices, and arithmetic acts on all of them in the same instruction.  An algorithm written for one
matrix then runs for LANES of them, with the same text, as long as it does not branch on data: `where` takes
the place of ``if``, and a matrix that is done waits for the others behind a mask.

The type maps to a vector of the compiler (LLVM), which cuts it into whatever registers the processor has.  In
memory a Lanes value is the last axis, of length LANES, of a C-contiguous float64 array; `get1`, `get2`,
`put1` and `put2` read and write it, without checks of bounds.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.codegen import get_host_cpu_features
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 8  # measured with 256-bit registers: 4 and 16 are slower
# Whether one register holds all lanes: of these a processor has 32, twice as many as of half the size.
WIDE = "+avx512f" in get_host_cpu_features()

# Decorator of what only compiled code calls: without wrappers, which take long to compile, and always
# inlined.  Two kernels with the same function beside them would share whichever copy the process has first,
# and the copies differ in their last bits: a process that compiles has others than one that loads.
_BARE: dict[str, Any] = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
part = njit(**_BARE, forceinline=True)


def plain(array: np.ndarray) -> np.ndarray:
    """The array if it is as kernels were compiled for, else a copy that is.

    Any other type of array, be it one that is read-only, would be compiled for anew.
    """
    if array.dtype == np.float64 and array.flags.carray:
        return array
    return np.array(array, dtype=np.float64, order="C")


def empty(shape: tuple[int, ...]) -> np.ndarray:
    """An array whose lanes begin where lines of the cache do: across two lines each access takes twice."""
    size = prod(shape)
    room = np.empty(size + LANES)
    first = -room.__array_interface__["data"][0] // room.itemsize % LANES
    return room[first : first + size].reshape(shape)


class Scratch(threading.local):
    """Arrays in which a thread's kernels work; kept, since fresh memory costs as much as a small block.

    ``shapes`` gives the shapes of the arrays for a size; those of the last size are kept.
    """

    size = 0

    def __init__(self, shapes: Callable[[int], Sequence[tuple[int, ...]]]):
        self._shapes = shapes

    def __call__(self, size: int) -> tuple[np.ndarray, ...]:
        if self.size != size:
            self._kept = tuple(map(empty, self._shapes(size)))
            self.size = size
        return self._kept


class _VectorType(types.Type):
    """A type of the compiler that one of LLVM's vectors holds."""

    def __init__(self, name: str, vector: ir.VectorType) -> None:
        super().__init__(name=name)
        self.vector = vector


@register_model(_VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: object, fe_type: _VectorType) -> None:
        super().__init__(dmm, fe_type, fe_type.vector)


lanes_type = _VectorType(f"Lanes{LANES}", ir.VectorType(ir.DoubleType(), LANES))
mask_type = _VectorType(f"Mask{LANES}", ir.VectorType(ir.IntType(1), LANES))
_VECTOR, _INTEGERS = lanes_type.vector, ir.VectorType(ir.IntType(64), LANES)


def _splat(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    """Return lanes that all have one value."""
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, mask)


def _as_vector(builder: ir.IRBuilder, value: ir.Value, kind: types.Type) -> ir.Value:
    return _splat(builder, value) if kind == types.float64 else value


# ---------------------------------------------------------------------------
# Operators.  A product and a sum may be contracted to one rounding, where the
# processor has such an instruction.


_NUMBERS = ((lanes_type, lanes_type), (lanes_type, types.float64), (types.float64, lanes_type))


def _register(
    op: Callable[..., object],
    result: types.Type,
    emit: Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value],
    operands: tuple[tuple[types.Type, types.Type], ...] = _NUMBERS,
) -> None:
    """Teach the compiler an operator, by default between Lanes and Lanes, or Lanes and a float."""

    class _Template(AbstractTemplate):
        def generic(self, args: tuple, kws: dict) -> Signature | None:
            return signature(result, *args) if args in operands else None

    def lower(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: tuple) -> ir.Value:
        return emit(builder, *map(partial(_as_vector, builder), args, sig.args))

    infer_global(op)(_Template)
    for kinds in operands:
        lower_builtin(op, *kinds)(lower)


_register(operator.add, lanes_type, lambda b, x, y: b.fadd(x, y, flags=("contract",)))
_register(operator.sub, lanes_type, lambda b, x, y: b.fsub(x, y, flags=("contract",)))
_register(operator.mul, lanes_type, lambda b, x, y: b.fmul(x, y, flags=("contract",)))
_register(operator.truediv, lanes_type, ir.IRBuilder.fdiv)
_register(operator.lt, mask_type, lambda b, x, y: b.fcmp_ordered("<", x, y))
_register(operator.le, mask_type, lambda b, x, y: b.fcmp_ordered("<=", x, y))
_register(operator.gt, mask_type, lambda b, x, y: b.fcmp_ordered(">", x, y))
_register(operator.ge, mask_type, lambda b, x, y: b.fcmp_ordered(">=", x, y))
_register(operator.eq, mask_type, lambda b, x, y: b.fcmp_ordered("==", x, y))
_register(operator.and_, mask_type, ir.IRBuilder.and_, ((mask_type, mask_type),))
_register(operator.or_, mask_type, ir.IRBuilder.or_, ((mask_type, mask_type),))


# ---------------------------------------------------------------------------
# Memory


def _pointer(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, array: ir.Value, index: Sequence[ir.Value]
) -> ir.Value:
    """Address of the lanes at an index of all axes but the last, as a vector pointer."""
    struct = context.make_array(kind)(context, builder, array)
    shape = cgutils.unpack_tuple(builder, struct.shape, kind.ndim)
    offset = index[0]
    for i, size in zip(index[1:], shape[1:-1], strict=True):
        offset = builder.add(builder.mul(offset, size), i)
    offset = builder.mul(offset, ir.Constant(offset.type, LANES))
    return builder.bitcast(builder.gep(struct.data, [offset]), _VECTOR.as_pointer())


def _read(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
    value = builder.load(_pointer(context, builder, sig.args[0], args[0], args[1:]))
    value.align = 8
    return value


def _write(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
    store = builder.store(args[-1], _pointer(context, builder, sig.args[0], args[0], args[1:-1]))
    store.align = 8
    return context.get_dummy_value()


@intrinsic
def get1(typingctx, array, i):  # type: ignore[no-untyped-def]
    """Lanes at ``array[i]``."""
    return lanes_type(array, types.intp), _read


@intrinsic
def get2(typingctx, array, i, j):  # type: ignore[no-untyped-def]
    """Lanes at ``array[i, j]``."""
    return lanes_type(array, types.intp, types.intp), _read


@intrinsic
def put1(typingctx, array, i, value):  # type: ignore[no-untyped-def]
    """Store lanes at ``array[i]``."""
    return types.none(array, types.intp, lanes_type), _write


@intrinsic
def put2(typingctx, array, i, j, value):  # type: ignore[no-untyped-def]
    """Store lanes at ``array[i, j]``."""
    return types.none(array, types.intp, types.intp, lanes_type), _write


# ---------------------------------------------------------------------------
# Functions


@intrinsic
def fill(typingctx, value):  # type: ignore[no-untyped-def]
    """One float in all lanes."""
    return lanes_type(types.float64), lambda context, builder, sig, args: _splat(builder, args[0])


@intrinsic
def where(typingctx, mask, yes, no):  # type: ignore[no-untyped-def]
    """``yes`` in the lanes of the mask, ``no`` in the others."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        return builder.select(*map(partial(_as_vector, builder), args, sig.args))

    return lanes_type(mask, yes, no), codegen


@intrinsic
def anywhere(typingctx, mask):  # type: ignore[no-untyped-def]
    """Whether the mask holds in some lane."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        word = builder.bitcast(args[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", word, ir.Constant(word.type, 0))

    return types.boolean(mask), codegen


def _library(name: str, arity: int) -> Callable[..., ir.Value]:
    """Emit a call of a function that LLVM knows for vectors."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * arity)

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64")
        return builder.call(function, args)

    return codegen


def _bitwise(*steps: tuple[str, int]) -> Callable[..., ir.Value]:
    """Emit operations on the bits of a number, each with one pattern, in their order."""

    def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
        bits = builder.bitcast(args[0], _INTEGERS)
        for operation, pattern in steps:
            bits = getattr(builder, operation)(bits, ir.Constant(_INTEGERS, [pattern] * LANES))
        return builder.bitcast(bits, _VECTOR)

    return codegen


@intrinsic
def sqrt(typingctx, x):  # type: ignore[no-untyped-def]
    """Square root."""
    return lanes_type(lanes_type), _library("sqrt", 1)


@intrinsic
def fabs(typingctx, x):  # type: ignore[no-untyped-def]
    """Absolute value."""
    return lanes_type(lanes_type), _library("fabs", 1)


@intrinsic
def with_sign(typingctx, x, sign):  # type: ignore[no-untyped-def]
    """``|x|`` with the sign of the second argument."""
    return lanes_type(lanes_type, lanes_type), _library("copysign", 2)


_EXPONENT = 0x7FF0_0000_0000_0000
_MANTISSA = 0x000F_FFFF_FFFF_FFFF
_ONE = 0x3FF0_0000_0000_0000  # the bits of 1.0
_TWO_52 = 0x4330_0000_0000_0000  # the bits of 2**52: an integer in its low bits reads 2**52 + integer


@intrinsic
def power_below(typingctx, x):  # type: ignore[no-untyped-def]
    """Largest power of two that is not above a positive normal number."""
    return lanes_type(lanes_type), _bitwise(("and_", _EXPONENT))


@intrinsic
def exponent(typingctx, x):  # type: ignore[no-untyped-def]
    """Exponent of a positive normal number, as a float with 2**52 + 1023 added."""
    return lanes_type(lanes_type), _bitwise(("lshr", 52), ("or_", _TWO_52))


@intrinsic
def mantissa(typingctx, x):  # type: ignore[no-untyped-def]
    """Positive normal number over its `power_below`: at least 1, below 2."""
    return lanes_type(lanes_type), _bitwise(("and_", _MANTISSA), ("or_", _ONE))
