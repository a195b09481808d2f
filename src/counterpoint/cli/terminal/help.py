"""Help that shows flags as flags, and paragraphs as paragraphs.

Typer would show a value after flags, which they do not take, and break a paragraph's lines where the source has them.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose flags have no value in its help, and whose paragraphs are as wide as the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


class Group(TyperGroup):
    """Commands under one name, with the same for its own flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


def _without_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
