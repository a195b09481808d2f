"""`counterpoint settings`: what `--set` can change."""

from typing import Annotated

import typer

from counterpoint.cli.terminal.progress import print_parts
from counterpoint.cli.terminal.tables import setting_in_words, settings_tables
from counterpoint.errors import unknown


def settings(
    key: Annotated[
        str | None, typer.Argument(help="Setting to explain in full, or a group such as policy.augmix.")
    ] = None,
) -> None:
    """List the settings that `train --set KEY=VALUE` changes: meaning, allowed values and default.

    An experiment has its own values for some of them. `counterpoint experiments` shows the most important ones.
    """
    from counterpoint.experiments.settings import all_settings

    known = all_settings()
    shown = [one for one in known if key is None or one.key == key or one.key.startswith(f"{key}.")]
    if not shown:
        raise unknown("setting", key, [one.key for one in known])
    print_parts(settings_tables(shown) if len(shown) > 1 else setting_in_words(shown[0]))
