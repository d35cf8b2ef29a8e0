"""Other ways to classify SPD matrices, to compare with.

Those on vectors (`gmml`, `rca`, `nca`) learn a linear map of the tangent vectors at the
Riemannian mean.  There are more coordinates than matrices, so the vectors are first reduced
to principal components.  Those on matrices (`mdm`, `fgmdm`, `csp_lda`) are pyRiemann's.

References
----------
Zadeh, Hosseini and Sra (2016), Geometric mean metric learning, ICML.
Bar-Hillel, Hertz, Shental and Weinshall (2005), Learning a Mahalanobis metric from
equivalence constraints, JMLR 6.
Goldberger, Roweis, Hinton and Salakhutdinov (2004), Neighborhood components analysis, NIPS.
"""

from __future__ import annotations

import numpy as np

from spdmetric.geometry import geodesic
from spdmetric.linalg.symmetric import invsqrtm, sqrtm
from spdmetric.paper.work import Vectors, Work

RIDGE = 0.01  # share of the mean eigenvalue added to every scatter matrix
NCA_INPUTS, NCA_OUTPUTS, NCA_STEPS = 50, 10, 100
CSP_FILTERS = 6

# ---------------------------------------------------------------------------
# On vectors


def principal(vectors: Vectors, at_most: int) -> Vectors:
    """Principal components of the training vectors, the leading ones if there are too many.

    Parameters
    ----------
    vectors : Vectors
        Training and test vectors, both centered by the training mean.
    at_most : int
        Components to keep; fewer where the training vectors have fewer directions.

    Returns
    -------
    components : Vectors
    """
    center = vectors.train.mean(axis=0)
    train, test = vectors.train - center, vectors.test - center
    _, spread, axes = np.linalg.svd(train, full_matrices=False)
    kept = min(at_most, int(np.sum(spread > 1e-10 * spread[0])))
    return Vectors(train @ axes[:kept].T, test @ axes[:kept].T)


def _fewer_than_half(vectors: Vectors) -> Vectors:
    """At most half as many components as matrices, so that their scatter has full rank."""
    return principal(vectors, max(1, len(vectors.train) // 2))


def ridged(S: np.ndarray, share: float = RIDGE) -> np.ndarray:
    """Add a share of the mean eigenvalue to the diagonal."""
    return S + share * np.trace(S) / len(S) * np.eye(len(S))


def pair_scatters(vectors: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean outer products of the differences in pairs of one class, and in pairs of two.

    The pairs are never listed: over all pairs of n vectors the sum is n times their scatter.

    Parameters
    ----------
    vectors : ndarray of shape (n, p)
        Vectors.
    y : ndarray of shape (n,)
        Their labels.

    Returns
    -------
    S, D : ndarrays of shape (p, p)
        Of similar and of dissimilar pairs.
    """
    n = len(y)
    centered = vectors - vectors.mean(axis=0)
    total = n * centered.T @ centered
    same = np.zeros_like(total)
    pairs = 0
    for label in np.unique(y):
        of_class = vectors[y == label]
        centered = of_class - of_class.mean(axis=0)
        same += len(of_class) * centered.T @ centered
        pairs += len(of_class) * (len(of_class) - 1) // 2
    return same / max(1, pairs), (total - same) / max(1, n * (n - 1) // 2 - pairs)


def gmml_metric(S: np.ndarray, D: np.ndarray, t: float = 0.5) -> np.ndarray:
    """Point at share t of the geodesic from ``S^-1`` to ``D``; for t = 1/2, ``A S A = D``."""
    return geodesic(np.linalg.inv(S), D, t)


def gmml(vectors: Vectors, y: np.ndarray) -> Vectors:
    """Geometric mean metric learning, t = 1/2, both scatters with a ridge of 0.01."""
    reduced = _fewer_than_half(vectors)
    S, D = pair_scatters(reduced.train, y)
    root = sqrtm(gmml_metric(ridged(S), ridged(D)))
    return Vectors(reduced.train @ root, reduced.test @ root)


def within_scatter(vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Covariance around the class means."""
    _, codes = np.unique(y, return_inverse=True)
    means = np.array([vectors[codes == code].mean(axis=0) for code in range(codes.max() + 1)])
    centered = vectors - means[codes]
    return centered.T @ centered / len(vectors)


def rca(vectors: Vectors, y: np.ndarray, ridge: float = RIDGE) -> Vectors:
    """Relevant component analysis: whitening by the scatter within the classes, with a ridge of 0.01."""
    reduced = _fewer_than_half(vectors)
    W = invsqrtm(ridged(within_scatter(reduced.train, y), ridge))
    return Vectors(reduced.train @ W, reduced.test @ W)


def nca(vectors: Vectors, y: np.ndarray) -> Vectors:
    """Neighborhood components analysis: 50 principal components to 10, at most 100 steps."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    reduced = principal(vectors, NCA_INPUTS)
    outputs = min(NCA_OUTPUTS, reduced.train.shape[1])
    learned = NeighborhoodComponentsAnalysis(outputs, max_iter=NCA_STEPS, random_state=0)
    learned.fit(reduced.train, y)
    return Vectors(learned.transform(reduced.train), learned.transform(reduced.test))


# ---------------------------------------------------------------------------
# On matrices


def mdm(work: Work) -> np.ndarray:
    """Label of the nearest Riemannian class mean."""
    from pyriemann.classification import MDM

    return MDM().fit(work.X, work.y).predict(work.X_test)


def fgmdm(work: Work) -> np.ndarray:
    """The same after a geodesic filter, which keeps the discriminant directions alone."""
    from pyriemann.classification import FgMDM

    return FgMDM().fit(work.X, work.y).predict(work.X_test)


def csp_lda(work: Work) -> np.ndarray:
    """Logarithms of the variance along 6 common spatial patterns, and linear discriminant analysis."""
    from pyriemann.spatialfilters import CSP
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    filters = CSP(nfilter=min(CSP_FILTERS, work.X.shape[1])).fit(work.X, work.y)
    lda = LinearDiscriminantAnalysis().fit(filters.transform(work.X), work.y)
    return lda.predict(filters.transform(work.X_test))
