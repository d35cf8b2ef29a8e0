"""
The textures
============

Reproduces the figure "Selected textures from the Brodatz dataset" of Yger and Sugiyama (2015).

The Brodatz album cannot be distributed with the package.  When the environment variable
``SPDMETRIC_DATA`` names a folder with the scans of the paper's four textures in its subfolder
``brodatz``, they are shown; otherwise those that come with scikit-image.  Training patches
are cut from the left halves, test patches from the right halves.

The figures of the paper are made by the folder ``reproduction`` of the repository; from a clone:
``python -m examples.paper.plot_textures``.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt

from reproduction.datasets import load_images
from reproduction.figures import textures

folder = Path(os.environ.get("SPDMETRIC_DATA", "")) / "brodatz"
images = load_images(folder, ["D2", "D28", "D29", "D92"]) if folder.is_dir() else load_images()
textures.draw(images, figure=plt.figure())
plt.show()
