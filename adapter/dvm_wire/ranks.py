"""Which rank of a distributed program a process is, as its launcher says in the environment."""
from __future__ import annotations

import os
from collections.abc import Mapping

# torchrun; msrun and MindSpore's own launchers; Open MPI; and of one machine only, where nothing else is said.
VARIABLES = ("RANK", "RANK_ID", "OMPI_COMM_WORLD_RANK", "LOCAL_RANK")


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """None in a process that is no rank."""
    return next((int(told) for name in VARIABLES if (told := environment.get(name, "")).isdecimal()), None)
