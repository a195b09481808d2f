"""Triton kernels at the end of a block: BatchNorm, stochastic depth, the shortcut (with a BatchNorm or without) and the
ReLU, forward and backward. Names, and how passes are cut into programs, are those of `norm_kernels`."""

import triton
import triton.language as tl

from counterpoint.nn.fast.norm_kernels import member_vector, program, tile

# mypy: disable-error-code="no-untyped-def, untyped-decorator"


@triton.jit(do_not_specialize=["rows", "chunks", "pixels"])
def residual_kernel(
    y, a, b, shortcut, shortcut_a, shortcut_b, keep, out, rows, pixels, chunks, channels,
    NORMED: tl.constexpr, HAS_KEEP: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """out = relu(keep·(a·y + b) + shortcut), with shortcut_a·shortcut + shortcut_b in place of shortcut if NORMED."""
    member, first, c, inside = program(1, chunks, channels, BLOCK_R, BLOCK_C)
    slope, offset = member_vector(a, member, c, inside, channels), member_vector(b, member, c, inside, channels)
    at, mask, row, exists = tile(member, first, rows, c, inside, channels, BLOCK_R)
    branch = slope * tl.load(y + at, mask, other=0.0).to(tl.float32) + offset
    if HAS_KEEP:
        branch *= tl.load(keep + row // pixels, exists, other=0.0)[:, None]
    added = tl.load(shortcut + at, mask, other=0.0).to(tl.float32)
    if NORMED:
        added = added * member_vector(shortcut_a, member, c, inside, channels)
        added += member_vector(shortcut_b, member, c, inside, channels)
    tl.store(out + at, tl.maximum(branch + added, 0.0).to(out.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["rows", "pixels", "steps", "chunks"])
def residual_gradient_sums_kernel(
    g, out, y, shortcut, keep, dz, sums, shortcut_sums, rows, pixels, steps, chunks, channels,
    NORMED: tl.constexpr, HAS_KEEP: tl.constexpr, STAGES: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """dz = g where out > 0, and per program Σ keep·dz and Σ keep·dz·y and, if NORMED, Σ dz and Σ dz·shortcut."""
    member, first, c, inside = program(steps, chunks, channels, BLOCK_R, BLOCK_C)
    of_z = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_zy = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_shortcut = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_shortcut_y = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
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
            of_shortcut += gradient
            of_shortcut_y += gradient * tl.load(shortcut + at, mask, other=0.0).to(tl.float32)
    place = tl.program_id(0) * channels + c
    size = tl.num_programs(0) * channels
    tl.store(sums + place, tl.sum(of_z, 0), inside)
    tl.store(sums + size + place, tl.sum(of_zy, 0), inside)
    if NORMED:
        tl.store(shortcut_sums + place, tl.sum(of_shortcut, 0), inside)
        tl.store(shortcut_sums + size + place, tl.sum(of_shortcut_y, 0), inside)


@triton.jit(do_not_specialize=["rows", "chunks", "pixels"])
def residual_gradient_kernel(
    dz, y, a, q, t, shortcut, shortcut_a, shortcut_q, shortcut_t, keep, dy, d_shortcut, rows, pixels, chunks, channels,
    NORMED: tl.constexpr, HAS_KEEP: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """dy = a·keep·dz + q·y + t, and the same without keep for the shortcut if NORMED."""
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
        value = tl.load(shortcut + at, mask, other=0.0).to(tl.float32)
        result = member_vector(shortcut_a, member, c, inside, channels) * gradient
        result += member_vector(shortcut_q, member, c, inside, channels) * value
        result += member_vector(shortcut_t, member, c, inside, channels)
        tl.store(d_shortcut + at, result.to(d_shortcut.dtype.element_ty), mask)
