"""Triton kernels of the fast network's convolutions: products of activations and weights, and the folding of r and s.

Activations are channels-last, (R, C), with the rows of a member together.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="no-untyped-def, untyped-decorator"


@triton.jit(do_not_specialize=["rows", "steps", "chunks"])
def product_kernel(
    x, weight, y, sums, rows, steps, chunks, INS: tl.constexpr, OUTS: tl.constexpr,
    STAGES: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_O: tl.constexpr,
):  # fmt: skip
    """y = x times its member's transposed weight (M, O, I), and the sums of y and of y² per channel and program.

    A program keeps the weights of BLOCK_O outputs and passes over the rows of its chunk once.
    """
    member = tl.program_id(1) // chunks
    o, i = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O), tl.arange(0, INS)
    weight_IO = tl.trans(tl.load(weight + (member * OUTS + o)[:, None] * INS + i[None, :]))
    total = tl.zeros((BLOCK_R, BLOCK_O), tl.float32)
    squares = tl.zeros((BLOCK_R, BLOCK_O), tl.float32)
    for step in tl.range(0, steps, num_stages=STAGES):
        r = (tl.program_id(1) % chunks * steps + step) * BLOCK_R + tl.arange(0, BLOCK_R)
        row, exists = (member.to(tl.int64) * rows + r)[:, None], (r < rows)[:, None]
        product = tl.dot(tl.load(x + row * INS + i[None, :], exists, other=0.0), weight_IO, input_precision="ieee")
        rounded = product.to(y.dtype.element_ty)
        tl.store(y + row * OUTS + o[None, :], rounded, exists)
        value = rounded.to(tl.float32)
        total += value
        squares += value * value
    place = tl.program_id(1) * OUTS + o
    tl.store(sums + place, tl.sum(total, 0))
    tl.store(sums + tl.num_programs(1) * OUTS + place, tl.sum(squares, 0))


@triton.jit
def fold_kernel(weight, r, s, folded, outs, ins, BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr):
    """folded[m] = W ∘ r_m s_mᵀ for a 1×1 convolution."""
    member = tl.program_id(2)
    o = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    i = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    mask = (o < outs)[:, None] & (i < ins)[None, :]
    at = o[:, None] * ins + i[None, :]
    rows = tl.load(r + member * outs + o, o < outs, other=0.0)[:, None]
    columns = tl.load(s + member * ins + i, i < ins, other=0.0)[None, :]
    value = tl.load(weight + at, mask, other=0.0) * rows * columns
    tl.store(folded + member.to(tl.int64) * outs * ins + at, value.to(folded.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["parts"])
def unfold_kernel(
    partial, weight, r, s, grad_weight, grad_r, grad_s, parts, outs, ins,
    MEMBERS: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    """The gradients of W, r and s from those of the folded weights, which come in parts.

    partial is (M, parts, O, I). The caller sums grad_r (programs, M, O) and grad_s (programs, M, I) over programs.
    """
    o = tl.program_id(0) * BLOCK_O + tl.arange(0, BLOCK_O)
    i = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    mask = (o < outs)[:, None] & (i < ins)[None, :]
    at = o[:, None] * ins + i[None, :]
    shared = tl.load(weight + at, mask, other=0.0)
    of_weight = tl.zeros((BLOCK_O, BLOCK_I), tl.float32)
    for member in tl.static_range(MEMBERS):
        gradient = tl.zeros((BLOCK_O, BLOCK_I), tl.float32)
        for part in range(parts):
            first = (member * parts + part) * outs * ins
            gradient += tl.load(partial + first + at, mask, other=0.0).to(tl.float32)
        rows = tl.load(r + member * outs + o, o < outs, other=0.0)[:, None]
        columns = tl.load(s + member * ins + i, i < ins, other=0.0)[None, :]
        of_weight += gradient * rows * columns
        place = tl.program_id(1) * MEMBERS + member
        tl.store(grad_r + place * outs + o, tl.sum(gradient * shared * columns, 1), o < outs)
        place = tl.program_id(0) * MEMBERS + member
        tl.store(grad_s + place * ins + i, tl.sum(gradient * shared * rows, 0), i < ins)
    tl.store(grad_weight + at, of_weight, mask)


@triton.jit
def grouped_gradient_kernel(
    g, weight, dx, height, width, rows,
    OUTS: tl.constexpr, INS: tl.constexpr, GROUPS: tl.constexpr,
    STRIDE: tl.constexpr, TOP: tl.constexpr, LEFT: tl.constexpr,
    DOWNS: tl.constexpr, RIGHTS: tl.constexpr, BLOCK_R: tl.constexpr,
):  # fmt: skip
    """The gradient dx of the input of a grouped 3×3 convolution with padding 1, from the gradient g of its output.

    g has height × width pixels per image, and weight is (outputs, 3, 3, INS). A program computes some pixels of dx for
    one group of INS inputs and OUTS outputs. With a stride there are STRIDE² kinds of pixels, each seen by different
    taps. A launch computes one kind, with its DOWNS × RIGHTS taps: the pixels in rows TOP, TOP + STRIDE, … and columns
    LEFT, LEFT + STRIDE, …. Of these there are height × width per image too, and `rows` in all.
    """
    group = tl.program_id(1)
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    image, row, column = r // (width * height), (r // width) % height, r % width
    o, i = tl.arange(0, OUTS), tl.arange(0, INS)
    total = tl.zeros((BLOCK_R, INS), tl.float32)
    for tap in range(DOWNS * RIGHTS):
        down, right = tap // RIGHTS, tap % RIGHTS
        if STRIDE == 2:
            down, right = 2 * down + 1 - TOP, 2 * right + 1 - LEFT
        at_row, at_column = row + (TOP + 1 - down) // STRIDE, column + (LEFT + 1 - right) // STRIDE
        seen = (r < rows) & (at_row >= 0) & (at_row < height) & (at_column >= 0) & (at_column < width)
        pixel = (image * height + at_row) * width + at_column
        g_RO = tl.load(g + pixel[:, None] * (GROUPS * OUTS) + group * OUTS + o[None, :], seen[:, None], other=0.0)
        weight_OI = tl.load(weight + ((group * OUTS + o)[:, None] * 9 + 3 * down + right) * INS + i[None, :])
        total = tl.dot(g_RO, weight_OI, total, input_precision="ieee")
    pixel = (image * height * STRIDE + row * STRIDE + TOP) * (width * STRIDE) + column * STRIDE + LEFT
    at = pixel[:, None] * (GROUPS * INS) + group * INS + i[None, :]
    tl.store(dx + at, total.to(dx.dtype.element_ty), (r < rows)[:, None])
