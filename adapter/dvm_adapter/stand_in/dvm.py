"""`import dvm` in a debugged program: the DVM that is installed, else dvm_core. On the program's path, and no part of the adapter."""
import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_found = importlib.machinery.PathFinder.find_spec("dvm", [path for path in sys.path if os.path.abspath(path) != _here])
if _found is not None and _found.loader is not None:
    _real = importlib.util.module_from_spec(_found)
    sys.modules["dvm"] = _real
    _found.loader.exec_module(_real)
else:
    import dvm_core

    sys.modules["dvm"] = dvm_core
