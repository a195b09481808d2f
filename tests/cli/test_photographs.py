"""Photographs at 224 pixels, from a folder to a report: trained on, under every corruption, and under a shift."""

import html
from pathlib import Path

import pytest
from PIL import Image, ImageEnhance
from sklearn.datasets import load_sample_images

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS
from counterpoint.records.files import read_results
from tests.cli.conftest import Call

SMALL = "--set depth=8 --set width=4 --set num_members=2 --set steps=4 --set batch_size=4 --device cpu".split()
COUNTS = {"train": 4, "val": 1, "test": 1}


def write_crops(folder: Path) -> Path:
    """Crops of scikit-learn's two photographs, each a class of its own, in three parts that do not overlap."""
    for name, pixels in zip(("china", "flower"), load_sample_images().images, strict=True):
        photograph = Image.fromarray(pixels)
        places = ((left, top) for top in (0, 180) for left in range(0, 400, 100))
        for part, count in COUNTS.items():
            (folder / part / name).mkdir(parents=True)
            for number in range(count):
                left, top = next(places)
                crop = photograph.crop((left, top, left + 240, top + 240))
                crop.save(folder / part / name / f"{number}.png")
    return folder


def write_nights(photos: Path, folder: Path) -> Path:
    """The test pictures, darker and darker."""
    for severity, light in ((1, 0.5), (2, 0.1)):
        for path in (photos / "test").rglob("*.png"):
            place = folder / str(severity) / path.relative_to(photos / "test")
            place.parent.mkdir(parents=True, exist_ok=True)
            with Image.open(path) as picture:
                ImageEnhance.Brightness(picture).enhance(light).save(place)
    return folder


def test_from_photographs_to_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    photos = write_crops(tmp_path / "photos")
    trained = call("train", "--images", photos, "--set", "images.size=224", "--out", "run", *SMALL)
    assert trained.status == 0, trained.err
    nights = write_nights(photos, tmp_path / "nights")
    sets = ("--sets", "corrupted,validation-extra", "--shift", f"night={nights}")
    evaluated = call("evaluate", "run", *sets, "--device", "cpu")
    assert evaluated.status == 0, evaluated.err
    assert "regenerated with ImageNet-C's constants" in evaluated.out
    assert "night: " in evaluated.out

    results = read_results(Path("run/results.json"))
    assert results.config["images"]["size"] == 224
    assert results.config["policy"]["crop_scale"] == [0.25, 1.0]
    assert results.corrupted is not None
    extra = results.shifts["validation-extra"]
    for shifted, corruptions in ((results.corrupted, CORRUPTIONS), (extra, EXTRA_CORRUPTIONS)):
        assert (shifted.source.kind, shifted.source.constants) == ("regenerated", "imagenet-c")
        assert (shifted.images, tuple(shifted.cells)) == (2, corruptions)
        assert len([*shifted.all_cells()]) == 5 * len(corruptions)
    night = results.shifts["night"]
    assert (night.source.kind, night.images, night.severities, list(night.cells)) == ("own", 2, (1, 2), ["night"])

    reported = call("report", "run")
    assert reported.status == 0, reported.err
    page = html.unescape(Path("report.html").read_text(encoding="utf-8"))
    for words in ("ImageNet-C's constants", "night", "Under shift"):
        assert words in page
