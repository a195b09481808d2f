"""Help that is easy to read in 80 columns.

Typer would break a paragraph's lines where the source has them. It would show a value after flags, which take none. It
would give the second name of a flag (--no-validate) a column of its own, which leaves too little room for the words.
"""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command with narrow columns in its help, and with paragraphs that are as wide as the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            if parameter.secondary_opts:
                # A command that shows its help ends there, so nothing reads the command line with this name.
                parameter.opts, parameter.secondary_opts = [parameter.opts[0].replace("--", "--[no-]", 1)], []
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """Commands under one name, with the same for its own flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_values(super().get_params(ctx))


def _without_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
