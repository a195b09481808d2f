"""`counterpoint serve`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from counterpoint.cli.arguments.options import DeviceOption, RunArgument, RunsModelOption, find_modules_here
from counterpoint.cli.terminal.progress import TerminalWatcher, say
from counterpoint.cli.terminal.signals import ended_by_ctrl_c
from counterpoint.errors import InputError

if TYPE_CHECKING:
    from counterpoint.serving.web.facts import Facts


def serve(
    run: RunArgument,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to listen on. 0 takes a free one.")
    ] = 8000,
    host: Annotated[
        str,
        typer.Option(
            help="Address or name of this machine to listen on. With the default, no other machine can reach the "
            "server."
        ),
    ] = "127.0.0.1",
    model: RunsModelOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Open a local page where you drop a picture, corrupt it, and watch each member's confidence.

    Programs send a picture's bytes with POST /predict. The answer is what `predict --format jsonl` writes.

    The confidence is corrected as in `predict`. If the run has a threshold, the page says which predictions are sure.

    The command needs: pip install 'counterpoint\\[serve]'. Ctrl-C ends it.
    """
    _check_packages()
    import numpy as np

    from counterpoint.corrupt import frost_source
    from counterpoint.runs.folder import load_run
    from counterpoint.serving.correction import find_promised
    from counterpoint.serving.predict import Predictor
    from counterpoint.serving.web.address import Address, is_local, listen
    from counterpoint.serving.web.app import Service, build_app, make_server
    from counterpoint.serving.web.facts import find_facts

    find_modules_here(model)
    loaded = load_run(run)
    with listen(host, port) as listening:
        address = Address(host, listening.getsockname()[1])
        predictor = Predictor(loaded, find_promised(run), device=device, trusted_model=model)
        # Anything that cannot work should fail now, and not when the first picture arrives.
        frost_source()
        predictor.answer(np.zeros(predictor.decoding.shape, np.uint8))
        facts, service = find_facts(loaded, predictor), Service(predictor)
        server = make_server(build_app(service, facts, address))
        for note in predictor.correction.notes:
            TerminalWatcher().warned(note)
        _say_what_is_served(facts, address.url, local=is_local(listening))
        try:
            with ended_by_ctrl_c("stopped"):
                server.run(sockets=[listening])
        finally:
            service.close()


def _say_what_is_served(facts: "Facts", url: str, *, local: bool) -> None:
    from counterpoint.report.recalibrations.words import named
    from counterpoint.serving.web.facts import facts_in_words

    sure = "" if facts.sure_from is None else f"; sure from a confidence of {facts.sure_from}"
    say(f"{facts.experiment}: {facts_in_words(facts)}")
    recalibration = named(facts.recalibration, facts.members > 1)
    say(f"recalibration: {recalibration}{sure}")
    if not local:
        TerminalWatcher().warned(
            "other machines can reach this server, and it has no password: anyone who reaches it can use the model"
        )
    say(f"serving at {url} (Ctrl-C ends it)")


def _check_packages() -> None:
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise InputError(
                f"`counterpoint serve` needs {package}, which is not installed; pip install 'counterpoint[serve]'"
            )
