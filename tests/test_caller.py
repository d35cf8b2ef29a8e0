"""Warnings name the line of the caller."""

import warnings

from spdmetric import caller


def test_the_warning_names_this_file():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        caller.warn_at_caller("said", UserWarning)
    assert [one.filename for one in caught] == [__file__]


def test_frames_of_the_package_are_passed_over():
    inner: dict[str, object] = {"__name__": "spdmetric.within.deep", "warn": caller.warn_at_caller}
    exec("def f():\n    g()\ndef g():\n    warn('said', UserWarning)", inner)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inner["f"]()
    assert [one.filename for one in caught] == [__file__]
