"""What is examined: a task and a method, built afresh whenever a promise needs them."""

from collections.abc import Sequence
from functools import cached_property

from ddobench.contracts import Dataset, Method, Problem, Task
from ddobench.runner.build import build_task
from ddobench.runner.execute import run_seeds
from ddobench.runner.spec import Specification
from ddobench.store.records import Record


class Subject:
    """A task and a method as one specification has them."""

    def __init__(self, spec: Specification) -> None:
        self.spec = spec
        self._drawn: dict[tuple[int, ...], Problem] = {}

    def task(self) -> Task:
        """Build a fresh task."""
        return build_task(self.spec.config["task"])

    def method(self) -> Method:
        """Build a fresh method."""
        return self.spec.build_method()

    def problem(self, *seeds: int) -> Problem:
        """Return the instances of some seeds, drawn once."""
        if seeds not in self._drawn:
            self._drawn[seeds] = self.task().problem(seeds)
        return self._drawn[seeds]

    def visible(self, method: Method, *seeds: int) -> Dataset:
        """Return what a method sees of some seeds."""
        problem = self.problem(*seeds)
        return problem.visible_to(method.privileges(problem.data.space))

    def refusal(self) -> str | None:
        """Return why the method does not take on the task, None if it does."""
        method = self.method()
        return method.declines(self.visible(method, 0))

    @cached_property
    def records(self) -> list[Record]:
        """The records of two seeds, run once."""
        return self.run(0, 1)

    def run(self, *seeds: int) -> list[Record]:
        """Run seeds as the harness does, as many at once as the method wants, without storing."""
        size = self.method().seeds_at_once or len(seeds)
        batches: Sequence[Sequence[int]] = [
            seeds[start : start + size] for start in range(0, len(seeds), size)
        ]
        return [
            record
            for batch in batches
            for record in run_seeds(self.spec, self.task(), self.method(), batch, base={})
        ]
