"""Axes of a plot: values to places in a drawing, and the marks beside them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from figures.svg import Drawing


@dataclass(frozen=True)
class Axes:
    """A rectangle of the drawing, and the values at its edges. With `log` the x axis is logarithmic."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    log: bool = False

    def place(self, x: float, y: float) -> tuple[float, float]:
        low, high, value = (math.log10(v) if self.log else v for v in (*self.x, x))
        across = (value - low) / (high - low)
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * self.width, self.top + (1 - up) * self.height

    def draw(
        self, drawing: Drawing, x_marks: Mapping[float, str], y_marks: Mapping[float, str], x_title: str, y_title: str
    ) -> None:
        """Grid lines, marks and titles. The y title stands above the plot, where it needs not be turned."""
        for value, mark in y_marks.items():
            _, y = self.place(self.x[0], value)
            drawing.line(self.left, y, self.left + self.width, y)
            drawing.text(self.left - 7, y + 4, mark, "small end")
        for value, mark in x_marks.items():
            x, bottom = self.place(value, self.y[0])
            drawing.line(x, bottom, x, bottom + 4, "quiet")
            drawing.text(x, bottom + 18, mark, "small middle")
        drawing.text(self.left, self.top - 12, y_title, "small")
        drawing.text(self.left + self.width / 2, self.top + self.height + 38, x_title, "small middle")
