"""Promises of names: those of figures' series and those of files."""

from ddobench.report.data.files import file_stem
from ddobench.report.figures.labels import wrap_text


def test_a_long_word_is_broken_at_its_joints_and_others_stay_whole() -> None:
    label = wrap_text("RaM, search=top_adam_categories", 15)
    assert label == "RaM, search=\ntop_adam_\ncategories"
    assert wrap_text("FGM, graph=pairs", 26) == "FGM, graph=pairs"
    assert wrap_text("one two three four five", 9).count("\n") == 2


def test_a_file_name_is_short_and_does_not_end_in_a_sign() -> None:
    assert file_stem("codes", "", "Map=gaussian", "d 3") == "codes-map-gaussian-d-3"
    assert file_stem("x" * 79, ".steps") == "x" * 79
    assert file_stem("=") == "unnamed"
