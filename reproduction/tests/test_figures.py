"""The figures of the paper: what they show is computed, and drawing them leaves no trace."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from reproduction.figures import FIGURES, ascent, save_figures, tangent
from reproduction.figures.plane import at_normal_coordinates, normal_coordinates, traceless
from spdmetric.datasets import make_toy
from spdmetric.geometry import distance_logeuclid, distance_riemann, kernel_tangent
from spdmetric.linalg.symmetric import expm

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

IMAGES = {
    "stripes": np.tile([0.0, 1.0, 2.0, 1.0], (40, 20)),
    "ramp": np.add.outer(np.arange(40), np.arange(64)),
}


@pytest.fixture(scope="module")
def climbed() -> ascent.Ascent:
    return ascent.compute(n_grid=8)


def length(path: np.ndarray) -> float:
    """Affine-invariant length of a path, as the sum of the steps between its points."""
    return float(np.sum(distance_riemann(path[:-1], path[1:])))


def unimodular(rng: np.random.Generator, n: int) -> np.ndarray:
    return at_normal_coordinates(1.5 * rng.standard_normal((n, 2)), np.eye(2))


# -- Coordinates -----------------------------------------------------------------


def test_normal_coordinates_measure_distance_from_the_reference(rng):
    X = unimodular(rng, 6)
    S = traceless(normal_coordinates(X))
    np.testing.assert_allclose(np.trace(S, axis1=-2, axis2=-1), 0, atol=1e-15)
    np.testing.assert_allclose(expm(S), X, rtol=1e-10)
    for G in X[:2]:
        xy = normal_coordinates(X, G)
        np.testing.assert_allclose(np.linalg.norm(xy, axis=-1), distance_riemann(X, G), atol=1e-10)
        np.testing.assert_allclose(at_normal_coordinates(xy, G), X, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(np.linalg.det(at_normal_coordinates(xy, 3 * G)), 9, rtol=1e-10)


# -- What the figures show -------------------------------------------------------


def test_tangent_plane_shortens(rng):
    data = tangent.compute()
    A, B = data.points
    assert length(data.geodesic) == pytest.approx(data.distance_riemann, rel=1e-9)
    assert np.linalg.norm(data.plane[0] - data.plane[1]) == pytest.approx(data.distance_logeuclid, rel=1e-10)
    assert data.distance_logeuclid == pytest.approx(float(distance_logeuclid(A, B, data.reference)))
    assert data.distance_riemann > 1.05 * data.distance_logeuclid
    np.testing.assert_allclose(np.linalg.det(data.geodesic), np.linalg.det(data.reference), rtol=1e-10)
    for _ in range(20):
        some = tangent.compute(unimodular(rng, 1)[0], tuple(map(tuple, 2 * rng.standard_normal((2, 2)))))
        assert some.distance_riemann >= some.distance_logeuclid * (1 - 1e-10)


def test_ascent_is_monotone_inside_the_ball_and_ends_at_kkt_points(climbed):
    for path in climbed.paths:
        # From the center the first step goes to the sphere, whatever the value there.
        assert np.all(np.diff(path.alignment)[int(not path.points[0].any()) :] >= 0)
        assert np.all(np.linalg.norm(path.points, axis=-1) <= climbed.radius * (1 + 1e-12))
        assert np.all(np.linalg.norm(path.arcs, axis=-1) <= climbed.radius * (1 + 1e-12))
        assert path.solution.converged
        assert path.alignment[-1] > np.max(climbed.alignment) - 0.01


def test_ascent_level_sets_are_those_of_the_alignment(climbed):
    """Against the definition, with n x n matrices and no code of the objective."""
    X, y, _, _ = make_toy(n_train=50, n_test=2, d=2, noise=3.0, random_state=ascent.DRAW)
    U = np.eye(50) - 1 / 50
    for r, a in ((0, 0), (3, 5), (7, 11)):
        G = at_normal_coordinates(climbed.grid[r, a], climbed.center)
        K = U @ kernel_tangent(X, reference=G) @ U
        target = U @ np.outer(y, y) @ U
        expected = np.sum(K * target) / np.linalg.norm(K) / np.linalg.norm(target)
        assert climbed.alignment[r, a] == pytest.approx(expected, rel=1e-9)


# -- Drawing ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> dict:
    return {name: figure(images=IMAGES) for name, figure in FIGURES.items()}


def texts_drawn(figure, monkeypatch) -> list[tuple]:
    """Texts, their sizes and their places, seen when they are drawn: only then do those in space have one."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    found, draw = [], Text.draw

    def watch(self, renderer):
        if self.get_visible() and self.get_text().strip():
            found.append((self.get_text(), self.get_fontsize(), Text.get_window_extent(self, renderer)))
        draw(self, renderer)

    monkeypatch.setattr(Text, "draw", watch)
    FigureCanvasAgg(figure).draw()
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_texts_are_readable_inside_the_page_and_apart(drawn, name, monkeypatch):
    figure = drawn[name]
    assert figure.get_size_inches()[0] in (3.4, 7.0)  # a column or a page
    found = texts_drawn(figure, monkeypatch)
    assert found
    width, height = figure.bbox.size
    for text, size, box in found:
        assert size >= 7, text
        assert -1 <= box.x0 < box.x1 <= width + 1, text
        assert -1 <= box.y0 < box.y1 <= height + 1, text
    for (one, _, a), (other, _, b) in combinations(found, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(wide, high) <= 1, f"{one!r} overlaps {other!r}"


# -- Files -----------------------------------------------------------------------


def test_files_are_written_complete_and_the_same_each_time(tmp_path):
    seen: list[str] = []
    written = save_figures(tmp_path / "new", ["whitening", "textures"], images=IMAGES, progress=seen.append)
    names = {"whitening.png", "whitening.pdf", "textures.png", "textures.pdf"}
    assert {path.name for path in written} == names
    assert {path.name for path in (tmp_path / "new").iterdir()} == names
    assert seen == ["whitening", "textures"]
    for path in written:
        assert path.read_bytes().startswith(b"\x89PNG" if path.suffix == ".png" else b"%PDF")
    assert np.frombuffer(written[0].read_bytes()[16:24], dtype=">u4").tolist() == [2100, 780]  # 300 dpi
    again = save_figures(tmp_path / "again", ["whitening"])
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in written[:2]]
