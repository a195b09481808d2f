"""The model card: what is known of a run, and that the rest is not known."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.export.card import check_card_path, model_card
from counterpoint.export.card_code import example
from counterpoint.export.card_facts import known_of
from counterpoint.own_images import OwnImages
from counterpoint.records.files import RECALIBRATED, RESULTS, THRESHOLD, Evaluated, write_record
from counterpoint.serving.correction import Correction
from tests.export.made_card import CHOSEN, EVALUATED, OF_THRESHOLD, PLAIN, RECALIBRATED_RUN, made_facts
from tests.made_results import make_recalibrated, make_results, make_thresholded
from tests.report.made import changed


def sections(card: str) -> dict[str, str]:
    """The page's parts by their headings."""
    _, *parts = re.split(r"^## (.*)\n", card, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def head(card: str) -> dict[str, list[str]]:
    """The lines of the head below each of its keys."""
    text = re.fullmatch(r"---\n(.*?\n)---\n\n# .*", card, re.DOTALL)
    assert text is not None
    _, *parts = re.split(r"^([\w-]+):", text[1], flags=re.MULTILINE)
    return {key: rest.strip().splitlines() for key, rest in zip(parts[::2], parts[1::2], strict=True)}


def test_a_run_that_was_not_evaluated_says_so_everywhere() -> None:
    card = model_card(made_facts(evaluated=None))
    found = sections(card)
    assert found["Measured"].startswith("\nNot known: neither the error nor the calibration of these weights was")
    assert found["When to ask a person"].startswith("\nNot known: no threshold with a promise was found")
    assert "The probabilities are the network’s own" in found["Confidence"]
    assert set(head(card)) == {"license", "library_name", "pipeline_tag", "tags"}
    assert head(card)["license"] == ['"unknown"']
    assert "Licence: that of the data and of the weights is not known here" in found["Limits"]
    assert "%" not in card


def test_what_it_is() -> None:
    found = sections(model_card(made_facts()))
    assert found["What it is"].split("\n")[1:8] == [
        "- File: model.onnx, exported by counterpoint 0.1.0",
        "- Network: resnet, an ensemble of 2 members that share their weights (BatchEnsemble)",
        "- Trained on: 1,234 images of digits, the others held out for validation",
        "- Images: 8 × 12 pixels, grey",
        "- Training: 5,678 steps with seed 3",
        "- Weights: 0123456789abcdef",
        "- Checked: at most 3.0e-07 from PyTorch, in any probability of 5 images",
    ]
    assert r"3 classes: ant (0), a\_b \*c\* (1), bee\|wasp (2)." in found["Classes"]
    assert "- images: uint8, N × 8 × 12 × 1: pixels from 0 to 255 (grey)" in found["What goes in, what comes out"]
    assert "- members: float32, 2 × N × 3: each member’s probabilities\n" in found["What goes in, what comes out"]


def test_images_of_your_own_may_be_held_out_for_testing_too() -> None:
    facts = made_facts(evaluated=None)
    own = replace(facts.run.experiment, dataset="images", images=OwnImages())
    card = model_card(replace(facts, run=replace(facts.run, experiment=own)))
    assert ", the others held out\n" in sections(card)["What it is"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ensemble": "deep", "init_std": 0.5}, "resnet, an ensemble of 2 separate networks"),
        ({"num_members": None}, "resnet, one network"),
        ({"model": "hf/google/vit-base"}, "hf/google/vit-base, an ensemble"),
        ({"model": "hf//home/me/vit"}, "an image classifier of transformers, an ensemble"),
        ({"model": "hf/../vit"}, "an image classifier of transformers, an ensemble"),
        ({"model": "mymodule:make"}, "mymodule:make, an ensemble"),
    ],
    ids=str,
)
def test_networks_are_named_without_folders(changes: dict[str, Any], words: str) -> None:
    facts = made_facts(evaluated=None)
    run = replace(facts.run, experiment=replace(facts.run.experiment, **changes))
    assert f"- Network: {words}" in model_card(replace(facts, run=run))


def test_own_figures_are_those_of_the_recalibration_in_the_file() -> None:
    recalibrated = replace(RECALIBRATED_RUN.ways["by both"].clean.ensemble, error=0.125, ece_width15=0.03125)
    way = replace(
        RECALIBRATED_RUN.ways["by both"], clean=replace(RECALIBRATED_RUN.ways["by both"].clean, ensemble=recalibrated)
    )
    evaluated = replace(EVALUATED, recalibrated=replace(RECALIBRATED_RUN, ways={"by both": way}))
    card = model_card(made_facts(CHOSEN, evaluated))
    measured = sections(card)["Measured"]
    assert "**this file’s own probabilities (-C by-corruption)**" in measured
    assert "| clean | 12.50 | 0.700 | 0.400 | 3.12 |" in measured
    assert "With no recalibration:" in measured
    assert "| ensemble | clean | 25.00 | 5.00 |" in measured
    index = head(card)["model-index"]
    assert '- name: "digits/quickstart"' in index
    assert [line.split()[-1] for line in index if "value:" in line] == ["0.875", "0.0312", "0.7", "0.75", "0.05", "0.7"]
    assert '      name: "digits, validation part, 10 images"' in index
    assert '      type: "digits-c"' in index
    assert head(card)["metrics"] == ['- "accuracy"', '- "ece"', '- "nll"']


def test_without_a_recalibration_the_figures_are_the_results() -> None:
    measured = sections(model_card(made_facts(evaluated=Evaluated(make_results()))))["Measured"]
    assert measured.startswith("\nMeasured on digits, validation part, 10 images, with fp32.")
    assert "-C: 2 kinds of corruption, each at 2 severities: 4 cells of 4 test images, regenerated with" in measured
    assert "(-C and validation-extra by-corruption)" in measured
    assert "| -C | 25.00 | 0.700 |" in measured
    assert "With no recalibration" not in measured
    assert "| Noise floor (%) | Excess (points) | Debiased (%) | Interval (95 %, over images) |" in measured
    assert "2.00 to 7.00" in measured
    only_clean = replace(make_results(), corrupted=None, shifts={})
    assert "Under shift it was not measured." in model_card(made_facts(evaluated=Evaluated(only_clean)))


def test_floors_that_are_too_low_are_said_to_be() -> None:
    said = "It took the cells of an image as independent, so these floors are too low."
    for over, sentences in (("cells", 1), ("images", 0)):
        results = changed(make_results(), "corrupted.aggregates.floors_over", over)
        measured = sections(model_card(made_facts(evaluated=Evaluated(results))))["Measured"]
        assert measured.count(said) == sentences


def test_the_recalibration_is_named_with_its_parameters() -> None:
    confidence = sections(model_card(made_facts(CHOSEN)))["Confidence"]
    assert "Recalibrated, “by entropy and disagreement”: T = 0.90 ± 0.03" in confidence.replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "No test image was used" in confidence
    after = replace(CHOSEN.recalibration, acts="after", slopes=())
    assert "not recalibrated: the temperature acts after averaging" in model_card(
        made_facts(Correction(after, "after"))
    )


def test_a_choice_of_none_is_told_from_no_recalibration() -> None:
    assert RECALIBRATED_RUN.choice is not None
    chosen = replace(RECALIBRATED_RUN, choice=replace(RECALIBRATED_RUN.choice, chosen="none"))
    words = "On held-out images, none of the recalibrations was better than no recalibration."
    assert words in model_card(made_facts(PLAIN, replace(EVALUATED, recalibrated=chosen)))
    assert words not in model_card(made_facts(PLAIN, Evaluated(make_results())))


def test_a_promise_stands_with_the_confidences_that_it_is_for() -> None:
    card = model_card(made_facts(OF_THRESHOLD))
    asked = sections(card)["When to ask a person"]
    assert "Keep predictions with a confidence of 0.75 or more: with 95 % confidence" in asked
    assert "| severity 2 | 50.00 | 75.00 | breaks in 1 of 2 | Fog 75.00 |" in asked
    assert "No error is promised" not in asked
    assert "Neither was measured with the recalibration that is in this file" in sections(card)["Measured"]
    assert "model-index" not in head(card)


def test_a_promise_for_other_confidences_is_not_made() -> None:
    asked = sections(model_card(made_facts(CHOSEN)))["When to ask a person"]
    assert asked.startswith("\nNot known for this file: a threshold was found, but for another recalib")
    assert "Keep" not in asked


@pytest.mark.parametrize("correction", [PLAIN, OF_THRESHOLD])
def test_a_confidence_that_somebody_chose_promises_nothing(correction: Correction) -> None:
    asked = sections(model_card(made_facts(replace(correction, sure_from=0.9999999))))["When to ask a person"]
    assert (
        "chose to call predictions “not sure” below a confidence of 0.9999999. No error is promised for that." in asked
    )


@pytest.mark.parametrize("correction", [PLAIN, CHOSEN, OF_THRESHOLD])
def test_a_card_names_no_folder_and_is_made_of_plain_markdown(correction: Correction) -> None:
    card = model_card(made_facts(correction))
    assert "/somewhere" not in card
    assert "runs/mine" not in card
    for block in card.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


@pytest.mark.parametrize(("file_name", "library"), [("model.onnx", "onnx"), ("Model.PT2", "pytorch")])
def test_the_head_is_what_hubs_read(file_name: str, library: str) -> None:
    facts = made_facts(file_name=file_name)
    found = head(model_card(facts))
    assert found["library_name"] == [f'"{library}"']
    assert found["pipeline_tag"] == ['"image-classification"']
    assert '- "ensemble"' in found["tags"]
    assert "datasets" not in found, "scikit-learn's digits are on no hub"
    run = replace(facts.run, experiment=replace(facts.run.experiment, dataset="cifar10", num_members=None))
    cifar = head(model_card(replace(facts, run=run)))
    assert cifar["datasets"] == ['- "uoft-cs/cifar10"']
    assert '- "ensemble"' not in cifar["tags"]


def test_records_of_other_weights_are_left_out(tmp_path: Path) -> None:
    assert known_of(tmp_path, "0123456789abcdef") == (None, ())
    write_record(tmp_path / RESULTS, make_results())
    write_record(tmp_path / RECALIBRATED, make_recalibrated())
    stale = replace(make_thresholded().made_from, precision="bf16")
    write_record(tmp_path / THRESHOLD, replace(make_thresholded(), made_from=stale))
    evaluated, notes = known_of(tmp_path, "0123456789abcdef")
    assert evaluated is not None
    assert evaluated.recalibrated == make_recalibrated()
    assert evaluated.thresholded is None
    assert "threshold.json was made from other logits" in notes[0]
    evaluated, (note,) = known_of(tmp_path, "of others")
    assert evaluated is None
    assert re.search(
        r"results\.json is not of the weights that .* has now; `counterpoint evaluate .*` makes it anew", note
    )


@pytest.mark.parametrize("text", ["# Mine", "---\ntags:\n- other\n---\n", "", "---\ntags:\n---\n- counterpoint"])
def test_only_a_card_of_ours_is_replaced(tmp_path: Path, text: str) -> None:
    card = tmp_path / "model.md"
    check_card_path(card)
    card.write_text(model_card(made_facts()))
    check_card_path(card)
    card.write_text(text)
    with pytest.raises(InputError, match=r"which counterpoint did not write; choose another path \(--out\)"):
        check_card_path(card)


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which counterpoint did not write"):
        check_card_path(tmp_path)


def test_names_of_the_head_are_quoted_as_json_has_them() -> None:
    facts = made_facts()
    name = 'a "b": #c'
    run = replace(facts.run, experiment=replace(facts.run.experiment, name=name))
    assert f"- name: {json.dumps(name)}" in head(model_card(replace(facts, run=run)))["model-index"]


def test_the_lines_in_the_card_take_pixels_where_predict_takes_no_pictures() -> None:
    found: dict[str, Any] = {"np": np}
    (line,) = (one for one in example("model.onnx", 8, 16, 2).splitlines() if one.startswith("images = "))
    exec(line, found)
    assert found["images"].shape == (1, 8, 16, 2)
