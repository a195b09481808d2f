"""A run as the report shows it: its name on the page, the images it was measured on, and its figures.

The clean set, a cell and an aggregate over cells all become a summary of the same shape: {"ensemble", "members",
"disagreement"}, so that tables, headlines and files treat them alike.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.errors import InputError

AGGREGATES = ("by-corruption", "by-cell", "pooled")  # docs/paper.md, 13; the first is the headline
SEVERITIES = (1, 2, 3, 4, 5)
CALIBRATION = ("ece_width15", "ece_rms_width15", "ece_mass15", "ece_rms_mass15")
TEMPERATURES = ("before", "after", "per-member")
CORRUPTIONS = {
    "gaussian_noise": "Gaussian noise",
    "shot_noise": "Shot noise",
    "impulse_noise": "Impulse noise",
    "defocus_blur": "Defocus blur",
    "glass_blur": "Glass blur",
    "motion_blur": "Motion blur",
    "zoom_blur": "Zoom blur",
    "snow": "Snow",
    "frost": "Frost",
    "fog": "Fog",
    "brightness": "Brightness",
    "contrast": "Contrast",
    "elastic_transform": "Elastic",
    "pixelate": "Pixelate",
    "jpeg_compression": "JPEG",
}
"""The official names in the official order, and what the page calls them; `counterpoint.corrupt` needs numpy."""

Summary = dict[str, Any]
Scores = dict[str, float | None]


@dataclass(frozen=True)
class ReportedRun:
    label: str
    results: dict[str, Any]

    @property
    def clean(self) -> Summary:
        return self.results["clean"]

    @property
    def corrupted(self) -> dict[str, Any]:
        return self.results["corrupted"]

    @property
    def is_corrupted(self) -> bool:
        return "corrupted" in self.results

    @property
    def is_ensemble(self) -> bool:
        return len(self.clean["members"]) > 1

    @property
    def images(self) -> str:
        on = self.results["evaluated_on"]
        return f"{on['dataset']}, {on['part']} part, {on['images']:,} images"

    @property
    def corrupted_images(self) -> str:
        return (
            f"{self.results['evaluated_on']['dataset']}-C, {source_in_words(self.corrupted['source'])}, "
            f"{self.corrupted['images']:,} images per cell"
        )

    @property
    def clean_is_severity_0(self) -> bool:
        """Whether the clean figures are of the very images that were corrupted."""
        on = self.results["evaluated_on"]
        return on["part"] == "test" and on["images"] == self.corrupted["images"]

    @property
    def commands(self) -> tuple[str, str]:
        return self.results["run"]["command"], self.results["evaluation"]["command"]

    def aggregate(self, name: str) -> Summary:
        """A summary over all cells. Cells hold equally many images, so every kind has the same disagreement."""
        aggregates = self.corrupted["aggregates"]
        between = [cell["disagreement"] for row in CORRUPTIONS for cell in self.corrupted["cells"][row]]
        return {
            "ensemble": aggregates["ensemble"][name],
            "members": [member[name] for member in aggregates["members"]],
            "disagreement": sum(between) / len(between) if self.is_ensemble else None,
            "pairwise_kl": aggregates.get("pairwise_kl"),
        }


def label_runs(results: Sequence[dict[str, Any]]) -> list[ReportedRun]:
    """The runs, each by its experiment's name, with its seed and then its place added where names are equal."""
    if not results:
        raise InputError("there is no run to report; give at least one run folder")
    labels = _told_apart([run["experiment"] for run in results], [f"seed {run['run']['seed']}" for run in results])
    labels = _told_apart(labels, [f"run {place}" for place in range(1, len(labels) + 1)])
    return [ReportedRun(label, of_run) for label, of_run in zip(labels, results, strict=True)]


def page_title(runs: Sequence[ReportedRun]) -> str:
    return f"{len(runs)} runs compared" if len(runs) > 3 else " and ".join(run.label for run in runs)


def source_in_words(source: dict[str, Any]) -> str:
    if source["kind"] == "official":
        return "the official files"
    return (
        f"regenerated with seed {source['seed']} (generator {source['version']}), "
        f"frost from {'photographs' if source['frost'] == 'photographs' else 'a made texture'}"
    )


def models(summary: Summary) -> Iterator[tuple[str, Scores]]:
    """The scores of the ensemble and then of each member, or of the one network."""
    several = len(summary["members"]) > 1
    honest = summary.get("honest") or {"ensemble": {}, "members": []}
    between = {key: summary.get(key) for key in ("disagreement", "pairwise_kl")}
    yield "ensemble" if several else "network", _scores(summary["ensemble"], honest["ensemble"]) | between
    if several:
        estimates = honest["members"] or [{}] * len(summary["members"])
        for number, (scores, of_member) in enumerate(zip(summary["members"], estimates, strict=True), start=1):
            yield f"member {number}", _scores(scores, of_member)


def _scores(scores: Mapping[str, float], honest: Mapping[str, Mapping[str, float]]) -> Scores:
    """With the honest estimates beside each calibration error; an aggregate over cells has only its noise floor."""
    excess = {f"{key}_excess": scores[key] - scores[f"{key}_floor"] for key in CALIBRATION if f"{key}_floor" in scores}
    estimates = {f"{key}_{part}": value for key, parts in honest.items() for part, value in parts.items()}
    overconfidence = scores["mean_confidence"] - (1 - scores["error"])
    return {"overconfidence": overconfidence, **scores, **excess, **estimates}


def _told_apart(labels: Sequence[str], additions: Sequence[str]) -> list[str]:
    seen = Counter(labels)
    return [f"{label}, {more}" if seen[label] > 1 else label for label, more in zip(labels, additions, strict=True)]
