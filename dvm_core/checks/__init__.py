"""`dvm.check`: what a simulated NPU's rules say of a program or kernel, in the user's own ops and lines."""

from __future__ import annotations

from .report import Finding, Report
from .run import check

__all__ = ["Finding", "Report", "check"]
