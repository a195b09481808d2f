"""A text classifier as a diverse ensemble: which package does a docstring come from?

    python examples/text.py

The texts are the docstrings of the installed numpy, scipy, scikit-learn and torch, read without importing them. The
split is by module, so no module is in both parts. Words that give the package away are removed. In training, each
member loses its own share of the words. The shift is the test texts with half of their words lost.
"""

import argparse
import ast
import re
import sysconfig
import zlib
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint import Ensemble, batch_ensemble, ece, nll

PACKAGES = ("numpy", "scipy", "sklearn", "torch")
TELLING = {*PACKAGES, "np", "scikit", "learn", "pytorch", "ndarray", "array_like", "tensor", "tensors"}
WORDS, LENGTH = 4000, 32
DROP_RATES = (0.0, 0.1, 0.2, 0.3)  # one per member


def docstrings(package: str, most: int) -> list[tuple[str, list[str]]]:
    """At most `most` docstrings of a package, each with its module and words. The order of modules is arbitrary."""
    found: list[tuple[str, list[str]]] = []
    files = Path(sysconfig.get_paths()["purelib"], package).rglob("*.py")
    for file in sorted(files, key=lambda file: zlib.crc32(str(file.relative_to(file.parents[1])).encode())):
        if len(found) >= most:
            break
        if "tests" in file.parts:  # some are not meant to be read by every Python
            continue
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
                words = [w for w in re.findall(r"[a-z_]{2,}", text.lower()) if w not in TELLING]
                if len(words) >= 10:
                    found.append((str(file), words[:LENGTH]))
    return found[:most]


def load(most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (N, LENGTH), labels, and which texts are for training. 0 pads; 1 is an unknown or a lost word."""
    texts = [(k, *one) for k, package in enumerate(PACKAGES) for one in docstrings(package, most)]
    training = torch.tensor([zlib.crc32(Path(module).name.encode()) % 4 > 0 for _, module, _ in texts])
    counts = Counter(word for (_, _, words), known in zip(texts, training, strict=True) if known for word in words)
    number = {word: i + 2 for i, (word, _) in enumerate(counts.most_common(WORDS))}
    tokens = [[number.get(word, 1) for word in words] + [0] * (LENGTH - len(words)) for _, _, words in texts]
    return torch.tensor(tokens), torch.tensor([k for k, _, _ in texts]), training


class Classifier(nn.Module):
    """Torch's own transformer layers, over words."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS + 2, width), nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, len(PACKAGES))

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens) + self.places.weight
        logits: Tensor = self.head(self.encoder(hidden, src_key_padding_mask=tokens == 0).mean(1))
        return logits


def lose(tokens: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Each word becomes an unknown one with the probability `rate`."""
    lost = torch.rand(tokens.shape, generator=generator) < rate
    return tokens.masked_fill(lost & (tokens > 0), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--most", type=int, default=1000, help="texts per package")
    arguments = parser.parse_args()
    tokens, labels, training = load(arguments.most)
    test, test_labels = tokens[~training], labels[~training]
    print(f"{int(training.sum())} texts to learn from, {len(test)} to test on")
    for name, rates in (("single", (0.2,)), ("ensemble", (0.2,) * 4), ("diverse ensemble", DROP_RATES)):
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        model = Ensemble(Classifier())  # of one member
        if len(rates) > 1:
            model = batch_ensemble(model.network, len(rates), 0.5, example_input=test[:3], generator=generator)
            if name == "ensemble":
                print(model.conversion)
        optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
        for _ in range(arguments.epochs):
            for batch in training.nonzero()[:, 0][torch.randperm(int(training.sum()), generator=generator)].split(32):
                views_MBL = torch.stack([lose(tokens[batch], rate, generator) for rate in rates])
                logits_MBK = model.train()(views_MBL)
                loss = cross_entropy(logits_MBK.flatten(0, 1), labels[batch].repeat(len(rates)))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        for shift in (0.0, 0.5):
            probs_BK = model.predict(lose(test, shift, torch.Generator().manual_seed(1)))
            confidence, correct = probs_BK.max(-1).values.numpy(), (probs_BK.argmax(-1) == test_labels).numpy()
            print(
                f"{name:17} {shift:4.0%} of the words lost: error {1 - correct.mean():6.1%}, "
                f"NLL {nll(probs_BK.numpy(), test_labels.numpy()):.3f}, ECE {ece(confidence, correct):6.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
