"""Symmetric matrices: spectra, functions of them, and stacks decomposed at a factor."""
