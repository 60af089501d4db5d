"""Columns in UTF-16 units and pages of exactly what there is, in the adapter alone."""
import asyncio
from types import SimpleNamespace

import pytest
from dvm_adapter import attach, columns, evaluate, variables
from dvm_adapter.errors import RequestError
from dvm_adapter.references import References

TEXTS = ["x.me", "'é漢' + x.me", "'😀' + x.me", "'😀' + 高さ.me + 1"]


@pytest.mark.parametrize("text", TEXTS)
def test_what_stands_before_a_column_is_what_an_editor_counts_as_that(text):
    for end in range(len(text) + 1):
        column = len(text[:end].encode("utf-16-le")) // 2 + 1
        assert columns.before(text, column) == text[:end] and columns.units(text[:end]) == column - 1
    assert columns.before("😀x", 2) == "" and columns.before("ab", -3) == "" and columns.before("ab", 99) == "ab"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("lines", [[], ["import 😀"]])
def test_completions_are_of_what_stands_before_the_column(text, lines):
    asked = []

    async def ask(command, arguments):
        asked.append(arguments["column"])
        return {"targets": [{"label": "mean", "start": arguments["column"] - 3, "length": 2}, {"label": "median"}]}

    end = text.index(".me") + 3
    session = SimpleNamespace(python=SimpleNamespace(ask=ask))
    column = len(text[:end].encode("utf-16-le")) // 2 + 1
    given = {"text": "\n".join([*lines, text]), "column": column, "frameId": 3, "line": len(lines) + 1}
    targets = asyncio.run(evaluate.completions(session, given))["targets"]
    assert asked == [end + 1]  # debugpy counts characters
    first = len(text[:end - 2].encode("utf-16-le")) // 2
    assert targets == [{"label": "mean", "start": first, "length": 2}, {"label": "median"}]


def elements(total, shape, paging=True):
    """A session with a tensor of that many elements; its values' reference, and what was asked for."""
    asked = []

    async def ask(command, ref, start, count):
        asked.append((start, count))
        return {"values": [str(number) for number in range(start, start + count)]}

    session = SimpleNamespace(references=References(), client_arguments={"supportsVariablePaging": paging},
                              tensors=SimpleNamespace(ask=ask))
    tensor = variables.Tensor({"ref": 1, "shape": shape, "dtype": "float32", "computed": True})
    return session, session.references.add(variables.Values(tensor, 0, shape)), asked


def page(session, reference, **more):
    return asyncio.run(variables.variables(session, {"variablesReference": reference, **more}))["variables"]


@pytest.mark.parametrize("total", [1, 99, 100, 101, 200, 201, 1000])
def test_pages_of_a_hundred_have_each_element_once(total):
    session, reference, asked = elements(total, [total])
    pages = [page(session, reference, filter="indexed", start=start, count=100) for start in range(0, total + 200, 100)]
    shown = [entry["name"] for entries in pages for entry in entries]
    assert shown == [str(number) for number in range(total)]
    assert sum(count for _, count in asked) == total  # nothing is asked for beyond the end


def test_a_page_of_a_billion_elements_fetches_that_page_and_announces_their_number():
    session, reference, asked = elements(10**9, [10**9])
    assert [entry["value"] for entry in page(session, reference, filter="indexed", start=10**9 - 1, count=100)] == ["999999999"]
    assert len(page(session, reference, filter="indexed", start=0, count=10**9)) == variables.LARGEST_PAGE
    assert asked == [(10**9 - 1, 1), (0, variables.LARGEST_PAGE)]
    tensor = session.references.add(variables.Tensor({"shape": [10**9], "dtype": "float32", "computed": True}))
    assert next(child for child in page(session, tensor) if child["name"] == "values")["indexedVariables"] == 10**9


def test_a_client_without_pages_is_told_how_many_elements_are_left_out():
    session, reference, asked = elements(5000, [5000], paging=False)
    shown = page(session, reference, start=4000, count=5)
    assert len(shown) == variables.UNPAGED + 1 and shown[-1] == {"name": "…", "value": "4000 more", "variablesReference": 0}
    assert asked == [(0, variables.UNPAGED)]


@pytest.mark.parametrize(("shape", "value", "count"), [([0], "no elements", 0), ([3, 0], "no elements", 0), ([], "[0…0]", 1)])
def test_tensors_of_no_element_and_of_no_axis_open(shape, value, count):
    session, *_ = elements(0, shape)
    tensor = session.references.add(variables.Tensor({"ref": 1, "shape": shape, "dtype": "float32", "computed": True}))
    values = next(child for child in page(session, tensor) if child["name"] == "values")
    assert (values["value"], values["indexedVariables"], bool(values["variablesReference"])) == (value, count, bool(count))
    if count:
        assert [entry["name"] for entry in page(session, values["variablesReference"])] == ["0"]


SCOPES = {**dict.fromkeys("12", "sudo sysctl kernel.yama.ptrace_scope=0"), "3": "until it starts anew", "0": ""}


@pytest.mark.parametrize("scope", SCOPES)
def test_what_the_system_forbids_to_attach_is_said_with_its_remedy(scope, monkeypatch):
    monkeypatch.setattr(attach, "sys", SimpleNamespace(platform="linux"))
    monkeypatch.setattr(attach, "_python_of", lambda pid: (3, 11))
    monkeypatch.setattr(attach, "tracer_of", lambda pid: 0)
    monkeypatch.setattr(attach, "_read", lambda path: scope + "\n")
    monkeypatch.setattr(attach.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(attach.shutil, "which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(attach.os, "geteuid", lambda: 1000, raising=False)
    if not SCOPES[scope]:
        return attach.check_injection(5, "has no door")
    with pytest.raises(RequestError) as refused:
        attach.check_injection(5, "has no door")
    text = str(refused.value)
    assert refused.value.show and text.startswith("process 5 has no door.") and f"{attach._PTRACE} is {scope}" in text
    assert SCOPES[scope] in text and "dvm.debug.listen" in text


@pytest.mark.parametrize(("what", "text"), [("_python_of", "is no Python program"), ("old", "needs Python 3.8, and it runs 3.7"),
                                            ("machine", "does not work on riscv64"), ("tracer", "end process 9 first")])
def test_what_cannot_be_injected_into_is_said(what, text, monkeypatch):
    monkeypatch.setattr(attach, "sys", SimpleNamespace(platform="linux"))
    monkeypatch.setattr(attach, "_python_of", lambda pid: {"_python_of": None, "old": (3, 7)}.get(what, (3, 11)))
    monkeypatch.setattr(attach, "tracer_of", lambda pid: 9 if what == "tracer" else 0)
    monkeypatch.setattr(attach.platform, "machine", lambda: "riscv64" if what == "machine" else "x86_64")
    with pytest.raises(RequestError, match=text):
        attach.check_injection(5, "has no door")
