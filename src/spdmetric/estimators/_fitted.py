"""A fitted metric: what can be done with an embedding once it is learned, however it was chosen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import wraps
from itertools import combinations, combinations_with_replacement
from math import sqrt
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
from array_api_compat import is_dask_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdmetric import validation
from spdmetric.distributed import arrays
from spdmetric.estimators._domains import find_domain_means, recenter_rows
from spdmetric.estimators._streaming import Stream
from spdmetric.estimators.embedding import Embedding
from spdmetric.geometry import geodesic
from spdmetric.io.atomic import atomic_file
from spdmetric.linalg.symmetric import Array, array_namespace, congruence, is_complex
from spdmetric.linalg.threads import one_thread
from spdmetric.means import average_over, find_mean
from spdmetric.objectives.data import check_chunks, check_memory, is_stored, row_chunks
from spdmetric.objectives.start import ViewStarts
from spdmetric.objectives.weighting import Weighting
from spdmetric.solvers import Solution

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9 nothing can be set, so nothing is ever called
    CallbackSupportMixin, with_callbacks = object, lambda method: method


class StackEstimator(BaseEstimator):
    """An estimator of stacks, of matrices or of signals, as scikit-learn's tags say it."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


class FittedMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, StackEstimator, CallbackSupportMixin):
    """What `LogEuclideanMetric` and `LogEuclideanMetricCV` can do after `fit`.

    All of it follows from ``embedding_`` and the means of domains; of the parameters it needs ``init``.
    """

    init: str | Array
    embedding_: Embedding
    gamma_: float | None
    domains_: np.ndarray | None = None
    domain_means_: np.ndarray | None = None
    n_views_: int | None = None  # of a sample; None for matrices without this axis
    view_names_: tuple[str, ...] | None = None
    _stream: Stream | None = None

    def _keep(
        self,
        start: Any,
        solution: Solution,
        weighting: Weighting | None,
        shape: tuple[int, ...],
        names: Any,
        classes: Any,
        domains: Any = None,
    ) -> None:
        """Set the attributes that say what was learned, and from what.

        At full rank the factor is made symmetric: ``W W0 = U diag(sigma) V'`` is ``U V'`` times the symmetric
        ``V diag(sigma) V'``.
        """
        self.n_features_in_, self.n_views_ = shape[-1], shape[1] if len(shape) == 4 else None
        self.view_names_, self.classes_ = names, classes
        self.domains_, self.domain_means_ = (None, None) if domains is None else domains
        point: Any = solution.point
        several = isinstance(start, ViewStarts)
        starts, points = (start.views, point.views) if several else ((start,), (point,))
        scales, size = (start.scales, self.n_features_in_) if several else ((1.0,), None)
        factors = tuple(one.factor for one in points)
        frames = [np.eye(len(W), dtype=W.dtype) for W in factors]
        for v, one in enumerate(() if point.low_rank else starts):
            U, _, Vt = np.linalg.svd(factors[v] @ one.factor)
            frames[v] = U @ Vt
        distance = float(np.linalg.norm(point.S)) / sqrt(len(starts))
        embedding = Embedding(starts, factors, tuple(frames), scales, size, point.low_rank, distance)
        if weighting is not None:  # its directions, (p, q), come in the frame of the factor
            directions = embedding.turn(weighting.directions.T).T
            embedding = replace(embedding, weighting=np.ascontiguousarray(directions))
        self.embedding_ = embedding
        self.weighting_penalty_ = None if weighting is None else weighting.penalty
        self.weighting_score_ = None if weighting is None else weighting.score
        self.alignment_ = 1.0 - solution.value
        self.gamma_ = getattr(solution.evaluation, "gamma", None)  # of the Gaussian kernel
        self.radius_ = embedding.distance
        self.n_iter_ = solution.history[-1].iteration
        self.solution_ = replace(solution, evaluation=None)  # which holds on to the data
        self._stream = None

    @property
    def components_(self) -> np.ndarray:
        """The factor W."""
        check_is_fitted(self)
        return self.embedding_.components

    @property
    def reference_(self) -> np.ndarray:
        """The reference point G."""
        check_is_fitted(self)
        if self.embedding_.low_rank:
            m, d = self.components_.shape[-2:]
            raise AttributeError(
                f"A metric of rank {m} on {d} x {d} matrices has no reference point: use components_, its "
                f"{m} x {d} factor W."
            )
        return self.embedding_.reference

    @property
    def view_scales_(self) -> np.ndarray:
        """What the vectors of each view are multiplied with; 0 for one that is not used."""
        check_is_fitted(self)
        used = self.embedding_.scales
        return np.pad(used, (0, (self.n_views_ or 1) - len(used)))

    @property
    def weighting_(self) -> np.ndarray | None:
        """The weighting Q, or None."""
        check_is_fitted(self)
        return self.embedding_.weighting

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.n_features

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the entries of the vectors.

        Parameters
        ----------
        input_features : sequence of d str, optional
            Names of the channels.  At full rank without a weighting an entry stands for two, ``C3·C4``, of
            several views also for the view, ``alpha·C3·C4``; a small view has the first channels.

        Returns
        -------
        names : ndarray of str
            Numbered after the class where no entry stands for two channels, or no names are given.
        """
        numbered = super().get_feature_names_out(input_features)
        if input_features is None or self.embedding_.low_rank or self.weighting_ is not None:
            return numbered
        names: list[str] = []
        for v, start in enumerate(self.embedding_.starts):
            prefix = "" if self.n_views_ is None else f"{self.view_names_[v] if self.view_names_ else v}·"
            channels = input_features[: len(start.basis)]
            pairs = [f"{prefix}{one}·{other}" for one, other in combinations_with_replacement(channels, 2)]
            if is_complex(start.center):  # the order is that of the vectors
                pairs = [f"{pair} real" for pair in pairs]
                pairs += [f"{prefix}{one}·{other} imag" for one, other in combinations(channels, 2)]
            names += pairs
        return np.array(names, dtype=object)

    # -- matrices and vectors ---------------------------------------------------

    def fit_transform(
        self,
        X: Array,
        y: Array = None,
        sample_weight: Array = None,
        sample_domain: Array = None,
        **fit_params: Any,
    ) -> Array:
        """`fit`, then `transform` of the same matrices.

        Parameters
        ----------
        X, y, sample_weight, sample_domain, **fit_params
            What `fit` takes.

        Returns
        -------
        vectors : ndarray of shape (n_matrices, n_features_out)
        """
        fitted = self.fit(X, y, sample_weight=sample_weight, sample_domain=sample_domain, **fit_params)
        return fitted.transform(X, sample_domain)

    @one_thread
    def transform(self, X: Array, sample_domain: Array | None = None) -> Array:
        """Turn SPD matrices into vectors whose Euclidean distances are the learned ones.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices, where `fit` takes them from; see `transform_to` for more than memory holds.
        sample_domain : array-like of shape (n_matrices,), optional
            Domain of each matrix, if `fit` had domains, by whose mean there it is recentered; a domain that
            is new, of two matrices or more, by the mean of its matrices in X.  None: the session of the last
            `adapt`.

        Returns
        -------
        vectors : ndarray of shape (n_matrices, d(d+1)/2), at rank m (n_matrices, m(m+1)/2)
            With a weighting (n_matrices, q).  float32 for float32; for tensors tensors, on their own device;
            for a dask array one that is computed when it is asked.
        """
        check_is_fitted(self)
        single, in_memory = validation.is_single(X), not is_stored(X) and not is_dask_array(X)
        X, embedding = self._check_matrices(X) if in_memory else self._check_shape(X), self.embedding_
        if sample_domain is None:
            self._check_placed()
        elif self.domains_ is None or self.domain_means_ is None:
            raise ValueError(
                "sample_domain: this metric was fitted without. Fit it with sample_domain, or adapt() it to "
                "each new session."
            )
        else:
            known = dict(zip(self.domains_.tolist(), self.domain_means_, strict=True))
            _, means, index = find_domain_means(X, sample_domain, None, self._mean_name, known)
            X, embedding = recenter_rows(X, index, means), replace(embedding, domain_means=None)
        if in_memory:
            return validation.as_float(embedding.embed(X), single=single)
        dtype = np.dtype(np.float32 if single else np.float64)
        if is_dask_array(X):
            return arrays.transform(X, embedding.embed, embedding.n_features, embedding.rank, dtype)
        found = np.empty((X.shape[0], embedding.n_features), dtype=dtype)
        for rows, some in _embed_chunks(embedding, X):
            found[rows] = some
        return found

    @one_thread
    def transform_to(self, X: Array, path: str | os.PathLike[str]) -> Path:
        """Write the vectors of `transform` into a ``.npy`` file, chunk by chunk.

        Parameters
        ----------
        X : array of shape (n_matrices, d, d), np.memmap, or anything with a shape that slices
            SPD matrices, of which a chunk is in memory at a time.
        path : str or path-like
            File to write, whole or not at all; read it with ``np.load(path, mmap_mode="r")``.

        Returns
        -------
        path : Path
        """
        check_is_fitted(self)
        X = X if is_stored(X) or is_dask_array(X) else validation.as_numpy(X, "X")
        self._check_shape(X)
        self._check_placed()
        dtype = np.dtype(np.float32 if validation.is_single(X) else np.float64)
        shape = (X.shape[0], self.embedding_.n_features)
        with atomic_file(path) as file:
            header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(file, header)
            for _, vectors in _embed_chunks(self.embedding_, X):
                file.write(np.ascontiguousarray(vectors, dtype=dtype).data)
        return Path(path)

    @one_thread
    def inverse_transform(self, vectors: Array) -> Array:
        """SPD matrices of vectors: the inverse of `transform`; with a weighting there is none.

        Parameters
        ----------
        vectors : array-like of shape (n_matrices, d(d+1)/2)
            Vectors as `transform` gives them.

        Returns
        -------
        X : ndarray of shape (n_matrices, d, d)
            At rank m, the m x m matrices ``W X W'``.
        """
        check_is_fitted(self)
        vectors = vectors if validation.is_tensor(vectors) else validation.as_numbers(vectors, "vectors")
        return self.embedding_.restore(validation.as_float(vectors))

    def _vectors(self, X: Array, name: str = "X") -> Array:
        """Vectors of matrices in memory, in float64."""
        self._check_placed()
        return self.embedding_.embed(self._check_matrices(X, name=name), name=name)

    def _check_placed(self) -> None:
        """Refuse matrices if it is not known what they are to be recentered by."""
        if self.domains_ is not None and self.embedding_.domain_means is None:
            raise ValueError(
                "This metric was fitted with sample_domain, and does not know by which mean to recenter "
                "these matrices: pass sample_domain to transform, or adapt() to their session first."
            )

    def _check_matrices(self, X: Array, *, name: str = "X") -> Array:
        """Check matrices in memory; they come in float64."""
        names = getattr(X, "view_names", None)
        return self._check_shape(validation.check_psd(X, self.embedding_.rank, name=name), names, name)

    def _check_shape(self, X: Array, names: tuple[str, ...] | None = None, name: str = "X") -> Array:
        """Refuse matrices of another size, or other views, than those of `fit`."""
        validation.check_stack(X, name, views=True)
        names = getattr(X, "view_names", names)
        V, known, shape = self.n_views_, self.view_names_, tuple(X.shape)
        if (shape[1] if len(shape) == 4 else None) != V:
            expected = f"(n_samples, {V}, d, d), as in fit" if V else "(n_matrices, d, d): fit had no views"
            raise ValueError(f"{name} has shape {shape}: expected {expected}.")
        if names is not None and known is not None and names != known:
            raise ValueError(f"{name} has the views {list(names)}: expected {list(known)}, those of fit.")
        validation.check_size(self, X)
        return X

    # -- pairs --------------------------------------------------------------------

    @one_thread
    def pair_distance(self, pairs: Array) -> Array:
        """Learned distance between the two matrices of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, d, d) or (n_pairs, 2, views, d, d)
            Pairs of SPD matrices, or of samples.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            For tensors a tensor, on their own device.
        """
        check_is_fitted(self)
        pairs = pairs if validation.is_tensor(pairs) else validation.as_numpy(pairs, "pairs")
        views = "" if self.n_views_ is None else f" {self.n_views_},"
        if pairs.ndim != 4 + bool(views) or pairs.shape[1] != 2:
            raise ValueError(f"Expected pairs of shape (n_pairs, 2,{views} d, d), got {tuple(pairs.shape)}.")
        one, other = (self._vectors(pairs[:, side, ...], f"pairs[:, {side}]") for side in (0, 1))
        return array_namespace(one).linalg.vector_norm(one - other, axis=1)

    def pair_score(self, pairs: Array) -> Array:
        """Similarity of the two matrices of each pair: `pair_distance`, negated."""
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[Array, Array], float]:
        """The learned distance as a function of two arrays (d, d), whatever becomes of the estimator."""
        check_is_fitted(self)
        frozen = copy(self)

        def distance(A: Array, B: Array) -> float:
            pair = np.stack([validation.as_numpy(A, "A"), validation.as_numpy(B, "B")])
            return float(frozen.pair_distance(pair[None])[0])

        return distance

    @one_thread
    def pairwise_kernel(self, X: Array, Y: Array | None = None) -> Array:
        """Learned kernel of all pairs of matrices, for estimators that take it precomputed.

        With ``kernel="linear"`` the inner products of the vectors; with ``kernel="rbf"``
        ``exp(-gamma_ distance^2)``.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices, in memory.
        Y : array-like of shape (n_others, d, d), optional
            Others to compare them with; X itself by default.

        Returns
        -------
        kernel : ndarray of shape (n_matrices, n_others)
            For tensors a tensor, on their own device.

        Examples
        --------
        >>> from sklearn.svm import SVC
        >>> from spdmetric import LogEuclideanMetric
        >>> from spdmetric.datasets import make_toy
        >>> X, y, X_new, y_new = make_toy(n_train=50, n_test=100, d=4, random_state=0)
        >>> metric = LogEuclideanMetric(radius=3.0).fit(X, y)
        >>> svc = SVC(kernel="precomputed").fit(metric.pairwise_kernel(X), y)
        >>> bool(svc.score(metric.pairwise_kernel(X_new, X), y_new) > 0.8)
        True
        """
        check_is_fitted(self)
        u = self._vectors(X)
        v = u if Y is None else self._vectors(Y, "Y")
        check_memory(4 * 8 * u.shape[0] * v.shape[0], f"A kernel of {u.shape[0]} x {v.shape[0]} pairs")
        inner = u @ v.T
        if self.gamma_ is None:
            return inner
        xp = array_namespace(inner)
        norms = xp.sum(u * u, axis=1)[:, None] + xp.sum(v * v, axis=1)[None, :]
        return xp.exp(-self.gamma_ * xp.clip(norms - 2 * inner, 0, None))

    # -- new sessions ---------------------------------------------------------------

    def adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the metric to a new, unlabeled session.

        New matrices are recentered by their own Riemannian mean N as the training matrices were by theirs, M:
        the factor W becomes ``W M^{1/2} N^{-1/2}``.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Matrices of the new session.  Their classes should be as frequent as in training: what one that is
            absent would have contributed to the mean is missing in the vectors.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.

        Returns
        -------
        adapted : estimator
            A copy; use it to transform the new session.
        """
        return self._adapt_to(X, sample_weight, resumed=False)

    def partial_adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the metric to a new session that arrives batch by batch.

        Parameters are those of `adapt`.  The running mean moves along the geodesic toward the mean of the
        batch, by the batch's share of all matrices seen; the first batch begins a new session.

        Returns
        -------
        adapted : estimator
            A copy; call its ``partial_adapt`` with the next batch.
        """
        return self._adapt_to(X, sample_weight, resumed=True)

    @one_thread
    def _adapt_to(self, X: Array, sample_weight: Array | None, *, resumed: bool) -> Self:
        check_is_fitted(self)
        if self.domains_ is None and not (isinstance(self.init, str) and self.init == self._mean_name):
            raise ValueError(
                "adapt needs the Riemannian mean or median of the training matrices, which are known with "
                f"init='riemann' and init='median' only; this metric was learned with init={self.init!r}."
            )
        X = self._check_matrices(validation.leave_out(X, sample_weight))
        weight = validation.check_weights(sample_weight, X)
        embedding, starts = self.embedding_, self.embedding_.starts
        total = weight.sum() + (embedding.session_weight if resumed else 0.0)
        share, weight = weight.sum() / total, weight / weight.max()
        known, means = embedding.domain_means if resumed else None, []
        if self.domains_ is None:
            known = tuple(start.center for start in starts)
        for v, A in enumerate(embedding.split(X)):
            if self.domains_ is None:
                A = congruence(starts[v].basis.conj().T, A)
            A = validation.check_spd(A)  # singular ones have no such mean
            mean = find_mean(self._mean_name, average_over(A, weight), len(A), A.dtype)
            means.append(mean if known is None else geodesic(known[v], mean, share))
        if self.domains_ is None:
            moved = tuple(one._replace(center=mean) for one, mean in zip(starts, means, strict=True))
            embedding = replace(embedding, starts=moved)
        else:
            embedding = replace(embedding, domain_means=tuple(means))
        adapted = copy(self)
        adapted.embedding_ = replace(embedding, session_weight=float(total))
        adapted._stream = None  # a stream goes on in the metric that it began with
        return adapted

    @property
    def _mean_name(self) -> str:
        """Which mean domains and sessions are recentered by, as in training."""
        return "median" if isinstance(self.init, str) and self.init == "median" else "riemann"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _embed_chunks(embedding: Embedding, X: Array) -> Iterator[tuple[slice, np.ndarray]]:
    parts = row_chunks(X.shape)
    for rows, (_, chunk) in zip(parts, check_chunks(X, embedding.rank, parts), strict=True):
        yield rows, embedding.embed(chunk, first=rows.start)


# scikit-learn's callbacks, its progress bar among them: a `fit` is a task, its iterations are subtasks.

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
        end_task(estimator, task, "candidates")
        yield result
    task.call_on_fit_task_end(estimator=estimator)


def end_task(estimator: Any, context: Any, name: str) -> bool:
    """Report a subtask that is done; whether a callback asks to stop."""
    task = context.subcontext(task_name=name)
    task.call_on_fit_task_begin(estimator=estimator)
    return bool(task.call_on_fit_task_end(estimator=estimator))
