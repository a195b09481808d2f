"""A network for tables as a diverse ensemble, with a user's own augmentation for each member.

    python examples/table.py

The table has 64 columns: the pixels of scikit-learn's digits, as numbers. In training, each member loses its own share
of the numbers. The shift is the test table with half of its numbers missing.
"""

import argparse

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint import Ensemble, batch_ensemble, ece, nll

MISSING_RATES = (0.0, 0.1, 0.2, 0.3)  # one per member


def lose(rows: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Each number becomes 0, the mean of its column, with the probability `rate`."""
    return rows * (torch.rand(rows.shape, generator=generator) >= rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    digits = load_digits()
    table = torch.tensor((digits.data - digits.data.mean(0)) / 8, dtype=torch.float32)
    rows, test, labels, test_labels = train_test_split(
        table, torch.tensor(digits.target), test_size=0.5, random_state=0, stratify=digits.target
    )
    for name, rates in (("single", (0.15,)), ("ensemble", (0.15,) * 4), ("diverse ensemble", MISSING_RATES)):
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
        model = Ensemble(network)  # of one member
        if len(rates) > 1:
            model = batch_ensemble(network, len(rates), 0.5, example_input=test[:3], generator=generator)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for _ in range(arguments.epochs):
            for batch in torch.randperm(len(rows), generator=generator).split(32):
                views_MBC = torch.stack([lose(rows[batch], rate, generator) for rate in rates])
                logits_MBK = model.train()(views_MBC)
                loss = cross_entropy(logits_MBK.flatten(0, 1), labels[batch].repeat(len(rates)))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        for shift in (0.0, 0.5):
            probs_BK = model.predict(lose(test, shift, torch.Generator().manual_seed(1)))
            confidence, correct = probs_BK.max(-1).values.numpy(), (probs_BK.argmax(-1) == test_labels).numpy()
            print(
                f"{name:17} {shift:4.0%} of the columns missing: error {1 - correct.mean():6.1%}, "
                f"NLL {nll(probs_BK.numpy(), test_labels.numpy()):.3f}, ECE {ece(confidence, correct):6.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
