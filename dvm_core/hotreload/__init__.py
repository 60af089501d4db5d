"""Hot reload: read → parse → classify → plan → swap at a call boundary → trial → report. Top-level code is never run again."""
from .jobs import Done
from .pact import Pact
from .reloader import Reloader
from .report import APPLIED, REFUSED, UNCHANGED, Report
from .sources import SourceBook
from .transaction import Boundary, Host

__all__ = ["APPLIED", "REFUSED", "UNCHANGED", "Boundary", "Done", "Host", "Pact", "Reloader", "Report", "SourceBook"]
