"""AugMix in one Triton kernel: a program runs an image's chains one after the other and adds them up.

The arithmetic is that of `geometry`, `tone` and `augmix`, value for value. It must be compiled with
`enable_fp_fusion=False`: a fused multiply-add rounds once where Pillow rounds twice.

A chain goes back and forth between two images of scratch memory. Whatever a program writes, it alone reads again; there
is a barrier between, since another of its threads may do so.
"""

import triton
import triton.language as tl

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

IDLE, AFFINE, AUTOCONTRAST, EQUALIZE, POSTERIZE, SOLARIZE = (tl.constexpr(kind) for kind in range(6))


@triton.jit
def augmix_kernel(
    images, kinds, matrices, amounts, weights, shares, scratch, views,
    CHAINS: tl.constexpr, DEPTH: tl.constexpr,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """views = min(((1 − share) · image + Σ share · weight · chain) / 255, 1) for the image of this program.

    At a place of a chain, `kinds` says what is done, with six numbers of `matrices` or one of `amounts`.
    """
    n = tl.program_id(0).to(tl.int64)
    pixels: tl.constexpr = HEIGHT * WIDTH
    values: tl.constexpr = CHANNELS * pixels
    image, view = images + n * values, views + n * values
    share = tl.load(shares + n)
    for start in range(0, values, BLOCK):
        at, real = _tile(start, values, BLOCK)
        tl.store(view + at, tl.load(image + at, real, other=0).to(tl.float32) * (1 - share), real)
    tl.debug_barrier()
    for chain in range(CHAINS):
        source, target, other = image, scratch + n * 2 * values, scratch + (n * 2 + 1) * values
        for place in range(DEPTH):
            step = (n * CHAINS + chain) * DEPTH + place
            kind = tl.load(kinds + step)
            amount = tl.load(amounts + step)
            if kind != IDLE:
                if kind == AFFINE:
                    _transform(source, target, matrices + step * 6, CHANNELS, HEIGHT, WIDTH, BLOCK)
                else:
                    for channel in range(CHANNELS):
                        _tone(source + channel * pixels, target + channel * pixels, kind, amount, pixels, BLOCK)
                tl.debug_barrier()
                source, target, other = target, other, target
        weight = share * tl.load(weights + n * CHAINS + chain)
        for start in range(0, values, BLOCK):
            at, real = _tile(start, values, BLOCK)
            part = tl.load(source + at, real, other=0).to(tl.float32) * weight
            tl.store(view + at, tl.load(view + at, real, other=0) + part, real)
        tl.debug_barrier()
    for start in range(0, values, BLOCK):
        at, real = _tile(start, values, BLOCK)
        tl.store(view + at, tl.minimum(tl.div_rn(tl.load(view + at, real, other=0), 255.0), 1.0), real)


@triton.jit
def _tile(start, end, BLOCK: tl.constexpr):
    at = start + tl.arange(0, BLOCK)
    return at, at < end


@triton.jit
def _transform(
    source, target, matrix,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Output pixel (x, y) is taken from (a·x + b·y + c, d·x + e·y + f), between four neighbours; black outside."""
    pixels: tl.constexpr = HEIGHT * WIDTH
    a, b, c = tl.load(matrix), tl.load(matrix + 1), tl.load(matrix + 2)
    d, e, f = tl.load(matrix + 3), tl.load(matrix + 4), tl.load(matrix + 5)
    for start in range(0, pixels, BLOCK):
        at, real = _tile(start, pixels, BLOCK)
        column, row = (at % WIDTH).to(tl.float64) + 0.5, (at // WIDTH).to(tl.float64) + 0.5
        x, y = a * column + b * row + c, d * column + e * row + f
        inside = real & (x >= 0) & (x < WIDTH) & (y >= 0) & (y < HEIGHT)
        x, y = x - 0.5, y - 0.5
        left, top = tl.floor(x), tl.floor(y)
        right_share, lower_share = x - left, y - top
        first_column, first_row = left.to(tl.int32), top.to(tl.int32)
        columns = tl.maximum(first_column, 0), tl.minimum(first_column + 1, WIDTH - 1)
        rows = tl.maximum(first_row, 0) * WIDTH, tl.minimum(first_row + 1, HEIGHT - 1) * WIDTH
        for channel in range(CHANNELS):
            plane = source + channel * pixels
            upper = _between(plane + rows[0], columns, right_share, inside)
            lower = _between(plane + rows[1], columns, right_share, inside)
            value = (lower - upper) * lower_share + upper
            tl.store(target + channel * pixels + at, value.to(tl.int32).to(tl.uint8), real)


@triton.jit
def _between(row, columns, right_share, inside):
    left = tl.load(row + columns[0], inside, other=0).to(tl.float64)
    right = tl.load(row + columns[1], inside, other=0).to(tl.float64)
    return (right - left) * right_share + left


@triton.jit
def _tone(source, target, kind, amount, pixels: tl.constexpr, BLOCK: tl.constexpr):
    """One channel, value by value: stretched, equalized, and'ed with `amount`, or inverted from `amount` on."""
    if kind == AUTOCONTRAST:
        low, high = tl.full((), 255, tl.int32), tl.full((), 0, tl.int32)
        for start in range(0, pixels, BLOCK):
            at, real = _tile(start, pixels, BLOCK)
            low = tl.minimum(low, tl.min(tl.load(source + at, real, other=255).to(tl.int32)))
            high = tl.maximum(high, tl.max(tl.load(source + at, real, other=0).to(tl.int32)))
        span = (high - low).to(tl.float64)
        scale = tl.where(span > 0, 255.0 / tl.maximum(span, 1.0), 1.0)
        offset = tl.where(span > 0, -low.to(tl.float64) * scale, 0.0)
        for start in range(0, pixels, BLOCK):
            at, real = _tile(start, pixels, BLOCK)
            value = tl.load(source + at, real, other=0).to(tl.float64) * scale + offset
            tl.store(target + at, value.to(tl.int32).to(tl.uint8), real)
    elif kind == EQUALIZE:
        table = _equalizing_table(source, pixels, BLOCK)
        for start in range(0, pixels, BLOCK):
            at, real = _tile(start, pixels, BLOCK)
            value = tl.load(source + at, real, other=0).to(tl.int32)
            tl.store(target + at, tl.gather(table, value, 0).to(tl.uint8), real)
    else:
        for start in range(0, pixels, BLOCK):
            at, real = _tile(start, pixels, BLOCK)
            value = tl.load(source + at, real, other=0).to(tl.int32)
            inverted = tl.where(value >= amount, 255 - value, value)
            tl.store(target + at, tl.where(kind == POSTERIZE, value & amount, inverted).to(tl.uint8), real)


@triton.jit
def _equalizing_table(source, pixels: tl.constexpr, BLOCK: tl.constexpr):
    """What each of 256 values becomes."""
    value = tl.arange(0, 256)
    counts = tl.zeros((256,), tl.int32)
    for start in range(0, pixels, BLOCK):
        at, real = _tile(start, pixels, BLOCK)
        counts += tl.histogram(tl.load(source + at, real, other=0).to(tl.int32), 256)
    # The last tile was filled up with zeros.
    counts -= tl.where(value == 0, tl.cdiv(pixels, BLOCK) * BLOCK - pixels, 0)
    brightest = tl.max(tl.where(counts > 0, value, 0))
    step = (pixels - tl.sum(tl.where(value == brightest, counts, 0))) // 255
    below = tl.cumsum(counts, 0) - counts
    table = tl.minimum((below + step // 2) // tl.maximum(step, 1), 255)
    return tl.where(step > 0, table, value)
