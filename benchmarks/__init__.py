"""How fast spdmetric is, beside what a user could assemble instead: see README.md."""
