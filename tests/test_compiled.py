"""The compiled kernels against the NumPy path, LAPACK, and decimal arithmetic."""

import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spdmetric
from compiled_eigh import eigh
from python_process import run_python
from random_matrices import labeled, rotation, spd, symmetric
from spdmetric.geometry import mean_riemann
from spdmetric.linalg import batch
from spdmetric.linalg.compiled import kernels as compiled_kernels
from spdmetric.linalg.compiled import sums
from spdmetric.linalg.compiled.cache import _Cache
from spdmetric.linalg.compiled.stack import CompiledStack
from spdmetric.linalg.symmetric import compute_moments, congruence, invsqrtm, unvech, vech
from spdmetric.manifolds import Ball
from spdmetric.objectives.data import ClassTarget
from spectral import LogCongruence

seeds = st.integers(0, 2**32 - 1)


def numpy_path(X, W, rows):
    """Features, frame gradient and factor gradient of `spdmetric.linalg.symmetric`."""
    log = LogCongruence.of(congruence(W, X))
    M = unvech(rows)
    return vech(log.log.compose(log.log.values)), log.push(M).sum(axis=0), log.pull_factor(M, W @ X)


def kernels(X, W, rows):
    here = CompiledStack.of(X).decompose(W)
    return here.features, here.pull(rows), here.pull_factor(rows)


def assert_same(ours, theirs, rel=1e-11):
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=rel * np.abs(b).max())


def features_of(m):
    return m * (m + 1) // 2


@given(seeds, st.integers(1, 40), st.integers(1, 40), st.integers(1, 19), st.sampled_from([1e-12, 1.0, 1e12]))
def test_passes_are_those_of_numpy(seed, m, d, n, scale):
    """Any shape of factor, any remainder of lanes, any scale."""
    rng = np.random.default_rng(seed)
    X = scale * spd(rng, n, d, spread=0.3)
    W = np.eye(min(m, d), d) + 0.1 * rng.standard_normal((min(m, d), d))
    rows = rng.standard_normal((n, features_of(W.shape[0])))
    assert_same(kernels(X, W, rows), numpy_path(X, W, rows))


@given(seeds, st.integers(2, 12))
def test_passes_at_awkward_spectra(seed, d):
    """Repeated and nearly repeated eigenvalues, diagonal matrices, multiples of the identity."""
    rng = np.random.default_rng(seed)
    Q, values = rotation(rng, d), np.where(np.arange(d) % 2, 1.0, 3.0)
    close = values * (1 + 10.0 ** -rng.integers(1, 16, d))
    X = np.stack(
        [
            np.eye(d),
            3e-7 * np.eye(d),
            np.diag(values),
            np.diag(rng.permutation(np.logspace(-4, 4, d))),
            congruence(Q, np.diag(values)),
            congruence(Q, np.diag(close)),
            np.diag(close) + np.diag(np.full(d - 1, 1e-9), 1) + np.diag(np.full(d - 1, 1e-9), -1),
        ]
    )
    rows = rng.standard_normal((len(X), features_of(d)))
    assert_same(kernels(X, np.eye(d), rows), numpy_path(X, np.eye(d), rows), rel=1e-10)


# At radius 60 the eigenvalues of W X W' span 26 decades, and either path may lose six digits.
@pytest.mark.parametrize(("radius", "rel"), [(1.0, 1e-13), (10.0, 1e-13), (30.0, 1e-12), (60.0, 1e-9)])
def test_graded_factors_keep_their_digits(radius, rel, rng):
    """Far out in the ball, as LAPACK does; in whatever order the rows come, as LAPACK does not."""
    X, _ = labeled(rng, 10, 7)
    S = symmetric(rng, 7, traceless=True)
    W = Ball(mean_riemann(X), 100.0).point(S * radius / np.linalg.norm(S)).factor
    rows = rng.standard_normal((10, 28))
    stack = CompiledStack.of(X)
    here = stack.decompose(W)
    log = LogCongruence.of(congruence(W, X))
    features = vech(log.log.compose(log.log.values))
    np.testing.assert_allclose(here.features, features, rtol=0, atol=rel * np.abs(features).max())
    gradient = log.push(unvech(rows)).sum(axis=0)
    np.testing.assert_allclose(here.pull(rows), gradient, rtol=0, atol=10 * rel * np.abs(gradient).max())
    reverse = np.arange(7)[::-1]
    backwards = unvech(stack.decompose(W[::-1]).features)
    np.testing.assert_array_equal(vech(backwards[:, reverse][:, :, reverse]), here.features)


@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("p", [1, 6, 45, 46])
@pytest.mark.parametrize("n", [1, 8, 203])
def test_moments_and_cotangents(n, p, gram, rng):
    features, codes = 100 + rng.standard_normal((n, p)), np.arange(n) % 3
    Y = ClassTarget.from_codes(np.append(codes, [0, 1, 2])).part(slice(n)).Y
    target = Y, rng.uniform(0.5, 2, (n, 1))
    ours = sums.moments(features, *target, gram=gram)
    theirs = compute_moments(features, *target, gram=gram)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-11 * n)
    C, across = symmetric(rng, p), rng.standard_normal((p, 3))
    rows = sums.cotangents(features, theirs.mean, *target, C, across)
    expected = target[1] * ((features - theirs.mean) @ C + Y @ across.T)
    np.testing.assert_allclose(rows, expected, atol=1e-11)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("p", [6, 60])
def test_the_mean_tells_what_is_not_finite(p, bad, rng):
    features = rng.standard_normal((11, p))
    features[10, p - 1] = bad
    _, mean, *_ = sums.moments(features, rng.standard_normal((11, 2)), np.ones((11, 1)))
    assert np.isfinite(mean).tolist() == [True] * (p - 1) + [False]


def check_spectrum(S):
    d = S.shape[-1]
    values, vectors = eigh(S)
    norm = np.linalg.norm(S, 2, axis=(-2, -1))[:, None]
    assert np.all(np.diff(values, axis=-1) >= 0)
    assert np.all(np.abs(values - np.linalg.eigvalsh(S)) <= 2e-14 * norm)
    assert np.all(np.abs(S @ vectors - vectors * values[:, None, :]) <= 1e-14 * norm[..., None])
    assert np.abs(np.swapaxes(vectors, -1, -2) @ vectors - np.eye(d)).max() < 2e-14


@given(seeds, st.integers(1, 40), st.integers(1, 9), st.sampled_from([1e-150, 1e-12, 1.0, 1e12, 1e150]))
def test_eigenvalues_and_eigenvectors(seed, d, n, scale):
    check_spectrum(scale * symmetric(np.random.default_rng(seed), n, d))


def test_eigenproblems_of_ill_repute(rng):
    d = 21
    Q, sums = rotation(rng, d), np.add.outer(np.arange(d), np.arange(d))
    beside = np.abs(np.subtract.outer(np.arange(d), np.arange(d))) == 1
    graded = np.exp(-sums / 2.0)
    wilkinson = np.diag(np.abs(np.arange(d) - (d - 1) / 2)) + beside  # pairs that agree to almost all digits
    turned = [(Q * values) @ Q.T for values in (np.sign(np.arange(d) - 7.5), 1 + 1e-15 * np.arange(d))]
    tiny = np.diag(np.where(np.arange(d) == 3, 1.0, 1e-290))
    plain = [np.zeros((d, d)), np.ones((d, d)), np.eye(d)[::-1], 1 / (1 + sums)]
    check_spectrum(np.stack([*plain, *turned, wilkinson, graded, graded[::-1, ::-1], tiny]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e305])
@pytest.mark.parametrize("d", [1, 2, 3, 8])
def test_numbers_that_are_none_stay_in_their_matrix(bad, d, rng):
    X = spd(rng, 11, d)
    good = eigh(X)
    X[4, d - 1, 0] = X[4, 0, d - 1] = bad
    values, vectors = eigh(X)
    others = np.arange(11) != 4
    assert np.isnan(values[4]).all()
    assert np.isnan(vectors[4]).all()
    np.testing.assert_array_equal(values[others], good.values[others])
    np.testing.assert_array_equal(vectors[others], good.vectors[others])
    here = CompiledStack.of(X).decompose(np.eye(d))
    assert np.isnan(here.features[4]).all()
    assert np.isfinite(here.features[others]).all()
    assert np.isnan(here.pull(np.ones_like(here.features))).any()


def test_features_of_what_is_not_positive_definite_are_not_finite():
    X = np.stack([np.diag([2.0, -1.0]), np.diag([2.0, 0.0]), np.diag([2.0, 1.0])])
    features = CompiledStack.of(X).decompose(np.eye(2)).features
    assert (~np.isfinite(features)).any(axis=1).tolist() == [True, True, False]


def test_logarithm_to_the_last_digits(rng):
    x = np.concatenate(
        [10 ** rng.uniform(-290, 290, 4000), 1 + rng.uniform(-0.5, 0.5, 4000), 2.0 ** np.arange(-9, 9)]
    )
    features = CompiledStack.of(x[:, None, None]).decompose(np.eye(1)).features
    np.testing.assert_allclose(features[:, 0], np.log(x), rtol=6e-16, atol=0)


def test_h_is_accurate_at_every_gap():
    """A diagonal pair pulls back an off-diagonal cotangent times h, from gaps of 1e-15 to e**60."""
    t = np.concatenate([[0.0], np.logspace(-15, 1.78, 200)])
    for shift in (-25.0, 0.0, 25.0):
        for gap in np.concatenate([t, -t]):
            a, b = np.exp(shift + gap / 2), np.exp(shift - gap / 2)
            here = CompiledStack.of(np.diag([a, b])[None]).decompose(np.eye(2))
            h = -here.pull(np.array([[0.0, np.sqrt(2.0), 0.0]]))[0, 1]
            exact = np.longdouble(a) / np.longdouble(b)  # of the rounded a and b
            u = np.log(exact) / 2 if abs(gap) > 1e-3 else np.arctanh((exact - 1) / (exact + 1))
            expected = float(u / np.tanh(u)) if u != 0 else 1.0
            assert h == pytest.approx(expected, rel=1e-14)


def test_arrays_of_all_kinds(rng):
    X, _ = labeled(rng, 10, 4)
    W, rows = invsqrtm(spd(rng, 4)), rng.standard_normal((10, 10))
    expected = kernels(X, W, rows)
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((20, 8, 8))
    wide[::2, ::2, ::2] = X
    for same in (frozen, np.asfortranarray(X), wide[::2, ::2, ::2]):
        for a, b in zip(kernels(same, np.asfortranarray(W), np.asfortranarray(rows)), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    single = X.astype(np.float32)
    for a, b in zip(kernels(single, W, rows), kernels(single.astype(float), W, rows), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == np.float64
    assert kernels(X, W, np.broadcast_to(rows[:1], rows.shape))[1].shape == (4, 4)
    for array in (frozen, np.asfortranarray(frozen)):
        features = CompiledStack.of(array).decompose(W).features
        features.flags.writeable = False
        Y, w = np.asfortranarray(rng.standard_normal((10, 2))), np.ones((10, 1))
        _, mean, _, A, C = sums.moments(features, Y, w)
        sums.cotangents(features, mean, Y, w, C, A)
    # Nothing is compiled anew for another kind of array.
    functions = (compiled_kernels.forward, compiled_kernels.pull_frame, compiled_kernels.pull_factor)
    for function in (*functions, sums._moments, sums._rows):
        assert len(function.signatures) == 1


def run(code, **environment):
    done = run_python(code, PYTHONWARNINGS="always", **environment)
    return done.stdout.splitlines(), done.stderr


def test_sizes_and_settings_choose(monkeypatch):
    monkeypatch.delenv("SPDMETRIC_COMPILED", raising=False)
    sizes = (39, 8), (40, 8), (200, 16), (40, 400), (None, 7), (None, 8)
    assert [batch.pays(*size) for size in sizes] == [False, True, True, False, False, True]
    monkeypatch.setenv("SPDMETRIC_COMPILED", "1")
    assert [batch.pays(n, d) for n, d in ((1, 1), (40, 400))] == [True, False]
    monkeypatch.setenv("SPDMETRIC_COMPILED", "0")
    assert not batch.pays(10**6, 20)
    monkeypatch.setenv("SPDMETRIC_COMPILED", "1")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not batch.pays(10**6, 20)


BROKEN = {
    "absent": "sys.modules['numba'] = None",
    "import raises": "sys.modules['llvmlite'] = type('Broken', (), {'__getattr__': lambda *a: 1 / 0})()",
    "cannot compile": "import numba\ndef fail(*a, **k): raise OSError('no LLVM')\nnumba.njit = fail",
}


@pytest.mark.parametrize("how", BROKEN)
def test_without_numba_numpy_works_after_one_warning(how):
    code = f"""
import sys
{BROKEN[how]}
import numpy as np
from spdmetric.geometry import pairwise_distance
from spdmetric.linalg.batch import make_stack
X = np.exp(np.arange(100.0) / 100)[:, None, None] * np.eye(8)
for _ in range(2):
    print(type(make_stack(X)).__name__, pairwise_distance(np.concatenate([X] * 3)).shape)
"""
    out, warned = run(code)
    assert out == ["PlainStack (300, 300)"] * 2
    assert warned.count("RuntimeWarning: The compiled kernels cannot be used") == 1
    assert warned.startswith("<string>:")  # the line of the caller
    if how == "absent":
        assert run(code, SPDMETRIC_COMPILED="0") == (out, "")


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, whose sources can be changed."""
    shutil.copytree(
        Path(spdmetric.__file__).parent, tmp_path / "spdmetric", ignore=shutil.ignore_patterns("__pycache__")
    )
    return tmp_path


ONE_KERNEL = """
import numpy as np
from spdmetric.linalg.compiled.kernels import pack  # the quickest to compile

pack(np.ones((1, 1, 1)), np.empty((1, 1, 8)))
print(sum(pack.stats.cache_hits.values()), pack.stats.cache_path)
"""


def test_an_edit_of_any_source_is_noticed(copied, tmp_path):
    """Of a module, too, whose functions a kernel of another module contains."""
    here = {"PYTHONPATH": str(copied), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [run(ONE_KERNEL, **here)[0][0].split() for _ in range(2)]
    with open(copied / "spdmetric/linalg/compiled/eigen.py", "a") as source:
        source.write("# edited\n")
    said += [run(ONE_KERNEL, **here)[0][0].split() for _ in range(2)]
    assert [hits for hits, _ in said] == ["0", "1", "0", "1"]
    assert said[0][1].startswith(str(tmp_path / "cache"))


@pytest.mark.parametrize("damage", ["garbage", "a folder"])
def test_a_damaged_cache_is_compiled_anew(damage, tmp_path):
    here = {"NUMBA_CACHE_DIR": str(tmp_path)}
    run(ONE_KERNEL, **here)
    (index,) = tmp_path.rglob("*pack*.nbi")
    if damage == "a folder":  # neither read nor written, not even by root
        index.unlink()
        index.mkdir()
    else:
        index.write_bytes(b"garbage")
    out, err = run(ONE_KERNEL, **here)
    assert out[0].split()[0] == "0"
    assert err.count("RuntimeWarning: Compiled kernels cannot be kept on disk") == (damage == "a folder")
    if damage == "garbage":
        assert run(ONE_KERNEL, **here)[0][0].split()[0] == "1"


def test_without_a_place_for_compiled_code_each_process_compiles_after_one_warning():
    """No folder of numba's can be written."""
    code = """
import numpy as np
from numba.core import caching
for locator in (caching.UserProvidedCacheLocator, caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    locator.ensure_cache_path = lambda self: open("/nowhere/at/all")
from spdmetric.linalg.compiled.kernels import pack  # the quickest to compile
packed = np.empty((1, 1, 8))
for _ in range(2):
    pack(np.ones((1, 1, 1)), packed)
print(packed[0, 0, 0])
"""
    out, err = run(code)
    assert out == ["1.0"]
    assert err.count("RuntimeWarning") == 1
    assert "make the folder writable, or name another in NUMBA_CACHE_DIR" in err


@pytest.mark.parametrize("name", ["eigen", "functions", "kernels", "products", "sums"])
def test_kernels_share_no_compiled_function(name):
    """A process that compiles would run another copy of it, with other last bits, than one that loads."""
    module = import_module(f"spdmetric.linalg.compiled.{name}")
    found = {key: f for key, f in vars(module).items() if hasattr(f, "targetoptions")}
    assert found
    for key, function in found.items():
        is_kernel = isinstance(function._cache, _Cache)
        assert is_kernel or function.targetoptions["forceinline"], key
