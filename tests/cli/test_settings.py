"""`counterpoint settings` as a user meets it."""

from counterpoint.cli.terminal.tables import OTHER_DEFAULTS, settings_tables
from counterpoint.experiments.settings import all_settings
from tests.cli.conftest import Call
from tests.cli.test_tables import lines


def test_every_setting_is_listed(call: Call) -> None:
    ended = call("settings")
    assert (ended.status, ended.err) == (0, "")
    for setting in all_settings():
        assert f"{setting.key} {setting.default or '–'} {setting.line} ({setting.may_be})" in ended.out


def test_no_key_and_no_default_is_broken_in_80_columns() -> None:
    words = {word for table in settings_tables(all_settings()) for line in lines(table, width=80) for word in line}
    assert {setting.key for setting in all_settings()} <= words
    assert {"0,0.05,0.1,0.15", "1,2,3,4", "bernoulli"} <= words


def test_one_setting_has_all_that_it_means(call: Call) -> None:
    out = call("settings", "train_on").out
    assert out.startswith("train_on: Whether some images are kept out of training for validation")
    assert "Allowed: one of split, all. The default is split. For example: --set train_on=split" in out
    without = call("settings", "dataset").out
    assert "There is no default: every experiment sets it." in without
    assert [OTHER_DEFAULTS in shown for shown in (out, call("settings").out, without)] == [True, True, False]


def test_a_group_is_listed_alone(call: Call) -> None:
    out = call("settings", "policy.augmix").out
    assert "policy.augmix none AugMix: chains of random operations, mixed with the image." in out
    assert "policy.augmix.jsd" in out
    assert "policy.adversarial" not in out
    assert "epochs" not in out


def test_a_part_of_a_key_is_enough(call: Call) -> None:
    assert call("settings", "augmix").out == call("settings", "policy.augmix").out
    out = call("settings", "severity").out
    assert "policy.augmix.severity" in out
    assert "policy.adversarial.severity" in out
    assert "policy.augmix.jsd" not in out
    assert call("settings", "drop").out == call("settings", "policy.stochastic_depth.drop_rate").out
    assert "learning_rate" in call("settings", "rate").out


def test_an_unknown_one_gets_a_suggestion(call: Call) -> None:
    ended = call("settings", "epocs")
    assert (ended.status, ended.out) == (2, "")
    assert "unknown setting 'epocs'; did you mean 'epochs'" in ended.err
