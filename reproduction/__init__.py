"""The paper, reproduced: its tables and figures, our tables beyond it, and the data sets of both.

Run from a clone of the repository: ``python -m reproduction toy --quick``.
"""
