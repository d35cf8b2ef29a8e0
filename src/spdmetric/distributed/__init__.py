"""The same objective where the matrices live on the workers of a Dask cluster.

The chunks of X stay where they are.  One evaluation is two small reductions: the moments of the chunks are
merged, and sent back to pull the cotangents.  p^2 numbers travel from worker to worker; to the client come p
numbers and a gradient.  Reductions follow a tree that depends on the order of the chunks alone, and
everything is a task whose inputs the scheduler knows: what dies with a worker is computed again.

Needs ``pip install 'spdmetric[dask]'``; nothing of Dask is imported before it is used.
"""
