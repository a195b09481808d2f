"""Triton kernels around BatchNorm: those that pass over the activations once, and small ones between the passes.

Activations are channels-last, seen as (R, C) with R = M·B·H·W rows; the rows of a member lie together. A pass is cut
into programs, each for one member, one chunk of its rows and some channels. Each program writes its sums once, and the
next small kernel adds them up. No atomics are used, so the same input gives the same bits.

A layer is y → z = a·y + b → relu(z)·s, where a and b (M, C) hold BatchNorm and the factor r of the convolution that
made y, and s (M, C) is the factor of the convolution that reads the result.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="no-untyped-def, untyped-decorator"


@triton.jit
def program(steps, chunks, channels, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    """The member, its first row and the channels that this program works on."""
    member = tl.program_id(0) // chunks
    first = (tl.program_id(0) % chunks) * steps * BLOCK_R
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    return member, first, c, c < channels


@triton.jit
def tile(member, first, rows, c, inside, channels, BLOCK_R: tl.constexpr):
    """The tile that begins with a member's row `first`: the offsets of its values and which of them exist, and the
    numbers of its rows in the whole batch and which of them exist."""
    r = first + tl.arange(0, BLOCK_R)
    row = member.to(tl.int64) * rows + r
    return row[:, None] * channels + c[None, :], (r < rows)[:, None] & inside[None, :], row, r < rows


@triton.jit(do_not_specialize=["rows", "steps", "chunks"])
def sums_kernel(
    y, sums, rows, steps, chunks, channels, STAGES: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    """The sums of y and of y² per channel and program, written to sums (2, M·chunks, C)."""
    member, first, c, inside = program(steps, chunks, channels, BLOCK_R, BLOCK_C)
    total = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    squares = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    for step in tl.range(0, steps, num_stages=STAGES):
        at, mask, _, _ = tile(member, first + step * BLOCK_R, rows, c, inside, channels, BLOCK_R)
        value = tl.load(y + at, mask, other=0.0).to(tl.float32)
        total += value
        squares += value * value
    place = tl.program_id(0) * channels + c
    tl.store(sums + place, tl.sum(total, 0), inside)
    tl.store(sums + tl.num_programs(0) * channels + place, tl.sum(squares, 0), inside)


@triton.jit
def _sum_of_chunks(sums, which, member, members, chunks, c, inside, channels, BLOCK_P: tl.constexpr):
    """The sum over a member's chunks of sums[which], (C,)."""
    p = tl.arange(0, BLOCK_P)
    row = (which * members + member) * chunks + p
    mask = (p < chunks)[:, None] & inside[None, :]
    return tl.sum(tl.load(sums + row[:, None] * channels + c[None, :], mask, other=0.0), 0)


@triton.jit(do_not_specialize=["rows", "chunks"])
def coefficients_kernel(
    sums, r, weight, bias, running_mean, running_var, seen,
    a, b, mean, inverse, member_sums,
    rows, chunks, channels, eps, momentum,
    MEMBERS: tl.constexpr, SHARED: tl.constexpr, HAS_R: tl.constexpr, TRACK: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """BatchNorm from the programs' sums: a = γ·r/σ and b = β − γ·μ/σ (M, C), and the running statistics.

    Shared statistics are those of the rows of all members. mean and inverse (1/σ) are (M, C) too; their rows are equal
    if the statistics are shared. member_sums (2, M, C) keeps Σy and Σy² for the gradient of r.
    """
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    all_sum = tl.zeros((BLOCK_C,), tl.float32)
    all_squares = tl.zeros((BLOCK_C,), tl.float32)
    # With shared statistics and without r, the members need not be told apart, and all sums are added up at once.
    groups: tl.constexpr = 1 if SHARED and not HAS_R else MEMBERS
    for member in tl.static_range(groups):
        total = _sum_of_chunks(sums, 0, member, groups, chunks * (MEMBERS // groups), c, inside, channels, BLOCK_P)
        squares = _sum_of_chunks(sums, 1, member, groups, chunks * (MEMBERS // groups), c, inside, channels, BLOCK_P)
        if HAS_R:
            tl.store(member_sums + member * channels + c, total, inside)
            tl.store(member_sums + (MEMBERS + member) * channels + c, squares, inside)
            factor = tl.load(r + member * channels + c, inside, other=0.0)
            total *= factor
            squares *= factor * factor
        all_sum += total
        all_squares += squares
        if not SHARED:
            _normalise_member(
                total, squares, rows, member, r, weight + member * channels, bias + member * channels,
                running_mean + member * channels, running_var + member * channels, a, b, mean, inverse,
                c, inside, channels, eps, momentum, HAS_R, TRACK, True,
            )  # fmt: skip
    if SHARED:
        for member in tl.static_range(MEMBERS):
            _normalise_member(
                all_sum, all_squares, rows * MEMBERS, member, r, weight, bias, running_mean, running_var,
                a, b, mean, inverse, c, inside, channels, eps, momentum, HAS_R, TRACK, member == 0,
            )  # fmt: skip
    if TRACK and tl.program_id(0) == 0:
        tl.store(seen, tl.load(seen) + 1)


@triton.jit
def _normalise_member(
    total, squares, count, member, r, weight, bias, running_mean, running_var, a, b, mean, inverse,
    c, inside, channels, eps, momentum, HAS_R: tl.constexpr, TRACK: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """One member's row of a, b, mean and inverse.

    Members that share their statistics also share the running ones, which are updated once: where FIRST is true.
    """
    mu = total / count
    variance = tl.maximum(squares / count - mu * mu, 0.0)
    scale = 1 / tl.sqrt(variance + eps)
    gamma = tl.load(weight + c, inside, other=0.0)
    slope = gamma * scale
    if HAS_R:
        tl.store(a + member * channels + c, slope * tl.load(r + member * channels + c, inside, other=0.0), inside)
    else:
        tl.store(a + member * channels + c, slope, inside)
    tl.store(b + member * channels + c, tl.load(bias + c, inside, other=0.0) - slope * mu, inside)
    tl.store(mean + member * channels + c, mu, inside)
    tl.store(inverse + member * channels + c, scale, inside)
    if TRACK and FIRST:
        unbiased = variance * (count / (count - 1))
        old_mean, old_var = tl.load(running_mean + c, inside), tl.load(running_var + c, inside)
        tl.store(running_mean + c, old_mean + momentum * (mu - old_mean), inside)
        tl.store(running_var + c, old_var + momentum * (unbiased - old_var), inside)


@triton.jit
def member_vector(values, member, c, inside, channels):
    return tl.load(values + member * channels + c, inside, other=0.0)[None, :]


@triton.jit(do_not_specialize=["rows", "chunks"])
def apply_kernel(
    y, a, b, s, x, rows, chunks, channels,
    HAS_S: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """x = relu(a·y + b)·s."""
    member, first, c, inside = program(1, chunks, channels, BLOCK_R, BLOCK_C)
    slope, offset = member_vector(a, member, c, inside, channels), member_vector(b, member, c, inside, channels)
    at, mask, _, _ = tile(member, first, rows, c, inside, channels, BLOCK_R)
    value = tl.maximum(slope * tl.load(y + at, mask, other=0.0).to(tl.float32) + offset, 0.0)
    if HAS_S:
        value *= member_vector(s, member, c, inside, channels)
    tl.store(x + at, value.to(x.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["rows", "steps", "chunks"])
def gradient_sums_kernel(
    g, y, a, b, s, sums, rows, steps, chunks, channels,
    HAS_S: tl.constexpr, STAGES: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """With dz = g·s where z > 0: the sums Σ dz, Σ dz·y and, for the gradient of s, Σ g·relu(z) per program."""
    member, first, c, inside = program(steps, chunks, channels, BLOCK_R, BLOCK_C)
    slope, offset = member_vector(a, member, c, inside, channels), member_vector(b, member, c, inside, channels)
    of_z = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_zy = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    of_s = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    for step in tl.range(0, steps, num_stages=STAGES):
        at, mask, _, _ = tile(member, first + step * BLOCK_R, rows, c, inside, channels, BLOCK_R)
        value = tl.load(y + at, mask, other=0.0).to(tl.float32)
        gradient = tl.load(g + at, mask, other=0.0).to(tl.float32)
        z = slope * value + offset
        gradient = tl.where(z > 0, gradient, 0.0)
        of_z += gradient
        of_zy += gradient * value
        if HAS_S:
            of_s += gradient * z
    place = tl.program_id(0) * channels + c
    size = tl.num_programs(0) * channels
    if HAS_S:
        # s is the same for all rows of a member, so the sums are multiplied with it instead of each row.
        factor = tl.load(s + member * channels + c, inside, other=0.0)
        tl.store(sums + place, tl.sum(of_z, 0) * factor, inside)
        tl.store(sums + size + place, tl.sum(of_zy, 0) * factor, inside)
        tl.store(sums + 2 * size + place, tl.sum(of_s, 0), inside)
    else:
        tl.store(sums + place, tl.sum(of_z, 0), inside)
        tl.store(sums + size + place, tl.sum(of_zy, 0), inside)


@triton.jit(do_not_specialize=["rows", "chunks"])
def gradient_coefficients_kernel(
    sums, r, weight, a, mean, inverse, member_sums,
    q, t, grad_r, grad_weight, grad_bias, grad_s,
    rows, chunks, channels,
    MEMBERS: tl.constexpr, SHARED: tl.constexpr, HAS_R: tl.constexpr, HAS_S: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """BatchNorm's backward pass from the programs' sums: dy = a·dz + q·y + t, and the gradients of r, γ, β and s."""
    c = tl.program_id(0) * BLOCK_C + tl.arange(0, BLOCK_C)
    inside = c < channels
    grad_gamma = tl.zeros((BLOCK_C,), tl.float32)
    grad_beta = tl.zeros((BLOCK_C,), tl.float32)
    groups: tl.constexpr = 1 if SHARED and not HAS_R else MEMBERS
    if SHARED:
        for member in tl.static_range(groups):
            gamma_part, beta_part = _gamma_and_beta(
                sums,
                r,
                mean,
                inverse,
                member,
                groups,
                chunks * (MEMBERS // groups),
                c,
                inside,
                channels,
                HAS_R,
                BLOCK_P,
            )
            grad_gamma += gamma_part
            grad_beta += beta_part
        tl.store(grad_weight + c, grad_gamma, inside)
        tl.store(grad_bias + c, grad_beta, inside)
    for member in tl.static_range(MEMBERS):
        if not SHARED:
            grad_gamma, grad_beta = _gamma_and_beta(
                sums, r, mean, inverse, member, MEMBERS, chunks, c, inside, channels, HAS_R, BLOCK_P
            )
            tl.store(grad_weight + member * channels + c, grad_gamma, inside)
            tl.store(grad_bias + member * channels + c, grad_beta, inside)
        count = rows * MEMBERS if SHARED else rows
        entry = member * channels + c
        mu, scale = tl.load(mean + entry, inside, other=0.0), tl.load(inverse + entry, inside, other=0.0)
        slope = tl.load(a + entry, inside, other=0.0)
        mean_dz, mean_dz_normalised = grad_beta / count, grad_gamma / count
        along = scale * mean_dz_normalised
        if HAS_R:
            factor = tl.load(r + entry, inside, other=0.0)
            tl.store(q + entry, -slope * factor * along, inside)
            gamma = tl.load(weight + c if SHARED else weight + entry, inside, other=0.0)
            of_zy = _sum_of_chunks(sums, 1, member, MEMBERS, chunks, c, inside, channels, BLOCK_P)
            total = tl.load(member_sums + entry, inside, other=0.0)
            squares = tl.load(member_sums + MEMBERS * channels + entry, inside, other=0.0)
            inner = of_zy - mean_dz * total - along * (factor * squares - mu * total)
            tl.store(grad_r + entry, gamma * scale * inner, inside)
        else:
            tl.store(q + entry, -slope * along, inside)
        tl.store(t + entry, slope * (mu * along - mean_dz), inside)
        if HAS_S:
            of_s = _sum_of_chunks(sums, 2, member, MEMBERS, chunks, c, inside, channels, BLOCK_P)
            tl.store(grad_s + entry, of_s, inside)


@triton.jit
def _gamma_and_beta(
    sums, r, mean, inverse, member, members, chunks, c, inside, channels, HAS_R: tl.constexpr, BLOCK_P: tl.constexpr
):
    """A member's share of the gradients of γ and β."""
    of_z = _sum_of_chunks(sums, 0, member, members, chunks, c, inside, channels, BLOCK_P)
    of_zy = _sum_of_chunks(sums, 1, member, members, chunks, c, inside, channels, BLOCK_P)
    entry = member * channels + c
    if HAS_R:
        of_zy *= tl.load(r + entry, inside, other=0.0)
    mu, scale = tl.load(mean + entry, inside, other=0.0), tl.load(inverse + entry, inside, other=0.0)
    return scale * (of_zy - mu * of_z), of_z


@triton.jit(do_not_specialize=["rows", "chunks"])
def gradient_apply_kernel(
    g, y, a, b, s, q, t, dy, rows, chunks, channels,
    HAS_S: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """dy = a·dz + q·y + t with dz = g·s where z > 0."""
    member, first, c, inside = program(1, chunks, channels, BLOCK_R, BLOCK_C)
    slope, offset = member_vector(a, member, c, inside, channels), member_vector(b, member, c, inside, channels)
    of_y, constant = member_vector(q, member, c, inside, channels), member_vector(t, member, c, inside, channels)
    of_dz = slope
    if HAS_S:
        of_dz = slope * member_vector(s, member, c, inside, channels)
    at, mask, _, _ = tile(member, first, rows, c, inside, channels, BLOCK_R)
    value = tl.load(y + at, mask, other=0.0).to(tl.float32)
    gradient = tl.load(g + at, mask, other=0.0).to(tl.float32)
    result = tl.where(slope * value + offset > 0, of_dz * gradient, 0.0) + of_y * value + constant
    tl.store(dy + at, result.to(dy.dtype.element_ty), mask)
