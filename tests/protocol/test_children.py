"""Child processes become sessions of our own type, with their own tensors; multiprocessing's helper stays unseen."""
import threading

import some
from harness import PROGRAMS, line_of

CHILDREN = PROGRAMS / "children.py"
LINE = line_of(CHILDREN, "h = x * 2")


def test_a_spawned_worker_is_a_session_with_tensors(adapter):
    root = adapter()
    configurations, children, done = [], [], threading.Event()

    def debug_child(configuration):
        child = adapter()
        child.request("initialize", adapterID="dvm", supportsStartDebuggingRequest=True)
        attached = child.begin("attach", **configuration)
        child.event("initialized")
        child.set_breakpoints(str(CHILDREN), [{"line": LINE, "mode": "both"}])
        child.request("configurationDone")
        assert attached.get(timeout=10)["success"]
        children.append(child)
        done.set()

    def reverse(request):
        if request["command"] == "startDebugging":
            configurations.append(request["arguments"])
            threading.Thread(target=debug_child, args=(request["arguments"]["configuration"],)).start()
        return {}

    root.reverse = reverse
    root.start(CHILDREN, subProcess=True, dvm={"hotReload": "off"})
    assert done.wait(30)
    (child,) = children
    names = []
    for _ in range(2):
        thread = child.stopped(reason="breakpoint")["threadId"]
        names.append(child.stack(thread)[0]["name"])
        child.go_on(thread)
    assert names == ["h = x * 2", "backward of h = x * 2"]
    child.run_out()
    root.event("terminated", timeout=30)  # the resource tracker was attached to silently, or the program would never end
    assert "from the worker: 42" in root.printed()
    assert len(configurations) == 1 and configurations[0]["request"] == "attach"
    assert configurations[0]["configuration"] == some.with_items(type="dvm", name=some.containing("Subprocess"), subProcessId=some.int_,
                                                                 connect=some.anything, dvm={"hotReload": "off"})
    assert "env" not in configurations[0]["configuration"]


def test_without_subprocess_debugging_children_run_free(session):
    session.start(CHILDREN, args=["free"], subProcess=False)
    session.event("terminated", timeout=40)
    assert "from the worker: 42" in session.printed()
