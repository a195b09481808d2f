"""What the words of the page mean, on the page itself, so that it can be read offline."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Facts

TITLE = "Glossary"
TERMS = {
    "Abstain and keep": "To keep a prediction is to use it. To abstain is to say “not sure”, so that a person decides.",
    "Accuracy": "The share of images whose predicted class is right. It is 100 % minus the error.",
    "AURC": "The error of the surest predictions, averaged over all shares of predictions that could be kept. Lower is "
    "better.",
    "AUROC": "The chance that a known image gets more confidence than an outside image. A tie counts half. 1 is "
    "perfect, and 0.5 is guessing. Known images are the positives.",
    "Brier": "The squared difference between the predicted probabilities and the truth, summed over classes and "
    "averaged over images. It lies between 0 and 2, and lower is better.",
    "By-corruption": "One figure for many cells. The severities of a corruption are pooled, the figure is computed, "
    "and the mean is taken over the corruptions. By-cell is the mean over all cells, and pooled takes all images of "
    "all cells at once.",
    "Calibrated": "A model is calibrated if its confidence is true: of the predictions made with 80 % confidence, 80 % "
    "are right.",
    "Cell": "One corruption at one severity.",
    "Clean images": "Images as they are, without a corruption. They are test images. A run on CIFAR’s split has its "
    "validation images here, as in the paper.",
    "Confidence": "The averaged probability of the predicted class.",
    "Corrupted images": "The test images under 15 corruptions × 5 severities. “-C” is short for them.",
    "Debiased ECE": "The ECE with the noise’s share removed. It estimates what the ECE would be with endlessly many "
    "images.",
    "ECE": "Expected calibration error: the mean gap between confidence and accuracy over bins of confidence. A bin "
    "counts by how many images it holds. ECE-rms squares the gaps, so that large gaps count for more.",
    "Ensemble": "Several networks that predict together. Their probabilities are averaged.",
    "Entropy": "How unsure a prediction is, over all classes, in nats. It is 0 if one class has the probability 1. Of "
    "an ensemble it is that of the averaged probabilities.",
    "Equal-width and equal-mass bins": "Equal-width bins cover equally wide ranges of confidence. Equal-mass bins hold "
    "equally many images.",
    "Experiment": "The named settings of a run. A row of the paper’s tables is an experiment.",
    "FPR and TPR": "The false positive rate is the share of outside images that are accepted. The true positive rate "
    "is the share of known images that are accepted. An image is accepted from some confidence on.",
    "Interval": "A 95 % interval over images: where the figure could lie with other images of the same kind. Where "
    "images belong together, such as those of one patient, it is over these groups. It is for the one model that was "
    "trained, and says nothing about other seeds. An interval that holds 0 means that the images do not tell two runs "
    "apart.",
    "Lost channels": "Channels of a network that training has switched off. A network with many lost channels is "
    "smaller than it seems.",
    "Member": "One of the networks in an ensemble.",
    "Mutual information": "How far the members’ predictions differ on an image, in nats: the entropy of their averaged "
    "probabilities minus the mean of their own entropies.",
    "NLL": "Negative log-likelihood: minus the logarithm of the probability of the right class, averaged over images. "
    "Lower is better.",
    "Noise floor": "The ECE that a perfectly calibrated model would show on as many images. The excess is the ECE "
    "minus its noise floor.",
    "Outside images": "Images of none of the model’s classes. Known images are those of its classes.",
    "Over-confident": "The mean confidence is higher than the accuracy. An under-confident model has a mean confidence "
    "below its accuracy.",
    "Recalibration": "A correction of the confidence, fitted on validation images.",
    "Run": "One training, in its folder.",
    "Seed": "The number that all random draws of a run come from. Runs with different seeds show how much a figure "
    "depends on chance in the training.",
    "Severity": "How strong a corruption is, from 1 to 5.",
    "Shift": "Images that differ from the training images.",
    "Single network": "One network by itself. It is what an ensemble is compared with.",
    "Temperature": "A recalibration that divides the logits by one number. Above 1 it lowers the confidence, and below "
    "1 it raises it.",
    "Threshold": "The lowest confidence from which predictions are kept.",
    "Twin": "The same experiment trained on the split, whose held-out images give the recalibration.",
    "Validation images": "Images that are not trained on. Temperatures and thresholds come from these.",
}


@dataclass(frozen=True)
class Glossary(Content):
    terms: tuple[tuple[str, str, str], ...]  # the id on the page, the term, and what it means

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, (Facts(tuple((term, meaning) for _, term, meaning in self.terms)),))


def glossary(_: Sequence[ReportedRun]) -> Glossary:
    """The same for all runs: a link to a term always leads somewhere."""
    return Glossary(tuple((f"term-{term.lower().replace(' ', '-')}", term, meaning) for term, meaning in TERMS.items()))
