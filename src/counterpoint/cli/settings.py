"""`counterpoint settings`: what `--set` can change."""

from typing import Annotated

import typer

from counterpoint.cli.terminal.progress import print_parts
from counterpoint.cli.terminal.tables import OTHER_DEFAULTS, setting_in_words, settings_tables
from counterpoint.errors import unknown


def settings(
    key: Annotated[
        str | None,
        typer.Argument(
            help="Setting to explain in full, such as epochs, or a part of its name, such as augmix or rate."
        ),
    ] = None,
) -> None:
    """List the settings that `train --set KEY=VALUE` changes, with their meaning, allowed values and default.

    `counterpoint settings KEY` explains one setting in full. An experiment has its own values for some settings;
    `counterpoint experiments` shows the most important ones. `train --images` has its own too (docs/images.md).
    """
    from counterpoint.experiments.settings import all_settings

    known = all_settings()
    # A whole key, a group, or the last part of a key: augmix and severity are found without what is before them.
    shown = [one for one in known if key is None or f".{key}." in f".{one.key}."]
    if key and not shown:
        shown = [one for one in known if key in one.key]
    if not shown:
        raise unknown("setting", key, [one.key for one in known])
    if len(shown) == 1:
        print_parts(setting_in_words(shown[0]))
    else:
        more = "`counterpoint settings KEY` explains one setting in full."
        print_parts([*settings_tables(shown), more, OTHER_DEFAULTS])
