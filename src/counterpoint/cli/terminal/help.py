"""Help that is easy to read in 80 columns, and errors that name the number that is wrong.

Typer would break a paragraph's lines where the source has them. It would show a value after flags, which take none. It
would give the second name of a flag (--no-validate) a column of its own, which leaves too little room for the words. It
would call an argument that may be given several times a list[Path]. Of a wrong number it would say "Input should be
greater than or equal to 0".
"""

from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from counterpoint.errors import InputError, shown


class Command(TyperCommand):
    """A command with narrow columns in its help, and with paragraphs that are as wide as the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        paragraphs = (self.help or "").split("\n\n")
        self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except BadParameter as wrong:
            raise _as_number(wrong) or wrong from None

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
        elif parameter.param_type_name == "argument" and parameter.nargs != 1:
            parameter.display_type_rich = lambda **_: ""
    return parameters


def _as_number(wrong: BadParameter) -> InputError | None:
    """The error of a number that is none or out of range; None for another error, which Typer words well enough."""
    errors = getattr(wrong.__cause__, "errors", None)  # of pydantic, which new versions of Typer use
    parameter = wrong.param
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if parameter is None or least is None or errors is None:
        return None
    kind = "a number" if isinstance(least, float) else "a whole number"
    allowed = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
    given = shown(errors()[0]["input"])
    return InputError(f"{parameter.opts[0]} is {given}; it must be {kind} {allowed}")
