"""Which rank of a distributed program a process is, and of how many, as its launcher says in the environment."""
from __future__ import annotations

import os
from collections.abc import Mapping

# torchrun; msrun and MindSpore's own launchers; Open MPI; MPICH, Intel MPI and Slurm's PMI; PMIx; and of one machine only, where nothing
# else is said.
VARIABLES = ("RANK", "RANK_ID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "LOCAL_RANK")
SIZES = ("WORLD_SIZE", "RANK_SIZE", "MS_WORKER_NUM", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")

# What tells one job from another of the same launcher.
_JOBS = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "MS_SCHED_PORT", "OMPI_MCA_ess_base_jobid", "PMI_JOBID", "SLURM_JOB_ID")


def _number(names: tuple[str, ...], environment: Mapping[str, str]) -> int | None:
    return next((int(told) for name in names if (told := environment.get(name, "")).isdecimal()), None)


def scheduler(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether it is the process that brings MindSpore's ranks together: it runs the same script with the number 0, and is none of them."""
    return environment.get("MS_ROLE") == "MS_SCHED"


def marks(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What the launcher has said of rank and job: the same in two processes of one rank only."""
    return tuple(environment.get(name, "") for name in (*VARIABLES, *SIZES, *_JOBS))


def job_marks(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Of them what all ranks of a job have alike."""
    return tuple(environment.get(name, "") for name in (*SIZES, *_JOBS))


def rank_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """None in a process that is no rank."""
    return None if scheduler(environment) else _number(VARIABLES, environment)


def size_of(environment: Mapping[str, str] = os.environ) -> int | None:
    """How many ranks there are, None where nobody says."""
    return _number(SIZES, environment)
