"""Triton kernels at the end of a block: BatchNorm, stochastic depth, the shortcut (with a BatchNorm or without) and the
ReLU, forward and backward. The words, and how passes are cut into programs, are those of `norm_kernels`."""

import triton
import triton.language as tl

from counterpoint.nn.fast.norm_kernels import member_vector, program, tile

# mypy: disable-error-code="no-untyped-def, untyped-decorator"


@triton.jit(do_not_specialize=["rows", "chunks", "pixels"])
def residual_kernel(
    y, a, b, other, other_a, other_b, keep, out, rows, pixels, chunks, channels,
    NORMED: tl.constexpr, HAS_KEEP: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """out = relu(keep·(a·y + b) + shortcut), where the shortcut is `other`, or other_a·other + other_b if NORMED."""
    member, first, c, inside = program(1, chunks, channels, BLOCK_R, BLOCK_C)
    slope, offset = member_vector(a, member, c, inside, channels), member_vector(b, member, c, inside, channels)
    at, mask, row, exists = tile(member, first, rows, c, inside, channels, BLOCK_R)
    branch = slope * tl.load(y + at, mask, other=0.0).to(tl.float32) + offset
    if HAS_KEEP:
        branch *= tl.load(keep + row // pixels, exists, other=0.0)[:, None]
    shortcut = tl.load(other + at, mask, other=0.0).to(tl.float32)
    if NORMED:
        shortcut = shortcut * member_vector(other_a, member, c, inside, channels)
        shortcut += member_vector(other_b, member, c, inside, channels)
    tl.store(out + at, tl.maximum(branch + shortcut, 0.0).to(out.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["rows", "pixels", "steps", "chunks"])
def residual_gradient_sums_kernel(
    g, out, y, other, keep, dz, sums, other_sums, rows, pixels, steps, chunks, channels,
    NORMED: tl.constexpr, HAS_KEEP: tl.constexpr, STAGES: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """dz = g where out > 0; each program's Σ keep·dz and Σ keep·dz·y and, if NORMED, Σ dz and Σ dz·other."""
    member, first, c, inside = program(steps, chunks, channels, BLOCK_R, BLOCK_C)
    of_z = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_zy = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_other = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_other_y = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    for step in tl.range(0, steps, num_stages=STAGES):
        at, mask, row, exists = tile(member, first + step * BLOCK_R, rows, c, inside, channels, BLOCK_R)
        gradient = tl.load(g + at, mask, other=0.0)
        gradient = tl.where(tl.load(out + at, mask, other=0.0) > 0, gradient, 0.0)
        tl.store(dz + at, gradient, mask)
        gradient = gradient.to(tl.float32)
        branch = gradient
        if HAS_KEEP:
            branch = gradient * tl.load(keep + row // pixels, exists, other=0.0)[:, None]
        of_z += branch
        of_zy += branch * tl.load(y + at, mask, other=0.0).to(tl.float32)
        if NORMED:
            of_other += gradient
            of_other_y += gradient * tl.load(other + at, mask, other=0.0).to(tl.float32)
    place = tl.program_id(0) * channels + c
    size = tl.num_programs(0) * channels
    tl.store(sums + place, tl.sum(of_z, 0), inside)
    tl.store(sums + size + place, tl.sum(of_zy, 0), inside)
    if NORMED:
        tl.store(other_sums + place, tl.sum(of_other, 0), inside)
        tl.store(other_sums + size + place, tl.sum(of_other_y, 0), inside)


@triton.jit(do_not_specialize=["rows", "chunks", "pixels"])
def residual_gradient_kernel(
    dz, y, a, q, t, other, other_a, other_q, other_t, keep, dy, d_other, rows, pixels, chunks, channels,
    NORMED: tl.constexpr, HAS_KEEP: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """dy = a·keep·dz + q·y + t, and the same for a shortcut with BatchNorm (which nothing drops)."""
    member, first, c, inside = program(1, chunks, channels, BLOCK_R, BLOCK_C)
    slope, of_y = member_vector(a, member, c, inside, channels), member_vector(q, member, c, inside, channels)
    constant = member_vector(t, member, c, inside, channels)
    at, mask, row, exists = tile(member, first, rows, c, inside, channels, BLOCK_R)
    gradient = tl.load(dz + at, mask, other=0.0).to(tl.float32)
    branch = slope * gradient
    if HAS_KEEP:
        branch *= tl.load(keep + row // pixels, exists, other=0.0)[:, None]
    result = branch + of_y * tl.load(y + at, mask, other=0.0).to(tl.float32) + constant
    tl.store(dy + at, result.to(dy.dtype.element_ty), mask)
    if NORMED:
        value = tl.load(other + at, mask, other=0.0).to(tl.float32)
        result = member_vector(other_a, member, c, inside, channels) * gradient
        result += member_vector(other_q, member, c, inside, channels) * value
        result += member_vector(other_t, member, c, inside, channels)
        tl.store(d_other + at, result.to(d_other.dtype.element_ty), mask)
