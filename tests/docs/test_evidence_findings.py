"""The tables of docs/findings.md and of docs/findings/ are those of the committed results, row by row. Most
tables may leave rows out.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import asin, atan, exp, pi
from statistics import mean, median, stdev

import numpy as np
import pytest

from counterpoint.errors import listed
from counterpoint.reproduction.beside_paper import paper_figures
from tests.docs.tables import (
    Record,
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
    trained,
)

FINDINGS = "docs/findings.md"
AUGMIX, CHANCE, DIVERSITY, ENSEMBLES, RECALIBRATION, SMALL_NETWORKS = (
    f"docs/findings/{name}.md"
    for name in ("augmix", "chance", "diversity", "ensembles", "recalibration", "small-networks")
)
NOISE = ("gaussian_noise", "shot_noise", "impulse_noise")


def under_noise_and_elsewhere(found: Record, figure: str = "ece_width15") -> list[float]:
    cells = found["corrupted"]["cells"]
    parts = [NOISE, [name for name in cells if name not in NOISE]]
    return percent(*(mean(cell["ensemble"][figure] for name in names for cell in cells[name]) for names in parts))


def check(rows: Iterable[tuple[str, int, list[str]]], expected: Callable[[Record], Sequence[float]]) -> None:
    checked = [(name, seed, cells, expected(result(name, seed))) for name, seed, cells in rows]
    assert len(checked) > 1
    wrong = [(name, seed, cells, values) for name, seed, cells, values in checked if not agree(cells, values)]
    assert not wrong


def test_numbers_are_compared_as_they_are_rounded() -> None:
    assert agree(["1.25", "-0.5 to +1,234"], [1.254, -0.54, 1233.6])
    assert agree(["0.15", "0.16"], [0.155, 0.155])
    assert not agree(["1.25"], [1.2552])
    with pytest.raises(ValueError, match="zip"):
        agree(["1 2"], [1])


def test_the_noise_floors() -> None:
    def expected(found: Record) -> list[float]:
        honest = found["clean"]["honest"]["ensemble"]["ece_width15"]
        of_clean = [honest[key] for key in ("floor", "debiased", "low", "high")]
        return percent(found["clean"]["ensemble"]["ece_width15"], *of_clean)

    rows = list(rows_with_results(table(CHANCE, "| run | clean ECE | floor")))
    check(rows, expected)
    assert {(name, seed) for name, seed, _ in rows} == trained()
    shifted = percent(*(on_c(result(name, seed))["ece_width15_floor"] for name, seed, _ in rows))
    assert f"where the floors are {min(shifted):.2f} to {max(shifted):.2f} %" in text_of(CHANCE)


def test_two_seeds() -> None:
    rows = table(FINDINGS, "| | seed | error | ECE |")
    lines = [(label.strip("`"), int(seed), cells) for label, seed, *cells in rows]
    check(lines, lambda found: [*headline(found), *under_noise_and_elsewhere(found)])


def test_an_ensemble_beside_others_on_cifar_100() -> None:
    names = {
        "BatchEnsemble": "batch-ensemble",
        "BatchEnsemble, diverse stochastic depth": "be+sd",
        "BatchEnsemble, one drop rate": "be+sd-not-diverse",
        "BatchEnsemble, diverse AugMix": "am-bern-0.875",
    }
    singles = {
        "single network, seeds 0 and 1": "single",
        "single network with AugMix, seeds 0 and 1": "single-am-bern-0.875",
    }
    rows = {label: cells for label, *cells in table(ENSEMBLES, "| mean ECE over cells of CIFAR-100-C |")}
    assert rows.keys() == names.keys() | singles.keys()
    check([(f"cifar100/{name}", 0, rows[label]) for label, name in names.items()], under_noise_and_elsewhere)
    for label, name in singles.items():
        both = zip(*(under_noise_and_elsewhere(result(f"cifar100/{name}", seed)) for seed in (0, 1)), strict=True)
        assert agree(rows[label], [value for pair in both for value in pair]), name


def test_the_differences_that_have_no_interval() -> None:
    def figures(found: Record) -> list[float]:
        error, _, shifted_error, shifted_ece = headline(found)
        return [
            error,
            100 * found["clean"]["honest"]["ensemble"]["ece_width15"]["debiased"],
            shifted_error,
            shifted_ece,
        ]

    rows = {label: cells for label, *cells in table(FINDINGS, "| ensemble minus single network |")}
    pairs = {"no AugMix": ("batch-ensemble", "single"), "both with AugMix": ("am-bern-0.875", "single-am-bern-0.875")}
    for (words, pair), seed in product(pairs.items(), (0, 1)):
        ensemble, single = (figures(result(f"cifar100/{name}", of)) for name, of in zip(pair, (0, seed), strict=True))
        shown = rows[f"CIFAR-100, {words}, seed {seed}"]
        assert agree(shown, [a - b for a, b in zip(ensemble, single, strict=True)]), (words, seed)


def test_the_ensemble_with_augmix_on_cifar_100() -> None:
    found, kept = result("cifar100/am-bern-0.875"), record("recalibration/cifar100-am-bern-0.875-clean-only")
    members = [headline({**found, "clean": {"ensemble": one}})[:2] for one in found["clean"]["members"]]
    errors, eces = (listed([f"{figure:.2f}" for figure in of_each]) for of_each in zip(*members, strict=True))
    way, before = kept["ways"]["before"], found["clean"]["ensemble"]
    T, after = exp(way["recalibration"]["log_temperatures"][0]["value"]), way["clean"]["ensemble"]
    singles = [recalibration("cifar100/single-am-bern-0.875", seed)["ways"]["before"]["clean"] for seed in (0, 1)]
    single_eces, single_nlls = ([one["ensemble"][key] for one in singles] for key in ("ece_width15", "nll"))
    said = (
        f"the members have errors of {errors} %, and ECEs of {eces} %",
        f"T = {T:.2f} lowers the ECE from {100 * before['ece_width15']:.2f} to {100 * after['ece_width15']:.2f} % and "
        f"the NLL from {before['nll']:.3f} to {after['nll']:.3f}",
        "with its own temperature has {:.2f} and {:.2f} %, and an NLL of {:.3f} and {:.3f}".format(
            *percent(*single_eces), *single_nlls
        ),
    )
    assert not [words for words in said if words not in text_of(ENSEMBLES)]


def test_the_verdicts_over_two_pairs_of_seeds() -> None:
    def debiased(found: Record) -> float:
        value: float = found["clean"]["honest"]["ensemble"]["ece_width15"]["debiased"]
        return value

    figures: dict[str, Callable[[Record], float]] = {
        "-C error": lambda found: on_c(found)["error"],
        "-C ECE": lambda found: on_c(found)["ece_width15"],
        "clean error": lambda found: found["clean"]["ensemble"]["error"],
        "clean ECE, debiased": debiased,
    }
    for label, shown, spread, _ in table(AUGMIX, "| CIFAR-100, single network | mean of the two"):
        pairs = [
            percent(*(figures[label](result(f"cifar100/{name}", seed)) for seed in (0, 1)))
            for name in ("single-am-bern-0.875", "single")
        ]
        assert agree([spread], [max(abs(one - other) for one, other in pairs)]), label
        # `compare` debiases a pair together, so that its mean is up to 0.02 points apart.
        assert float(shown) == pytest.approx(mean(pairs[0]) - mean(pairs[1]), abs=0.02), label


def test_what_the_members_show() -> None:
    def expected(found: Record) -> list[float]:
        clean, shifted, collapse = found["clean"], found["corrupted"]["aggregates"], found["collapse"]
        disagree = clean["disagreement"], shifted["disagreement"]
        alone = (
            collapse["clean"]["independent_disagreement"],
            mean(one["independent_disagreement"] for one in collapse["severities"]),
        )
        lowered = [
            mean(one[figure] for one in members) - ensemble[figure]
            for figure in ("error", "ece_width15")
            for members, ensemble in (
                (clean["members"], clean["ensemble"]),
                ([one["by-corruption"] for one in shifted["members"]], on_c(found)),
            )
        ]
        return percent(*disagree, *alone, *(a / b for a, b in zip(disagree, alone, strict=True)), *lowered)

    rows = list(rows_with_results(table(ENSEMBLES, "| ensemble | disagreement, %")))
    check(rows, expected)
    assert {(name, seed) for name, seed, _ in rows} == {run for run in trained() if "collapse" in result(*run)}


def test_each_member_of_the_ensembles_with_stochastic_depth() -> None:
    """Those with one drop rate share a line, from the least to the most."""

    def of_members(found: Record) -> list[list[float]]:
        clean, shifted = found["clean"]["members"], found["corrupted"]["aggregates"]["members"]
        of_each = zip(clean, (one["by-corruption"] for one in shifted), strict=True)
        return [percent(*(part[key] for part in parts for key in ("error", "ece_width15"))) for parts in of_each]

    def temperatures(name: str) -> list[float]:
        way = record(f"recalibration/{name.replace('/', '-')}-care-clean")["ways"]["per-member"]
        return [exp(one["value"]) for one in way["recalibration"]["log_temperatures"]]

    names = ("cifar100/be+sd", "cifar100/be+sd-not-diverse")
    rows = table(DIVERSITY, "| | drop rate | validation error")
    for name, (*members, mean_of_members, ensemble) in zip(names, (rows[:6], rows[6:]), strict=True):
        found = result(name)
        rates = found["config"]["policy"]["stochastic_depth"]["drop_rate"]
        each = [[*figures, T] for figures, T in zip(of_members(found), temperatures(name), strict=True)]
        assert name in members[0][0]
        if len(rates) == 1:
            edges = [edge for figures in zip(*each, strict=True) for edge in (min(figures), max(figures))]
            assert agree(members[0][1:], [*rates, *edges])
        else:
            for (_, *cells), rate, figures in zip(members, rates, each, strict=True):
                assert agree(cells, [rate, *figures]), (name, rate)
        assert agree(mean_of_members[2:], [mean(figures) for figures in zip(*of_members(found), strict=True)]), name
        assert agree(ensemble[1:], headline(found)), name


def recalibration(name: str, seed: int) -> Record:
    care = "-care-shift" if name.startswith("cifar100/be+sd") else f"-seed-{seed}" if seed else ""
    return record(f"recalibration/{name.replace('/', '-')}{care}")


def test_one_temperature() -> None:
    rows = list(rows_with_results(table(FINDINGS, "| run | clean ECE | with T |")))
    assert len(rows) > 7
    for name, seed, cells in rows:
        kept, way = result(name, seed), recalibration(name, seed)["ways"]["before"]
        clean, shifted = way["clean"]["ensemble"], way["corrupted"]["ensemble"]["by-corruption"]
        figures = (kept["clean"]["ensemble"], clean, on_c(kept), shifted)
        assert agree(cells, percent(*(one["ece_width15"] for one in figures))), (name, seed)


def test_the_recalibrations() -> None:
    rows = list(rows_with_results(table(RECALIBRATION, "| run | clean T, shift T |")))
    assert len(rows) > 9
    for name, seed, cells in rows:
        found, kept = recalibration(name, seed), result(name, seed)
        ways = [found["ways"][way] for way in ("before", "before, shifted")]
        temperatures = [exp(way["recalibration"]["log_temperatures"][0]["value"]) for way in ways]
        clean = [way["clean"]["ensemble"]["ece_width15"] for way in ways]
        shifted = [way["corrupted"]["ensemble"]["by-corruption"]["ece_width15"] for way in ways]
        expected = [kept["clean"]["ensemble"]["ece_width15"], *clean, on_c(kept)["ece_width15"], *shifted]
        assert agree(cells, [*temperatures, *percent(*expected)]), (name, seed)
        if found["care"] == "both":
            chosen = [i for i, cell in enumerate(cells) if cell.startswith("**")]
            kinds = {"none": [1, 4], "before": [2, 5], "before, shifted": [3, 6]}
            assert chosen == kinds.get(found["choice"]["chosen"], []), (name, seed)


def test_what_is_left_after_the_chosen_recalibration() -> None:
    heading, *rows = table_with_heading(RECALIBRATION, "| ECE in %, after the chosen recalibration")
    named = [cell.lower().replace(" ", "_") for cell in heading[1:-1]]
    for label, *cells in rows:
        found = record(f"recalibration/{label.strip('`').replace('/', '-')}")
        figures = found["ways"][found["choice"]["chosen"]]["corrupted"]["corruptions"]
        eces = {name: 100 * one["ece_width15"] for name, one in figures.items()}
        assert agree(cells[:-1], [eces[name] for name in named]), label
        others = [value for name, value in eces.items() if name not in named]
        edges = (min(others), max(others)) if " to " in cells[-1] else (max(others),)
        assert agree(cells[-1:], edges), label


def test_the_papers_differences() -> None:
    """Of its printed figures, beside ours: the pairs of rows in the order of each table."""
    names = ("single-am-bern-0.875", "am-bern-0.875", "batch-ensemble", "single")
    augmix, diverse, plain, single = names
    headings = {
        "| ensemble minus single network |": (
            ("cifar10", plain, single),
            ("cifar10", diverse, augmix),
            ("cifar100", plain, single),
            ("cifar100", diverse, augmix),
            ("cifar100", "be+sd", single),
            ("cifar100", "be+sd-not-diverse", single),
        ),
        "| AugMix minus no AugMix |": (
            ("cifar10", augmix, single),
            ("cifar10", diverse, plain),
            ("cifar100", augmix, single),
            ("cifar100", diverse, plain),
        ),
    }
    for heading, pairs in headings.items():
        shown = [cells for label, *cells in table(FINDINGS, heading) if label == "the paper"]
        for cells, (dataset, row, other) in zip(shown, pairs, strict=True):
            assert agree(cells, papers_difference(f"{dataset}/{row}", f"{dataset}/{other}")), (row, other)
    diverse_depth = papers_difference("cifar100/be+sd", "cifar100/be+sd-not-diverse", rms=True)
    rows = table(FINDINGS, "| diverse minus not diverse |")[:3]
    assert agree([cells[2] for cells in rows] + [cells[4] for cells in rows], diverse_depth)


def papers_difference(row: str, other: str, *, rms: bool = False) -> list[float]:
    differences = percent(*(a - b for a, b in zip(paper_figures(row), paper_figures(other), strict=True)))
    return differences if rms else [differences[i] for i in (0, 1, 3, 4)]


def test_the_figures_of_many_seeds() -> None:
    files = [record(f"diversity-cpu/{name}") for name in ("digits", "digits-deep")]
    for kind, (_, *cells) in zip(files[0], table(SMALL_NETWORKS, "| -C ECE | BatchEnsemble |"), strict=True):
        eces = [percent(*(run["corrupted_ece"] for run in runs[kind].values())) for runs in files if kind in runs]
        assert agree(cells, [figure for values in eces for figure in (mean(values), stdev(values))]), kind


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("digits", "| difference in -C ECE, with 97.5 % intervals over seeds |"),
        ("digits-deep", "| difference in -C ECE of deep ensembles, with 98.3 % intervals over seeds |"),
    ],
)
def test_the_differences_of_many_seeds(name: str, heading: str) -> None:
    runs, rows = record(f"diversity-cpu/{name}"), table(SMALL_NETWORKS, heading)
    pairs = [
        ("augmix-diverse", "augmix-3"),
        ("augmix-diverse", "augmix-2.5"),
        ("augmix-diverse", "augmix-single"),
        ("depth-diverse", "depth-0.075"),
    ]
    pairs = [pair for pair in pairs if set(pair) <= runs.keys()]
    for (label, shown, less, middle), (one, other) in zip(rows, pairs, strict=True):
        differences = percent(
            *(runs[one][seed]["corrupted_ece"] - runs[other][seed]["corrupted_ece"] for seed in runs[one])
        )
        fewer = sum(difference < 0 for difference in differences)
        assert agree(
            [shown.partition(" (")[0], less, middle], [mean(differences), fewer, len(differences), median(differences)]
        ), label


def test_how_often_the_rule_decides_where_nothing_differs() -> None:
    """Two experiments with normal figures: for several pairs of seeds, and where only one of them has a spread."""

    def decided(pairs: int, *, other_spreads: bool = True, times: float = 1) -> float:
        drawn_2SD = np.random.default_rng(0).standard_normal((2, pairs, 400_000))
        drawn_2SD[1] *= other_spreads
        differences_SD, spread_D = drawn_2SD[0] - drawn_2SD[1], np.ptp(drawn_2SD, axis=1).max(axis=0)
        same_sign_D = np.abs(np.sign(differences_SD).sum(axis=0)) == pairs
        return 100 * float((same_sign_D & (np.abs(differences_SD.mean(axis=0)) > times * spread_D)).mean())

    text = text_of(FINDINGS)
    two, one_sided, three = 200 * asin(1 / 3) / pi, 200 * atan(1 / 2) / pi, decided(3)
    assert two == pytest.approx(decided(2), abs=0.2), "the solid angle of two pyramids"
    assert one_sided == pytest.approx(decided(2, other_spreads=False), abs=0.2), "the angle of two sectors"
    assert f"it would still decide for one of them in {two:.0f} % of the cases" in text
    assert f"it is {one_sided:.0f} %. With three pairs it would be {three:.0f} %." in text
    rows = {label: float(m) / float(s) for label, m, s, _ in table(AUGMIX, "| CIFAR-100, single network | mean of")}
    clean = {f"{decided(2, times=abs(rows[label])):.0f}" for label in ("clean error", "clean ECE, debiased")}
    assert clean == {"2"}
    assert "would be seen in 2 % of the cases, and one as large as that of the -C error in 0.1 %" in text_of(AUGMIX)
    assert f"{decided(2, times=abs(rows['-C error'])):.1f}" == "0.1"
