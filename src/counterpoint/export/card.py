"""The model card beside an exported file, as Markdown: what the model is, what was measured, and what was not.

It names no folder of this machine. If something is not known, the card says so.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import counterpoint
from counterpoint.errors import InputError
from counterpoint.export.card_code import example
from counterpoint.export.card_confidence import confidence, measured, promise
from counterpoint.export.card_facts import CardFacts
from counterpoint.export.card_head import OURS, yaml_head
from counterpoint.model_names import library_of
from counterpoint.report.formats.markdown import markdown_page
from counterpoint.report.run import drawn_over
from counterpoint.report.section import Block, Code, Facts, Part
from counterpoint.training.run_images import data_name

_NAME_ON_THE_HUB = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_CHANNELS = {1: "grey", 3: "red, green, blue"}


def model_card(facts: CardFacts) -> str:
    """The whole file: the head that hubs read, and the page for people."""
    blocks = (
        Block("What it is", _what(facts)),
        Block("What goes in, what comes out", tuple(_interface(facts))),
        Block("Classes", (_classes(facts),)),
        Block("Measured", tuple(measured(facts))),
        Block("Confidence", tuple(confidence(facts))),
        Block("When to ask a person", tuple(promise(facts))),
        Block("Limits", (Facts(tuple(_limits(facts))),)),
    )
    return f"{yaml_head(facts)}\n{markdown_page(facts.run.experiment.name, blocks)}"


def check_card_path(path: Path) -> None:
    """Raise if the card would replace a file that counterpoint did not write: the user never named that file."""
    if not path.exists():
        return
    head = path.read_text(encoding="utf-8", errors="replace").partition("\n---\n")[0] if path.is_file() else ""
    if not (head.startswith("---\n") and f'- "{OURS}"' in head.splitlines()):
        raise InputError(
            f"the model card would replace {path}, which counterpoint did not write; choose another path (--out)"
        )


def _what(facts: CardFacts) -> tuple[Part, ...]:
    run, description = facts.run, facts.run.description
    use = " for validation" if run.experiment.images is None else ""  # of your own, some may be for testing
    held_out = f", the others held out{use}" if run.experiment.train_on == "split" else ""
    images = f"{description.height} × {description.width} pixels, {_channels(description.channels)}"
    return (
        Facts(
            (
                ("File", f"{facts.file_name}, exported by counterpoint {counterpoint.__version__}"),
                ("Network", _network(facts)),
                ("Trained on", f"{description.training_images:,} images of {data_name(run)}{held_out}"),
                ("Images", images),
                ("Training", f"{description.total_steps:,} steps with seed {run.seed}"),
                ("Weights", facts.weights),
                (
                    "Checked",
                    f"at most {facts.agreement.difference:.1e} from PyTorch, in any probability of "
                    f"{facts.agreement.words}",
                ),
            )
        ),
    )


def _network(facts: CardFacts) -> str:
    """A model that came from a folder is not called by the folder's name."""
    experiment = facts.run.experiment
    name = experiment.model
    if library_of(name) == "hf" and not _NAME_ON_THE_HUB.fullmatch(name.removeprefix("hf/")):
        name = "an image classifier of transformers"
    if facts.members == 1:
        return f"{name}, one network"
    kind = "separate networks" if experiment.ensemble == "deep" else "members that share their weights (BatchEnsemble)"
    return f"{name}, an ensemble of {facts.members} {kind}"


def _interface(facts: CardFacts) -> Iterator[Part]:
    description, members, classes = facts.run.description, facts.members, len(facts.run.description.classes)
    size = (description.height, description.width, description.channels)
    of_members = "each member’s probabilities"
    if facts.correction.recalibration.acts == "after":
        of_members += ", not recalibrated: the temperature acts after averaging"
    yield Facts(
        (
            (
                "images",
                f"uint8, N × {size[0]} × {size[1]} × {size[2]}: pixels from 0 to 255 ({_channels(size[2])}), as they "
                "are; normalisation is inside, and N may be any number",
            ),
            ("probabilities", f"float32, N × {classes}: each class’s probability, recalibrated or not, as said below"),
            ("members", f"float32, {members} × N × {classes}: {of_members}"),
        )
    )
    yield "For example:"  # and without it Markdown would take the code for a part of the list
    yield Code(example(facts.file_name, *size))


def _classes(facts: CardFacts) -> str:
    classes = facts.run.description.classes
    return f"{len(classes)} classes: {', '.join(f'{name} ({number})' for number, name in enumerate(classes))}."


def _limits(facts: CardFacts) -> Iterator[tuple[str, str]]:
    description = facts.run.description
    yield (
        "Other pictures",
        f"a picture of another size must become {description.height} × {description.width} pixels first, and how that "
        "is done moves confidences; the lines above do it as counterpoint predict does, which also lays a transparent "
        "picture on white and brings one of 16 bits to 8",
    )
    yield (
        "Other images",
        "every image gets one of the classes, also one that shows none of them; nothing is promised of images unlike "
        "those measured on",
    )
    if facts.evaluated is not None:
        over = drawn_over(facts.evaluated.results.evaluated_on.groups)
        yield "One training", f"figures and intervals are of this one network, {over}; other seeds may differ"
        yield (
            "Precision",
            f"float32 here; the figures were computed with {facts.evaluated.results.evaluation.precision}",
        )
    yield "Uses", "what the model may be used for was not examined, nor how it treats groups of people"
    yield "Licence", "that of the data and of the weights is not known here"


def _channels(channels: int) -> str:
    return _CHANNELS.get(channels, f"{channels} channels")
