"""Table 2 of the paper: no AugMix. Single models train for 200 epochs, ensembles for 250.

counterpoint train cifar10/batch-ensemble --out runs/cifar10-batch-ensemble
"""

from typing import Literal

from counterpoint.config import Experiment


def _rows(dataset: Literal["cifar10", "cifar100"]) -> tuple[Experiment, ...]:
    return (
        Experiment(f"{dataset}/single", dataset, num_members=None, epochs=200),
        Experiment(f"{dataset}/batch-ensemble", dataset),
    )


TABLE2 = (*_rows("cifar10"), *_rows("cifar100"))
