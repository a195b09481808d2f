"""The tables of docs/differences.md, docs/performance.md and docs/scaling.md, and what pages say of simulations, are
those of the committed results.
"""

import re
from statistics import mean, stdev
from typing import Any

import pytest

from counterpoint.reproduction.beside_paper import paper_figures
from tests.docs.tables import (
    NUMBER,
    RESULTS,
    agree,
    headline,
    on_c,
    percent,
    record,
    result,
    rows_with_results,
    table,
    table_with_heading,
    text_of,
)

DIFFERENCES, PERFORMANCE = "docs/differences.md", "docs/performance.md"


def test_how_far_both_seeds_of_a_row_are_from_the_paper() -> None:
    lines = [row for row in table(DIFFERENCES, "| row | error | ECE |") if "," in row[1]]
    assert lines, "a row with two seeds"
    for label, *cells in lines:
        (name,) = re.findall(r"`(.+)`", label)
        keys = ("error", "ece_width15", "ece_rms_width15")
        parts = [(found["clean"]["ensemble"], on_c(found)) for found in (result(name, 0), result(name, 1))]
        ours = [percent(*(part[key] for part in of_seed for key in keys)) for of_seed in parts]
        papers = percent(*paper_figures(name))
        expected = [seed[i] - papers[i] for i in range(6) for seed in ours]
        assert agree(cells, expected), name
        bold = [cell.startswith("**") for cell in cells]
        assert bold == [min(abs(one) for one in expected[2 * i : 2 * i + 2]) > 1 for i in range(6)], name


def test_the_lost_channels() -> None:
    for name, seed, cells in rows_with_results(table(DIFFERENCES, "| run | dead scales |")):
        if found := result(name, seed).get("health"):
            last = found["epochs"][-1]
            assert agree(cells, [last["dead_scales"], last["below_eps"]]), (name, seed)
    epochs, *rows = table_with_heading(DIFFERENCES, "| epoch | 1 |")
    for label, *cells in rows:
        health = result(label.strip("`"))["health"]
        dead = {str(one["epoch"]): one["dead_scales"] for one in health["epochs"]}
        assert agree(cells, [dead[epoch] for epoch in epochs[1:]]), label


def test_what_training_does_to_the_single_network() -> None:
    rows = [row for row in table(DIFFERENCES, "| trained with | scales at 0 |") if row[0] != "the paper"]
    for label, _, *cells in rows:
        (name,) = re.findall(r"\(\.\./results/(.+)\.json\)", label)
        found = record(name)
        error, ece, shifted_error, shifted_ece = headline(found)
        mildest = 100 * found["corrupted"]["cells"]["brightness"][0]["ensemble"]["error"]
        assert agree(cells, [error, mildest, shifted_error, ece, shifted_ece]), label


def test_the_linear_layer_of_a_small_network() -> None:
    found = record("linear-layer-cpu/figures")
    kinds = ("single", "none", "linear")
    keys = ("members_ece", "members_corrupted_ece", "corrupted_ece")
    for kind, (_, *cells) in zip(kinds, table(DIFFERENCES, "| | members' ECE |"), strict=True):
        seeds = [found[f"{kind}-{seed}"] for seed in (0, 1)]
        eces = [100 * seed[key] for key in keys for seed in seeds]
        assert agree(cells, [*eces, *(seed["linear_weights"] for seed in seeds)]), kind


def test_where_r_and_s_start() -> None:
    files = {
        "30-epochs": ("digits", "cifar10"),
        "100-epochs": ("digits", "cifar10"),
        "100-epochs-width-16": ("cifar10",),
    }
    runs = [
        (float(std), of_seeds.values())
        for file, names in files.items()
        for name in names
        for std, of_seeds in record(f"from-scratch-cpu/{file}")[name].items()
    ]
    rows = table("docs/models.md", "| images, epochs, width | init_std |")
    for (_, *cells), (std, of_seeds) in zip(rows, runs, strict=True):
        means = [mean(one[key] for one in of_seeds) for key in ("error", "worst_member", "nll", "shift_nll")]
        assert agree(cells, [std, *percent(*means[:2]), *means[2:]]), cells


def test_decay_on_r_and_s() -> None:
    shown = {label.partition(" (")[0].partition(",")[0]: cells for label, *cells in table(DIFFERENCES, "| | `decay_rs")}
    for column, run in enumerate(("no-decay", "decay")):
        found = record("cifar10-batch-ensemble-short-decay/figures")["runs"][run]
        validation, last = found["validation"], found["last_checkpoint"]
        errors = [100 * one["error"] for one in validation["members"]]
        ensemble = validation["ensemble"]
        expected = {
            "validation error": [100 * ensemble["error"], min(errors), max(errors)],
            "NLL": [ensemble["nll"]],
            "ECE": percent(ensemble["ece_width15"], validation["ece_width15"]["floor"]),
            "disagreement of the members": [100 * validation["disagreement"]],
            "training loss": [found["training_loss"]],
            "channels whose running variance is below eps": [last["below_eps"]],
            "scales below 0.001": [last["dead_scales"]],
            "mean size of r": [last["mean_size_of_r"], last["mean_size_of_s"]],
        }
        assert shown.keys() == expected.keys()
        assert not [label for label, values in expected.items() if not agree([shown[label][column]], values)]


ENGINES = {
    "fp32 eager": "fp32 eager",
    "fp32 eager with TF32 in convolutions, channels-last": "TF32 eager, channels-last",
    "bf16 eager, channels-last": "bf16 eager",
    "one plain network, 512 images, torch.compile": "no members, 512 images, torch.compile",
    "torch.compile": "torch.compile",
    "torch.compile, recorded as a CUDA graph": "torch.compile, CUDA graph",
    "fast": "fast",
    "fast, with its views (flip and crop)": "fast, views included",
    # The single network's.
    "fp32 eager (TF32 in convolutions), channels-last": "fp32 eager",
    "bf16 eager": "bf16 eager",
    "torch.compile (Python launches its kernels one by one)": "torch.compile",
}


@pytest.mark.parametrize(
    ("file", "heading", "keys"),
    [
        (
            "step-batch-ensemble-h200",
            "| engine | ms per step | member-images/s |",
            ("milliseconds", "member_images_a_second", "share_of_floor", "peak_gigabytes"),
        ),
        (
            "step-single-h200",
            "| engine | ms per step | images/s |",
            ("milliseconds", "member_images_a_second", "share_of_floor"),
        ),
    ],
)
def test_a_training_step(file: str, heading: str, keys: tuple[str, ...]) -> None:
    measured = {one["name"]: one for one in record(f"speed/{file}")["figures"] if "milliseconds" in one}
    for label, *cells in table(PERFORMANCE, heading):
        found = measured[ENGINES[label]]
        assert agree(cells, [(100 if key == "share_of_floor" else 1) * found[key] for key in keys]), label


def test_two_engines_side_by_side() -> None:
    losses = record("speed/side-by-side-h200")["losses"]
    blocks = [*range(4), *range(8, 12)]
    differences = [
        [fast[block] - compiled[block] for compiled, fast in zip(losses["compiled"], losses["fast"], strict=True)]
        for block in blocks
    ]
    expected = {
        f"{name}, seed {seed}": [losses[kind][seed][block] for block in blocks]
        for name, kind in (("torch.compile", "compiled"), ("fast", "fast"))
        for seed in (0, 3)
    } | {
        "fast - torch.compile, mean of six": [mean(one) for one in differences],
        "± standard error": [stdev(one) / 6**0.5 for one in differences],
    }
    shown = {label: cells for label, *cells in table(PERFORMANCE, "| steps | 1–25 |")}
    assert not [label for label, values in expected.items() if not agree(shown[label], values)]


def test_the_precisions_of_an_evaluation() -> None:
    found = record("speed/inference-h200")
    for label, *cells in table(PERFORMANCE, "| precision | seconds |"):
        precision = label.partition(" ")[0]
        (seconds,) = [one["grid_s"] for one in found["grid"] if one["precision"] == precision]
        changes = [one for one in found["differences"] if one["precision"] == precision]
        largest, changed = max(one["prob"] for one in changes), sum(one["changed"] for one in changes)
        expected = [seconds, largest, changed, 100 * max(abs(one["ece"]) for one in changes)]
        assert agree(cells, expected), label


def test_a_training_step_on_photographs() -> None:
    lines = (RESULTS / "speed" / "photographs-h200.txt").read_text(encoding="utf-8").splitlines()
    for label, *cells in table(PERFORMANCE, "| | ms per step | least – most |"):
        (measured,) = [line.removeprefix(label) for line in lines if line.startswith(f"{label}  ")]
        assert [NUMBER.findall(cell) for cell in cells] == [NUMBER.findall(part) for part in split(measured)], label


def split(line: str) -> list[str]:
    """At two spaces or more."""
    return re.split(r"  +", line.strip())


def test_the_convolutions() -> None:
    *_, last = (RESULTS / "speed" / "convolutions-h200.txt").read_text(encoding="utf-8").splitlines()
    measured = {key.strip(): value for key, value in re.findall(r"(\w+ \dx\d) (\d\.\d+)", last)}
    for label, *cells in table(PERFORMANCE, "| convolutions alone, ms for"):
        kind = label[:3].replace("×", "x")
        expected = [measured.get(f"{name} {kind}", "–") for name in ("floor", "cudnn", "products")]
        assert cells == expected, label


def test_how_a_step_grows() -> None:
    measured: Any = record("speed/scaling-h200")  # a list
    rows = table("docs/scaling.md", "| members | pixels | images |")
    for (members, pixels, images, *cells), found in zip(rows, measured, strict=True):
        assert agree([members, pixels, images], [found["members"], found["size"], found["size"], found["images"]])
        views = 128 * found["members"] * 1000 / found["milliseconds"]
        assert agree(cells, [found["milliseconds"], views, found["gigabytes"], found["parameters"] / 1e6]), cells


def test_the_sentences_that_sum_up_the_rows() -> None:
    def shifted_ece(name: str, seed: int = 0) -> float:
        return 100 * float(on_c(result(name, seed))["ece_width15"])

    def recalibrated(name: str) -> tuple[float, float]:
        """The ECE on clean images and on -C with a temperature from clean images."""
        way = record(f"recalibration/{name}")["ways"]["before"]
        clean, shifted = way["clean"]["ensemble"], way["corrupted"]["ensemble"]["by-corruption"]
        return 100 * clean["ece_width15"], 100 * shifted["ece_width15"]

    plain, diverse, same = (
        shifted_ece(f"cifar100/{name}") for name in ("batch-ensemble", "be+sd", "be+sd-not-diverse")
    )
    seeds = [shifted_ece("cifar100/single", seed) for seed in (0, 1)]
    apart, single = seeds[1] - seeds[0], result("cifar10/single")["clean"]
    floor = 100 * single["honest"]["ensemble"]["ece_width15"]["floor"]
    ece, corrected = 100 * single["ensemble"]["ece_width15"], recalibrated("cifar10-single")[0]
    (_, ensemble_T), (_, single_T) = (recalibrated(f"cifar10-{name}am-bern-0.875") for name in ("", "single-"))
    off = f"is off by {diverse:.1f} points on average, that of the other by {same:.1f}"
    said = {
        "README.md": (
            off.replace("is off", "of the diverse one is off"),
            f"[differ by {apart:.1f} points]",
            f"the ensemble then has {ensemble_T:.2f} % of -C ECE, and the single network {single_T:.2f} %",
        ),
        "docs/findings.md": (
            off,
            f"Their -C ECE is {plain:.2f} % without stochastic depth, {diverse:.2f} % with it and diverse, and "
            f"{same:.2f} % with it and not diverse. Two seeds of the single network have {seeds[0]:.2f} and "
            f"{seeds[1]:.2f} %",
            f"goes from {diverse:.2f} to {recalibrated('cifar100-be+sd-care-clean')[1]:.2f} %",
            f"a diverse ensemble has {ensemble_T:.2f} % and a single network {single_T:.2f} %",
        ),
        "docs/trust.md": (
            f"has an ECE of {ece:.2f} % and a floor of {floor:.2f} %",
            f"Two seeds of `cifar100/single` differ by {apart:.1f} points in -C ECE",
            f"lowered the ECE of our single network from {ece:.2f} % to {corrected:.2f} %",
        ),
    }
    assert not [words for page, sentences in said.items() for words in sentences if words not in text_of(page)]


def simulated(name: str) -> dict[str, list[list[float]]]:
    """The numbers of each column, by the label of the line. Columns and labels are divided by two spaces or more."""
    lines = (RESULTS / "simulations" / f"{name}.txt").read_text(encoding="utf-8").replace("−", "-").splitlines()
    rows = [split(line) for line in lines if "/" in line and "--" not in line and "  " in line]
    labelled = {" ".join(cell for cell in cells if "/" not in cell): cells for cells in rows}
    return {
        label: [[float(number) for number in NUMBER.findall(cell)] for cell in cells if "/" in cell]
        for label, cells in labelled.items()
    }


def test_what_simulations_say_of_intervals_over_seeds() -> None:
    found = simulated("seeds")
    outlier = [cell[0] for how in ("in pairs", "as groups") for cell in found[f"one seed in ten far off {how}"][2:]]
    least, most = min(outlier), max(outlier)
    two, _, five, *_ = (
        pairs[1] / groups[1] for pairs, groups in zip(found["normal in pairs"], found["normal as groups"], strict=True)
    )
    said = (
        f"with two seeds their interval is {two:.1f} times as long as without pairs, with five seeds {five:.1f} times",
        f"the interval from five to twenty seeds holds the truth in {least:.0f} to {most:.0f} % of the cases",
    )
    assert not [words for words in said if words not in text_of("docs/trust.md")]


def test_what_simulations_say_of_intervals_over_images() -> None:
    text = (RESULTS / "simulations" / "coverage.txt").read_text(encoding="utf-8")
    small, _, large = text.partition("At the size of CIFAR-10-C")
    lines = {part: [line for line in part.splitlines() if re.search(r"\d\.\d / \d", line)] for part in (small, large)}

    def coverage(line: str) -> list[float]:
        return [float(number) for number in re.findall(r"\d+\.\d(?= /|,| |$)", line.partition("  ")[2])]

    one = [line for line in lines[small] if line.startswith("one run")]
    usual = [value for line in one if "nearly" not in line for value in coverage(line)]
    nearly = [value for line in one if "nearly" in line for value in coverage(line)]
    pairs = [value for line in lines[small] if line not in one for value in coverage(line)]
    lowest = sorted({value for line in lines[large] for value in coverage(line)})[:2]
    said = (
        f"over several cells ours did in {min(usual):.0f} to {max(usual):.0f} %, and in {min(nearly):.0f} % where the "
        f"network is nearly calibrated. For differences of calibration errors ours did in {min(pairs):.0f} to "
        f"{max(pairs):.0f} %.",
        f"the lowest values were {lowest[0]} % and {lowest[1]} %, from 60 simulated sets",
    )
    assert not [words for words in said if words not in text_of("docs/trust.md")]


def test_what_simulations_say_of_earlier_noise_floors() -> None:
    earlier = [-number for cells in simulated("noise-floor").values() for number in (cells[0][1], cells[0][3])]
    said = f"such floors are {min(earlier):.0f} to {max(earlier):.0f} % too low"
    assert said in text_of("docs/findings/chance.md")
