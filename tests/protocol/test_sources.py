"""Sources as people have them: folders with odd names and links, encodings, line ends, and statements of every shape. A breakpoint is hit
once, on the line that was asked for."""
import os
import sys

import pytest
from harness import line_of

FOLDERS = {"spaces": "two  words", "quotes": "it's a \"quoted\" & `one`", "other letters": "größe 数据 ✓ Ł", "brackets": "{a} [b] %c #d;e",
           "the name of an archive": "x.zipped"}
# name -> (bytes of the file, line of the breakpoint)
TEXTS = {
    "plain": (b"a = 1\nb = a + 1\nprint(b)\n", 2),
    "crlf": (b"a = 1\r\nb = a + 1\r\nprint(b)\r\n", 2),
    "byte order mark": (b"\xef\xbb\xbfa = 1\nb = a + 1\nprint(b)\n", 2),
    "tabs": (b"def f():\n\ta = 1\n\tb = a + 1\n\treturn b\nprint(f())\n", 3),
    "coding cookie": ("# -*- coding: latin-1 -*-\nä = 'größer'\nb = ä + 'ß'\nprint(len(b))\n".encode("latin-1"), 3),
    "form feed": (b"a = 1\n\x0cb = a + 1\nprint(b)\n", 2),
    "no newline at the end": (b"a = 1\nprint(a + 1)", 2),
    "nested": (b"def f(n):\n    def g(m):\n        return m + 1\n    return g(n)\nprint(f(1))\n", 3),
    "lambda": (b"f = (lambda n:\n     n + 1)\nprint(f(1))\n", 2),
    "multi-line call": (b"print(max(\n    1,\n    2,\n))\n", 1),
    "decorated": (b"def d(f):\n    return f\n\n@d\ndef g():\n    return 2\nprint(g())\n", 6),
    "comprehension": (b"a = [\n    n + 1\n    for n in (1,)\n]\nprint(a)\n", 2),
    "emoji before the statement": ("x = '🎉🎉'; y = len(x)\nprint(y)\n".encode(), 2),
}


def stops_at(session, path, line, **more):
    """Launches; the one stop's frame."""
    answers = []
    session.launch(lambda client: answers.extend(client.set_breakpoints(str(path), [line])), program=str(path), **more)
    assert [answer["verified"] for answer in answers] == [True]
    session.stopped(reason="breakpoint", hitBreakpointIds=[answers[0]["id"]])
    frame = session.stack(1)[0]
    session.set_breakpoints(str(path), [])
    session.go_on()
    session.run_out()
    assert len(list(session.seen("stopped"))) == 1
    return frame


@pytest.mark.parametrize("name", FOLDERS)
def test_a_breakpoint_in_a_folder_with_an_odd_name(session, tmp_path, name):
    folder = tmp_path / FOLDERS[name]
    folder.mkdir()
    program = folder / "main.py"
    program.write_bytes(TEXTS["plain"][0])
    frame = stops_at(session, program, 2, cwd=str(folder))
    assert (frame["line"], frame["source"]["path"]) == (2, str(program))


def test_a_breakpoint_in_a_text_of_each_kind(session, tmp_path):
    main = tmp_path / "main.py"
    main.write_text("import runpy\nimport sys\n\nfor path in sys.argv[1:]:\n    runpy.run_path(path)\n")
    files = {tmp_path / f"{number}.py": kind for number, kind in enumerate(TEXTS.values())}

    def configure(client):
        for path, (text, line) in files.items():
            path.write_bytes(text)
            assert [answer["verified"] for answer in client.set_breakpoints(str(path), [line])] == [True]

    session.launch(configure, program=str(main), args=[str(path) for path in files])
    for number, (path, (_, line)) in enumerate(files.items(), 1):
        session.stopped(reason="breakpoint", hitBreakpointIds=[number])
        frame = session.stack(1, startFrame=0, levels=1)[0]
        assert (frame["line"], frame["source"]["path"]) == (line, str(path))
        session.set_breakpoints(str(path), [])
        session.go_on()
    session.run_out()


SHAPES = """import numpy as np

import dvm_core as dvm

double = dvm.jit(lambda x:
                 x * 2)  # a lambda


def outer(w):
    @dvm.jit
    def inner(x):
        return x + w  # nested
    return inner


@dvm.jit
def several(x):
    parts = [x * n  # a comprehension
             for n in (3.0,)]
    y = (parts[0]  # a statement of several lines
         + x
         - 1.0)
    return y


x = dvm.tensor(np.ones(4, np.float32))
print(double(x).numpy(), outer(x)(x).numpy(), several(x).numpy())
"""


def test_tensor_lines_in_functions_and_statements_of_every_shape(session, tmp_path):
    pytest.importorskip("dvm_core._core")
    program = tmp_path / "shapes.py"
    program.write_text(SHAPES)
    lines = [line_of(program, "# " + what) for what in ("a lambda", "nested", "a comprehension", "a statement")]
    session.launch(lambda client: client.set_breakpoints(str(program), lines), program=str(program))
    for number, (line, function) in enumerate(zip(lines, ("<lambda>", "inner", "several", "several"), strict=True), 1):
        session.stopped(reason="breakpoint")
        top, label, python = session.stack(1, startFrame=0, levels=3)
        assert (top["line"], label["presentationHint"], python["line"]) == (line, "label", line)
        assert python["name"].rpartition(".")[2] == function
        assert any(t["name"] == "x" for t in session.variables(session.scopes(top["id"])["Tensors"]["variablesReference"]))
        session.set_breakpoints(str(program), lines[number:])  # a comprehension's line is run again, in the function that it is
        session.go_on()
    session.run_out()


@pytest.mark.parametrize("given, run", [("link", "real"), ("real", "link"), ("link", "link")])
def test_a_folder_reached_through_a_link_binds_both_ways_under_the_path_that_was_given(session, tmp_path, given, run):
    """The editor has the folder by one name, the program runs by the other."""
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "link", target_is_directory=True)
    (tmp_path / "real" / "part.py").write_text("def f(n):\n    m = n + 1\n    return m\n")
    (tmp_path / "real" / "main.py").write_text("import part\nprint(part.f(1))\n")
    path = tmp_path / given / "part.py"
    session.launch(lambda client: client.set_breakpoints(str(path), [2]), program=str(tmp_path / run / "main.py"))
    session.stopped(reason="breakpoint")
    frame = session.stack(1)[0]
    assert (frame["line"], frame["source"]["path"]) == (2, str(path))  # or the editor would open the file a second time
    session.set_breakpoints(str(path), [])
    session.go_on()
    session.run_out()


def test_a_program_of_the_console_may_be_a_cell(session, tmp_path):
    """A notebook's cell: text compiled under a file name of its own, which exists while it runs."""
    cell = tmp_path / "ipykernel_1" / "123456.py"
    cell.parent.mkdir()
    cell.write_text("\n\na = 1\nb = a + 1\n")
    main = tmp_path / "main.py"
    main.write_text(f"path = {str(cell)!r}\nexec(compile(open(path).read(), path, 'exec'))\nprint('ran')\n")
    session.launch(lambda client: client.set_breakpoints(str(cell), [4]), program=str(main), justMyCode=False, python=[sys.executable])
    session.stopped(reason="breakpoint")
    assert session.stack(1)[0]["line"] == 4
    session.set_breakpoints(str(cell), [])
    session.go_on()
    session.run_out()
