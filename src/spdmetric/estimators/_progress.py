"""scikit-learn's callbacks, its progress bar among them, where scikit-learn has them (>= 1.9).

A `fit` is a task, its iterations are subtasks.  With an older scikit-learn the estimators have no
`set_callbacks`.  All that is asked of scikit-learn's callbacks is asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

from spdmetric.solvers import Callback, Record

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's: nothing can be set, so nothing is ever called."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


Fit = TypeVar("Fit", bound=Callable[..., Any])
Item = TypeVar("Item")


def with_progress(n_tasks: Callable[[Any], int]) -> Callable[[Fit], Fit]:
    """Make a `fit` a task for scikit-learn's callbacks, of at most so many subtasks.

    Without callbacks it is the method itself that runs.
    """

    def decorate(fit: Fit) -> Fit:
        @with_callbacks
        def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            context = self._init_callback_context(max_subtasks=n_tasks(self))
            context.call_on_fit_task_begin(estimator=self)
            result = fit(self, *args, **kwargs)
            context.call_on_fit_task_end(estimator=self)
            return result

        @wraps(fit)
        def either(self: Any, *args: Any, **kwargs: Any) -> Any:
            chosen = watched if getattr(self, "_skl_callbacks", None) else fit
            return chosen(self, *args, **kwargs)

        return cast(Fit, either)

    return decorate


def report_iterations(estimator: Any, callback: Callback, max_iter: int) -> Callback:
    """Return a callback of a solver that also tells those of scikit-learn, if there are any."""
    context = getattr(estimator, "_callback_fit_ctx", None)  # None outside a watched `fit`
    if context is None:
        return callback

    def report(record: Record) -> Any:
        stop = callback(record)
        promised = record.iteration <= max_iter  # to the bar; no solver has reason to make more
        return (promised and _end_task(estimator, context, "iteration")) or stop

    return report


def follow_folds(estimator: Any, results: Iterable[Item], name: str, n_results: int) -> Iterator[Item]:
    """Yield results as they come, each one a subtask of a task of its own; with ``verbose``, before a bar."""
    if getattr(estimator, "verbose", False):
        from tqdm import tqdm

        results = tqdm(results, desc=name, total=n_results, unit="fold")
    context = getattr(estimator, "_callback_fit_ctx", None)  # None outside a watched `fit`
    if context is None:
        yield from results
        return
    task = context.subcontext(task_name=name, max_subtasks=n_results)
    task.call_on_fit_task_begin(estimator=estimator)
    for result in results:
        _end_task(estimator, task, "candidates")
        yield result
    task.call_on_fit_task_end(estimator=estimator)


def _end_task(estimator: Any, context: Any, name: str) -> bool:
    """Report a subtask that is done; whether a callback asks to stop."""
    task = context.subcontext(task_name=name)
    task.call_on_fit_task_begin(estimator=estimator)
    return bool(task.call_on_fit_task_end(estimator=estimator))
