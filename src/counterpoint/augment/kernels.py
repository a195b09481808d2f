"""AugMix in Triton kernels: the chains of an image, and the mixture of their results.

The arithmetic is that of `geometry`, `tone` and `augmix`, value for value. The kernels must be compiled with
`enable_fp_fusion=False`: a fused multiply-add rounds once where Pillow rounds twice.

A small image is the work of one program, which runs the chains one after the other and mixes their results while they
are in the cache. A large one would keep such a program busy for long while the rest of the GPU is idle. So each chain
of a large image has a program, and each tile of its mixture.

A chain goes back and forth between two images of scratch memory. Only the program that wrote such an image reads it
again. A barrier comes first, since the thread that reads a pixel need not be the one that wrote it.
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
    """The view of one image per program: its chains, then their mixture.

    The scratch memory has one image per chain, for the chain's result, and a spare one.
    """
    n = tl.program_id(0).to(tl.int64)
    values: tl.constexpr = CHANNELS * HEIGHT * WIDTH
    image, results = images + n * values, scratch + n * (CHAINS + 1) * values
    for chain in range(CHAINS):
        first = (n * CHAINS + chain) * DEPTH
        _run_chain(
            image, results, chain, CHAINS,
            kinds + first, matrices + first * 6, amounts + first, DEPTH, CHANNELS, HEIGHT, WIDTH, BLOCK,
        )  # fmt: skip
    share = tl.load(shares + n)
    for start in range(0, values, BLOCK):
        _mix(image, results, weights + n * CHAINS, share, views + n * values, start, CHAINS, values, values, BLOCK)


@triton.jit
def chains_kernel(
    images, kinds, matrices, amounts, scratch,
    CHAINS: tl.constexpr, DEPTH: tl.constexpr,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One chain per program. The scratch memory has two images per chain: the chain's result, and a spare one."""
    r = tl.program_id(0).to(tl.int64)
    values: tl.constexpr = CHANNELS * HEIGHT * WIDTH
    first = r * DEPTH
    _run_chain(
        images + r // CHAINS * values, scratch + r * 2 * values, 0, 1,
        kinds + first, matrices + first * 6, amounts + first, DEPTH, CHANNELS, HEIGHT, WIDTH, BLOCK,
    )  # fmt: skip


@triton.jit
def mixing_kernel(
    images, weights, shares, scratch, views,
    CHAINS: tl.constexpr, VALUES: tl.constexpr, TILES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One tile of a view per program, from what `chains_kernel` left in the scratch memory."""
    n, tile = tl.program_id(0).to(tl.int64) // TILES, tl.program_id(0) % TILES
    results = scratch + n * CHAINS * 2 * VALUES
    _mix(
        images + n * VALUES, results, weights + n * CHAINS, tl.load(shares + n), views + n * VALUES,
        tile * BLOCK, CHAINS, VALUES, 2 * VALUES, BLOCK,
    )  # fmt: skip


@triton.jit
def _run_chain(
    image, results, own, spare, kinds, matrices, amounts,
    DEPTH: tl.constexpr, CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The chain's operations, back and forth between two of the images `results`. The last one writes the image `own`.

    For each place in the chain, `kinds` says which operation is done; its parameters are six numbers of `matrices` or
    one of `amounts`.
    """
    pixels: tl.constexpr = HEIGHT * WIDTH
    operations = 0
    for place in range(DEPTH):
        operations += (tl.load(kinds + place) != IDLE).to(tl.int32)
    left = tl.maximum(operations, 1)
    source = image
    for place in range(DEPTH):
        kind, amount = tl.load(kinds + place), tl.load(amounts + place)
        # A chain without operations is a copy: its first place, though idle, is treated as a tone operation.
        if (kind != IDLE) | ((operations == 0) & (place == 0)):
            left -= 1
            target = results + tl.where(left % 2 == 0, own, spare) * CHANNELS * pixels
            if kind == AFFINE:
                _transform(source, target, matrices + place * 6, CHANNELS, HEIGHT, WIDTH, BLOCK)
            else:
                for channel in range(CHANNELS):
                    _tone(source + channel * pixels, target + channel * pixels, kind, amount, pixels, BLOCK)
            tl.debug_barrier()
            source = target


@triton.jit
def _mix(
    image, results, weights, share, view, start,
    CHAINS: tl.constexpr, VALUES: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A tile of min(((1 − share) · image + Σ share · weight · chain) / 255, 1); results lie STRIDE values apart."""
    at, real = _tile(start, VALUES, BLOCK)
    mixed = tl.load(image + at, real, other=0).to(tl.float32) * (1 - share)
    for chain in range(CHAINS):
        weight = share * tl.load(weights + chain)
        mixed += tl.load(results + chain * STRIDE + at, real, other=0).to(tl.float32) * weight
    tl.store(view + at, tl.minimum(tl.div_rn(mixed, 255.0), 1.0), real)


@triton.jit
def _tile(start, end, BLOCK: tl.constexpr):
    at = start + tl.arange(0, BLOCK)
    return at, at < end


@triton.jit
def _transform(
    source, target, matrix,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Take output pixel (x, y) from (a·x + b·y + c, d·x + e·y + f), interpolated between four neighbours.

    Outside of the image the result is black.
    """
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
    """Change one channel, value by value.

    Autocontrast stretches the values and equalize equalizes their histogram. Posterize takes the bitwise "and" with
    `amount`. Solarize inverts values of `amount` or more. An idle place is treated as solarize.
    """
    if kind == AUTOCONTRAST:
        lows, highs = tl.full((BLOCK,), 255, tl.int32), tl.full((BLOCK,), 0, tl.int32)
        for start in range(0, pixels, BLOCK):
            at, real = _tile(start, pixels, BLOCK)
            lows = tl.minimum(lows, tl.load(source + at, real, other=255).to(tl.int32))
            highs = tl.maximum(highs, tl.load(source + at, real, other=0).to(tl.int32))
        low, high = tl.min(lows), tl.max(highs)
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
    """What each of the 256 values becomes."""
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
