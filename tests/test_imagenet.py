"""The calculation of docs/scaling.md: checked by hand, and the page shows what it prints."""

from pathlib import Path

import pytest
from imagenet import IMAGES, LINKS, Links, Step, communication, main, read_step, training_time

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"


def test_the_measured_step_is_read() -> None:
    text = "timm/resnet50, 4 × 32 views of 224 pixels, a GPU\nstep with its views   27.66   27.60 – 27.82   4,628\n"
    assert read_step(text) == Step(members=4, images=32, milliseconds=27.66)


def test_another_output_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"is not the output of benchmarks/photographs\.py"):
        read_step("step 27 ms")


def test_one_gpu_sends_nothing() -> None:
    time = training_time(Step(4, 32, 20.0), 1, LINKS[0])
    assert (time.milliseconds, time.gpu_hours) == (20.0, time.hours)
    assert time.hours == pytest.approx(90 * (IMAGES // 32) * 0.020 / 3600)


def test_a_ring_sends_almost_twice_the_gradients_and_each_batchnorm_waits_twice() -> None:
    # Of 102.2 MB, 2 × 7/8 at 10 GB/s are 17.89 ms; 106 sums of 100 µs are 10.6 ms.
    assert communication(8, Links(10, 100)) == pytest.approx(17.89 + 10.6, abs=0.01)
    assert communication(8, Links(1e9, 0)) == pytest.approx(0, abs=1e-6)


def test_the_page_shows_what_the_script_prints(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert capsys.readouterr().out.strip() in PAGE.read_text(encoding="utf-8")
