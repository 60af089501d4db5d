"""Each part of pydevd that the agent reaches into is taken away in turn: whatever looks it up shall say so, and nothing else fail.

A pydevd without a client, which stops and traces nothing."""
import ast
import faulthandler
import sys
import threading
import traceback
from pathlib import Path

import debugpy.server.api  # noqa: F401 - makes pydevd known
import pydevd
from _pydev_bundle import pydev_monkey
from _pydevd_bundle.pydevd_additional_thread_info import set_additional_thread_info

from dvm_core.agent import attach, python_stop, tracing

HERE = str(Path(python_stop.__file__).parent)
FILES = (python_stop, tracing, attach)
QUIET = ("do_wait_suspend", "enable_tracing", "disable_tracing", "on_breakpoints_changed", "set_suspend", "set_trace_for_frame_and_parents",
         "trace_dispatch", "on_configuration_done", "on_disconnect")
EXEMPT = (  # looked up where there is no pydevd yet; and in Python 3.12
    "debugpy.server.api", "suspend_current_thread_tracing", "resume_current_thread_tracing", "_pydevd_sys_monitoring.pydevd_sys_monitoring")
GATED = ("_on_set_trace_for_new_thread", "_get_apply_arg_patching")


def parts():
    """By the agent's sources: names of attributes, and of modules."""
    found = {"_need": {}, "_module": {}}
    for file in FILES:
        for node in ast.walk(ast.parse(Path(file.__file__).read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in found:
                found[node.func.id].update(dict.fromkeys(part.value for part in node.args if isinstance(part, ast.Constant)))
    return dict.fromkeys([*found["_need"], *tracing._PARTS, *tracing._OCCASIONS, *tracing._SETTINGS]), found["_module"]


class Attribute:
    """Of pydevd's object, its class or a module; where it is none of these it is of what is compiled, and taken away where it is looked up."""

    def __init__(self, name, owners):
        self.name = name
        self.where = [(owner, vars(owner)[name]) for owner in {id(one): one for one in owners}.values() if name in getattr(owner, "__dict__", ())]

    def __enter__(self):
        for owner, _ in self.where:
            delattr(owner, self.name)

    def __exit__(self, *_):
        for owner, value in self.where:
            setattr(owner, self.name, value)


class Module:
    where = True

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.found, sys.modules[self.name] = sys.modules.get(self.name), None  # an import of it fails

    def __exit__(self, *_):
        del sys.modules[self.name]
        if self.found is not None:
            sys.modules[self.name] = self.found


def uses(pydb):
    frame, switch = sys._getframe(), tracing.Tracing()
    switch.wanted = False
    yield from (
        lambda: python_stop.join(frame), lambda: python_stop.prepare(lambda path: None), lambda: python_stop.prepare_with_client(lambda path: None), python_stop.code_changed,
        python_stop.inside_debugger, lambda: python_stop.is_suspended(threading.get_ident()),
        lambda: python_stop.suspend_here(frame), lambda: python_stop.stop_at_next_line(frame), switch.look, lambda: tracing.anything_set(pydb), tracing.threads_run, switch.leave,
        attach._gate_children, lambda: attach._going(pydb), lambda: attach._connected(pydevd, None).__enter__(), lambda: attach._leave(pydevd))


def main():
    faulthandler.dump_traceback_later(60, exit=True)
    pydb = pydevd.PyDB(set_as_global=True)
    pydb.is_attached = lambda: True
    for name in QUIET:
        setattr(pydb, name, lambda *_, **__: None)
    library, pydb.is_files_filter_enabled = pydb.LIB_FILE, True
    pydb.get_file_type = lambda frame: library
    pydb.in_project_scope = lambda *_: True
    pydb.apply_files_filter = lambda *_: False
    pydevd.stoptrace = pydevd.settrace = lambda *_, **__: None
    tracing.Tracing.settle = lambda switch: None
    over = threading.Event()
    threading.Thread(target=over.wait).start()
    info = set_additional_thread_info(threading.current_thread())
    names, modules = parts()
    interface = python_stop._module("_pydevd_bundle.pydevd_api").PyDevdAPI
    owners = [pydb, *type(pydb).__mro__[:-1], pydevd, *(python_stop._module(name) for name in modules if "monitoring" not in name)]
    need, absent = python_stop._need, set()

    def need_of_compiled(thing, *path):
        for name in path:
            if name in absent:
                raise python_stop._incompatible(f"{type(thing).__name__}.{name}")
        return need(thing, *path)

    for file in FILES:
        file._need = need_of_compiled
    untouched = [(owner, name, vars(owner)[name]) for owner, name in
                 [*((pydev_monkey, name) for name in GATED), (pydevd, "start_client"), (pydb._files_filtering, "_exclude_filters"),
                  *((pydb, name) for name in (*QUIET, "_cmd_queue", "_thread_events"))]]
    unsaid, faults = [], []
    taken = [*(Attribute(name, [interface] if name == "set_exclude_filters" else owners) for name in names), *(Module(name) for name in modules)]
    for part in taken:
        said = False
        absent.clear()
        if not part.where:
            absent.add(part.name)
        with part:
            for number, use in enumerate(uses(pydb)):
                try:
                    use()
                except python_stop.Incompatible as error:
                    said = said or (part.name in str(error) and "need debugpy" in str(error))
                except Exception as error:
                    if traceback.extract_tb(error.__traceback__)[-1].filename.startswith(HERE):  # else pydevd itself lacks it
                        faults.append(f"{part.name} ({number}): {type(error).__name__}: {error}")
        for owner, name, value in untouched:
            setattr(owner, name, value)
        if info.is_tracing:
            faults.append(f"{part.name}: left untraced")
            info.is_tracing = 0
        if not said and part.name not in EXEMPT:
            unsaid.append(part.name)
    over.set()
    print("parts", len(taken), *(f"\nunsaid {name}" for name in unsaid), *(f"\nfault {fault}" for fault in faults))


if __name__ == "__main__":
    main()
