"""Places: interned, and found by walking the stack: the user's line, whatever library frames lie above it."""
import subprocess
import sys
import textwrap

import pytest

import dvm_core
from dvm_core import _core

needs_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="co_positions came with Python 3.11")


def run(code: str, path: str = "/user/model.py", **names):
    """Executes source as if it were in that file; the names it defines."""
    space = {"place": _core.user_place, "__name__": "model", **names}
    exec(compile(textwrap.dedent(code), path, "exec"), space)
    return space


@pytest.fixture(autouse=True)
def prefixes():
    _core.set_library_prefixes(["/lib/frame/", "/lib/tools/"])
    yield
    _core.set_library_prefixes(dvm_core._library_prefixes())


def test_places_are_interned():
    a = _core.place("a.py", 3, 4, 5, 6, "f")
    assert a > 0 and _core.place("a.py", 3, 4, 5, 6, "f") == a
    assert _core.place_info(a) == ("a.py", 3, 4, 5, 6, "f", False)
    others = [_core.place("b.py", 3, 4, 5, 6, "f"), _core.place("a.py", 2, 4, 5, 6, "f"), _core.place("a.py", 3, 5, 5, 6, "f"),
              _core.place("a.py", 3, 4, 5, 6, "g"), _core.place("a.py", 3, 4, 5, 6, "f", True)]
    assert len({a, *others}) == 6
    assert _core.place_info(_core.place("a.py", 9)) == ("a.py", 9, 9, 0, 0, "", False)


def test_backward_place_is_the_same_place_marked():
    a = _core.place("a.py", 3, 4, 5, 6, "f")
    b = _core.backward_place(a)
    assert _core.place_info(b) == ("a.py", 3, 4, 5, 6, "f", True)
    assert _core.backward_place(a) == b == _core.backward_place(b) and _core.backward_place(0) == 0


@needs_columns
def test_the_users_line_columns_and_function():
    space = run("""
        class Net:
            def construct(self):
                return 1, place()
        _, p = Net().construct()
    """)
    assert _core.place_info(space["p"]) == ("/user/model.py", 4, 4, 19, 26, "Net.construct", False)


@needs_columns
def test_a_call_over_several_lines():
    space = run("""
        p = place(
            0
        )
    """)
    assert _core.place_info(space["p"])[:5] == ("/user/model.py", 2, 4, 5, 2)


@needs_columns
def test_an_operator_is_its_whole_expression():
    class Tensor:
        def __add__(self, other):
            return _core.user_place(1)
    space = run("""
        p = (a
             + b)
    """, a=Tensor(), b=Tensor())
    assert _core.place_info(space["p"])[:5] == ("/user/model.py", 2, 3, 6, 9)


@needs_columns
def test_columns_count_utf16_units(tmp_path):
    path = tmp_path / "größe.py"
    path.write_text("ä = '😀'; p = place()\n", encoding="utf-8")
    space = run(path.read_text(encoding="utf-8"), str(path))
    file, line, _, column, end, *_ = _core.place_info(space["p"])
    assert (file, line, column, end) == (str(path), 1, len("ä = '😀'; p = ") + 2, len("ä = '😀'; p = place()") + 2)


def test_library_frames_are_walked_past():
    inner = run("def matmul(): return place()", "/lib/tools/ops.py")["matmul"]
    middle = run("def dense(f): return f()", "/lib/frame/nn.py")["dense"]
    space = run("""
        def forward():
            return (dense(matmul))
        p = forward()
    """, matmul=inner, dense=middle)
    assert _core.place_info(space["p"])[1] == 3 and _core.place_info(space["p"])[5] == "forward"


def test_other_prefixes_change_the_answer():
    library = run("def op(): return place()", "/lib/frame/ops.py")["op"]
    code = "p = [op() for _ in range(2)][-1]"
    assert _core.place_info(run(code, op=library)["p"])[0] == "/user/model.py"
    _core.set_library_prefixes([])
    assert _core.place_info(run(code, op=library)["p"])[0] == "/lib/frame/ops.py"


def test_frame_depth_leaves_frames_out():
    space = run("""
        def helper(): return place(1)
        p = helper()
    """)
    assert _core.place_info(space["p"])[1] == 3


def test_no_user_frame_is_zero():
    space = run("""
        from threading import Thread
        found = []
        def work(): found.append(place())
        t = Thread(target=work); t.start(); t.join()
    """, "/lib/tools/pool.py")
    _core.set_library_prefixes(["/", "<"])
    assert _core.user_place() == 0
    assert len(space["found"]) == 1


def test_each_loop_iteration_is_the_same_place_and_each_line_another():
    space = run("""
        ps = [place() for _ in range(3)]
        qs = []
        for _ in range(2):
            qs.append(place())
            qs.append(place())
    """)
    assert len(set(space["ps"])) == 1
    assert len(set(space["qs"])) == 2


def test_code_objects_that_come_and_go_do_not_mix_up_places():
    for i in range(300):
        space = run("\n" * i + "p = place()", f"/user/cell{i}.py")
        assert _core.place_info(space["p"])[:2] == (f"/user/cell{i}.py", i + 1)


def test_generators_and_recursion():
    space = run("""
        def numbers():
            yield place()
        def deep(n):
            return place() if n == 0 else deep(n - 1)
        p, q = next(numbers()), deep(50)
    """)
    assert (_core.place_info(space["p"])[1], _core.place_info(space["q"])[1]) == (3, 5)


def test_a_ctrl_c_while_a_place_is_made_is_not_lost():
    code = """
        import linecache

        import dvm_core as dvm

        getline = linecache.getline

        def interrupted(*_):
            linecache.getline = getline
            raise KeyboardInterrupt

        x = dvm.tensor([1.0, 2.0])
        linecache.getline = interrupted
        try:
            x + 1
            for _ in range(1000):
                pass
        except KeyboardInterrupt:
            print("told")
    """
    told = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True, text=True)
    assert told.stdout == "told\n"
