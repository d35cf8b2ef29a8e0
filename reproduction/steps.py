"""The commands that compute what the pages quote, in the order in which ``make results`` runs them."""

from __future__ import annotations

from typing import NamedTuple

PAPER = "logeuclid-identity,logeuclid-mean,logeuclid-kta,riemann,euclid"


class Step(NamedTuple):
    """A command, what it writes, and where that goes."""

    target: str  # in docs/results, without suffix
    command: str  # of python -m reproduction; DATA is the folder of data
    minutes: float  # on two cores, as far as is known


# The cheap and most quoted ones first.
STEPS = (
    Step("bci", "bci --data DATA/bci2a-a09", 1),
    Step("beyond", "beyond --data DATA", 25),
    Step("toy", "toy --repeats 50", 5),
    Step("textures", "textures --data DATA/brodatz", 3),
    Step("eegmmi", "eegmmi --data DATA/eegmmi", 2),
    Step("scikit-image/textures", "textures", 3),
    Step("image-sets", "image-sets --data DATA/virus", 20),
    Step("ablations/toy", f"toy --repeats 20 --methods {PAPER} --ablations", 0.5),
    Step("toy-easy", "toy-easy --repeats 50", 3),
    Step("figures", "figures --data DATA/brodatz", 0.5),
    Step("long/toy", f"toy --repeats 300 --methods {PAPER}", 4),
    Step("transfer", "transfer --data DATA/eegmmi", 8),
)
