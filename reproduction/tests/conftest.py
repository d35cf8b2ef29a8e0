from fixtures import data_folder, rng  # noqa: F401
