"""Work beside everything else."""
from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


def background(work: Coroutine[Any, Any, Any], running: set[asyncio.Task[Any]]) -> asyncio.Task[Any]:
    """Starts it. `running` has it until it has ended, for asyncio itself holds tasks weakly."""
    task = asyncio.ensure_future(work)
    running.add(task)
    task.add_done_callback(running.discard)
    return task
