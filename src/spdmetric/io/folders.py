"""Where the files that come with the package are."""

from __future__ import annotations

from pathlib import Path


def pipelines_folder() -> str:
    """Folder of the MOABB pipeline files that come with the package.

    Returns
    -------
    folder : str
        To be given to MOABB's ``parse_pipelines_from_directory``, or to its command line as
        ``--pipelines``.

    Notes
    -----
    There is no Python file in that folder: MOABB would take it for a pipeline.

    Examples
    --------
    >>> from pathlib import Path
    >>> from spdmetric import pipelines_folder
    >>> sorted(path.stem for path in Path(pipelines_folder()).glob("*.yml"))
    ['le_cv', 'le_identity', 'le_learned', 'le_low_rank', 'le_mean']
    """
    return str(Path(__file__).parents[1] / "pipelines")
