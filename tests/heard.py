"""A watcher that remembers what it was told."""

from counterpoint.watching import TrainingProgress, Watcher


class Heard(Watcher):
    def __init__(self) -> None:
        self.trainings: list[TrainingProgress] = []
        self.counts: list[tuple[str, int, int]] = []
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def trained(self, progress: TrainingProgress) -> None:
        self.trainings.append(progress)

    def counted(self, work: str, done: int, total: int) -> None:
        self.counts.append((work, done, total))

    def noted(self, text: str) -> None:
        self.notes.append(text)

    def warned(self, text: str) -> None:
        self.warnings.append(text)
