"""Promises about which runs get figures of their own."""

from ddobench.report.figures.close_ups import (
    MOST_COMBINATIONS,
    MOST_ROWS,
    look_closer,
    tell_left_out,
)
from tests.support.synthetic_runs import Row, evidence_of, sweep


def rows_of(n: int, budget: str = "full", dimensions: tuple[int, ...] = (5,)) -> list[Row]:
    """Return runs at one number of rows and one budget."""
    rows = sweep(methods=["fgm"], dimensions=[*dimensions], seeds=2, n=n, budget=budget)
    return [row | {"digest": f"{n}{budget}{row['d']}"} for row in rows]


def test_a_smaller_budget_is_left_out_where_the_task_has_the_full_one() -> None:
    stored = evidence_of([*rows_of(100), *rows_of(100, "small")])
    assert set(look_closer(stored).runs["budget"]) == {"full"}
    (absence,) = tell_left_out(stored)
    task = stored.runs["task"].iloc[0]
    assert absence.remedy == f"python -m ddobench.report task={task} budget=small"
    alone = evidence_of(rows_of(100, "small"))
    assert look_closer(alone) is alone
    assert not list(tell_left_out(alone))


def test_of_many_numbers_of_rows_at_one_size_only_the_largest_is_looked_at() -> None:
    many = [100 * (k + 1) for k in range(MOST_ROWS + 1)]
    stored = evidence_of([row for n in many for row in rows_of(n)])
    assert set(look_closer(stored).runs["n"]) == {many[-1]}
    assert [absence.title for absence in tell_left_out(stored)] == ["Each number of rows by itself"]
    few = evidence_of([row for n in many[1:] for row in rows_of(n)])
    assert look_closer(few) is few
    against_d = evidence_of([row for n in many for row in rows_of(n, dimensions=(5, 7))])
    assert look_closer(against_d) is against_d


def test_the_combinations_of_a_large_cross_are_left_to_its_own_figure() -> None:
    def crossed(latents: int) -> list[Row]:
        base = {"axes": "identity", "graph": "complete", "surrogate": "mlp"}
        return [
            row | base | {"latent": f"l{a}", "search": f"s{b}", "digest": f"{a}{b}",
                          "method_variant": f"latent=l{a} search=s{b}" if a + b else ""}
            for a in range(latents)
            for b in range(4)
            for row in sweep(methods=["ga"], dimensions=[5], seeds=2)
        ]  # fmt: skip

    large = evidence_of(crossed(MOST_COMBINATIONS // 4 + 1))
    assert len(large.crosses) == 1
    assert set(look_closer(large).runs["method_variant"]) == {""}
    small = evidence_of(crossed(MOST_COMBINATIONS // 4))
    assert len(small.crosses) == 1
    assert look_closer(small) is small
