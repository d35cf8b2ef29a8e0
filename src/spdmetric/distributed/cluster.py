"""Tasks on a cluster that may lose workers, or its scheduler: a result in the end, or a sentence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client, Future

# Results merged by one task: fewer make more tasks, more make more traffic to one worker.
_ARITY = 8

# Seconds: between looks at the cluster, for the scheduler to answer, and to go on without workers.
_LOOK, _ANSWER, _PATIENCE = 2.0, 30.0, 30.0


def current_client() -> Client | None:
    """Return the Dask client of this process or thread, or None; one that is closed is told."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        client = get_client()
    except ValueError:
        return None
    if client.status != "running":
        raise ConnectionError(
            f"The Dask client of this process is {client.status}: connect a new distributed.Client, or "
            "fit on X.compute()."
        )
    return client


class Cluster:
    """Tasks on the workers of a client, and their results: in the end there is one, or an error."""

    def __init__(self, client: Client):
        self._client = client

    def submit(self, f: Callable[..., object], *args: object) -> Future:
        """Have a function called on a worker; futures among the arguments become what they stand for."""
        with self._sentences():
            return self._client.submit(f, *args, pure=False)

    def each(self, f: Callable[..., object], *columns: Sequence[object]) -> list[Future]:
        """Have a function called for each row of columns, all handed over together."""
        with self._sentences():
            return self._client.map(f, *columns, pure=False)

    def blocks(self, array: DaskArray) -> list[Future]:
        """Futures of the chunks of a dask array, in their order."""
        with self._sentences():
            return self._client.compute(array.to_delayed().ravel().tolist())

    def merge(self, function: Callable[..., object], futures: list[Future]) -> Future:
        """Merge results in an order that depends on their number alone."""
        while len(futures) > 1:
            groups = [futures[k : k + _ARITY] for k in range(0, len(futures), _ARITY)]
            futures = self.each(function, groups)
        return futures[0]

    def result(self, future: Future) -> Any:
        """Wait for a result, as long as somebody can be working on it."""
        from distributed import wait

        worked = time.monotonic()
        while True:
            try:
                with self._sentences():
                    wait([future], timeout=_LOOK)
                    return future.result(timeout=_ANSWER)
            except TimeoutError:
                if future.status == "error":  # the task itself has raised it
                    raise
            if self._workers() > 0:
                worked = time.monotonic()
            elif time.monotonic() - worked > _PATIENCE:
                raise ConnectionError(
                    "The Dask cluster has no workers left: the fit was given up. Start workers and fit again."
                )

    def _workers(self) -> int:
        if self._client.status != "running":
            raise ConnectionError(_GONE)
        with self._sentences():
            try:
                return len(self._client.sync(self._client.scheduler.ncores, callback_timeout=_ANSWER))
            except OSError as error:  # of which a TimeoutError is one
                raise ConnectionError(_GONE) from error

    def memory(self) -> float:
        """Bytes that the workers may use together."""
        with self._sentences():
            workers = self._client.scheduler_info()["workers"].values()
        return float(sum(worker.get("memory_limit") or np.inf for worker in workers))

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what a broken cluster raises into one sentence."""
        from distributed import KilledWorker
        from distributed.client import ClosedClientError
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise MemoryError(
                "Several workers died one after another at the same task, most likely for lack of memory: "
                f"cut X into smaller chunks, or give the workers more memory ({error})."
            ) from error
        except CancelledError as error:
            if self._client.status != "running" or "connection" in str(error):
                raise ConnectionError(_GONE) from error
            raise ConnectionError(
                "Chunks of X were lost with a worker and cannot be computed again, as the cluster does not "
                "know where they came from (scattered data?): build X from files or functions, and fit again "
                f"({error})."
            ) from error
        except (ClosedClientError, CommClosedError, RuntimeError) as error:
            if self._client.status == "running":
                raise
            raise ConnectionError(_GONE) from error


_GONE = (
    "The connection to the Dask scheduler was lost in mid-fit: the scheduler is gone or cannot be reached. "
    "Nothing was learned; start the cluster and fit again."
)
