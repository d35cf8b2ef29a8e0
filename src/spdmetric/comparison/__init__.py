"""Which metric suits these matrices, and does learning help: ``spdmetric compare`` and its page."""
