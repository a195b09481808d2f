"""Where a training step's convolutions spend their time.

Each distinct convolution of ResNeXt-29 is timed: forward, input gradient and weight gradient, by cuDNN and, for 1×1, as
one matrix product per member.

    python benchmarks/convolutions.py --images 512 --members 4

Milliseconds are medians of CUDA events. The floor is the shortest possible time: for each of the three, the larger of
bytes / 4.3 TB/s and operations / 700 Tflop/s.
"""

import argparse
from collections.abc import Callable

import torch
import triton.testing
from torch import Tensor

# in, out, kernel, stride, groups, height of the input, how often in the network
LAYERS = (
    (3, 64, 3, 1, 1, 32, 1),
    (64, 128, 1, 1, 1, 32, 1),
    (64, 256, 1, 1, 1, 32, 1),
    (256, 128, 1, 1, 1, 32, 2),
    (128, 128, 3, 1, 4, 32, 3),
    (128, 256, 1, 1, 1, 32, 3),
    (256, 256, 1, 1, 1, 32, 1),
    (256, 512, 1, 2, 1, 32, 1),
    (256, 256, 3, 2, 4, 32, 1),
    (512, 256, 1, 1, 1, 16, 2),
    (256, 256, 3, 1, 4, 16, 2),
    (256, 512, 1, 1, 1, 16, 3),
    (512, 512, 1, 1, 1, 16, 1),
    (512, 1024, 1, 2, 1, 16, 1),
    (512, 512, 3, 2, 4, 16, 1),
    (1024, 512, 1, 1, 1, 8, 2),
    (512, 512, 3, 1, 4, 8, 2),
    (512, 1024, 1, 1, 1, 8, 3),
)


def median_ms(work: Callable[[], object]) -> float:
    return float(triton.testing.do_bench(work, warmup=15, rep=40, return_mode="median"))


def time_cudnn(x: Tensor, w: Tensor, g: Tensor, stride: int, groups: int) -> list[float]:
    padding = w.shape[2] // 2

    def gradients(*wanted: bool) -> Callable[[], object]:
        return lambda: torch.ops.aten.convolution_backward(
            g, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, list(wanted)
        )

    forward = lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)  # noqa: E731
    return [median_ms(f) for f in (forward, gradients(True, False, False), gradients(False, True, False))]


def time_products(x: Tensor, w: Tensor, g: Tensor, members: int, rows_per_chunk: int) -> list[float]:
    ins, outs = x.shape[1], w.shape[0]
    x_MRI = x.permute(0, 2, 3, 1).reshape(members, -1, ins)
    g_MRO = g.permute(0, 2, 3, 1).reshape(members, -1, outs)
    w_MOI = w.view(1, outs, ins).repeat(members, 1, 1)
    parts = members * max(1, x_MRI.shape[1] // rows_per_chunk)
    x_PRI, g_PRO = x_MRI.reshape(parts, -1, ins), g_MRO.reshape(parts, -1, outs)
    products = (
        lambda: torch.bmm(x_MRI, w_MOI.transpose(1, 2)),
        lambda: torch.bmm(g_MRO, w_MOI),
        lambda: torch.bmm(g_PRO.transpose(1, 2), x_PRI),
    )
    return [median_ms(f) for f in products]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--rows-per-chunk", "--rows-a-chunk", type=int, default=8192)
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    totals: dict[str, float] = {"cudnn 1x1": 0, "products 1x1": 0, "cudnn 3x3": 0, "floor 1x1": 0, "floor 3x3": 0}
    print(f"{'in':>5}{'out':>5} k s g  px  n {'floor of each':>24}{'cuDNN':>24}{'products':>24}")
    for ins, outs, kernel, stride, groups, size, times in LAYERS:
        n, small = arguments.images, size // stride
        options = {"device": "cuda", "dtype": torch.bfloat16}
        x = torch.randn(n, ins, size, size, **options).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        w = torch.randn(outs, ins // groups, kernel, kernel, **options).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        g = torch.randn(n, outs, small, small, **options).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        flops = 2 * g.numel() * ins // groups * kernel**2
        floor = [
            max(flops / 700e12, 2 * (x.numel() // (stride**2 if kernel == 1 else 1) + g.numel()) / 4.3e12) * 1e3
        ] * 3
        cudnn = time_cudnn(x, w, g, stride, groups)
        products: list[float] = []
        if kernel == 1:
            seen = x[:, :, ::stride, ::stride].contiguous(memory_format=torch.channels_last)
            products = time_products(seen, w, g, arguments.members, arguments.rows_per_chunk)
            totals["products 1x1"] += times * sum(products)
        totals[f"cudnn {kernel}x{kernel}"] += times * sum(cudnn)
        totals[f"floor {kernel}x{kernel}"] += times * sum(floor)
        shown = ["".join(f"{v:8.3f}" for v in row) for row in (floor, cudnn, products)]
        print(
            f"{ins:5}{outs:5} {kernel} {stride} {groups} {size:3} {times:2} {shown[0]}{shown[1]}{shown[2]}", flush=True
        )
    print("  ".join(f"{name} {value:.2f} ms" for name, value in totals.items()))


if __name__ == "__main__":
    main()
