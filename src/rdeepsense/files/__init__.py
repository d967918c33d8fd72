"""Files and folders that are written whole or not at all, whenever the process ends."""

from rdeepsense.files.beside import hidden_beside, sweep
from rdeepsense.files.folder import check_strangers, write_folder
from rdeepsense.files.whole import replacing, write_whole

__all__ = [
    "check_strangers",
    "hidden_beside",
    "replacing",
    "sweep",
    "write_folder",
    "write_whole",
]
