"""How long one picture takes on one core of a CPU: from Python with `load_predictor`, and in an exported ONNX file.

    python benchmarks/one_picture.py

The network is the one that `train --images` trains if nothing is set, on images of 64 pixels, after one step: its
weights do not change how long it takes. The times are processor time, so that other work on the machine changes them
little. They are medians of 30 pictures of 640 × 480 pixels, one after another.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime
import torch
from PIL import Image

from counterpoint import load_predictor
from counterpoint.data import load_images
from counterpoint.experiments.own import own_experiment
from counterpoint.export import export_run
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train

MEMBERS = (None, 2, 4)
PICTURES = 30


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        pictures = make_pictures(Path(folder))
        print("members  load_predictor, ms  ONNX Runtime, ms  file, MB")
        for members in MEMBERS:
            run, file = Path(folder, f"run-{members}"), Path(folder, f"{members}.onnx")
            train_one_step(run, Path(folder, "pictures"), members)
            export_run(load_run(run), file)
            in_python, in_onnx = milliseconds(loaded(run, pictures)), milliseconds(exported(file))
            size = file.stat().st_size / 1e6
            print(f"{members or 'single':>7}  {in_python:18.0f}  {in_onnx:16.0f}  {size:8.1f}")


def make_pictures(folder: Path) -> list[Path]:
    """Noise takes as long as anything else."""
    rng, paths = np.random.default_rng(0), []
    for number in range(PICTURES):
        path = folder / "pictures" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (480, 640, 3), np.uint8)).save(path)
        paths.append(path)
    return paths


def train_one_step(run: Path, pictures: Path, members: int | None) -> None:
    settings = [f"num_members={'none' if members is None else members}", "steps=1", "batch_size=8", "warmup_steps=0"]
    experiment = own_experiment("pictures", None, settings)
    assert experiment.images is not None
    data = load_images(pictures, experiment.images.size, cache=run.parent / "cache")
    train(experiment, run, data, options=Options(device="cpu"))


def loaded(run: Path, pictures: list[Path]) -> Callable[[int], object]:
    predictor = load_predictor(run, device="cpu")
    return lambda number: list(predictor.predict(pictures[number]))


def exported(file: Path) -> Callable[[int], object]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    _, height, width, channels = session.get_inputs()[0].shape
    images = np.random.default_rng(0).integers(0, 256, (PICTURES, 1, height, width, channels), np.uint8)
    return lambda number: session.run(["probabilities"], {"images": images[number]})


def milliseconds(predict: Callable[[int], object]) -> float:
    for number in range(3):
        predict(number)
    found = []
    for number in range(PICTURES):
        began = time.process_time()
        predict(number)
        found.append(1000 * (time.process_time() - began))
    return median(found)


if __name__ == "__main__":
    main()
