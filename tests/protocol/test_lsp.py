"""The language server over its real protocol: pygls' own client, a process of its own, sources as editors send them."""
from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from dvm_wire import lastrun
from lsprotocol import types as lsp
from pygls.lsp.client import BaseLanguageClient

SOURCE = '''import dvm_core as dvm

@dvm.jit
def loss(x: "f32[B, 8]", w: "f32[8, 4]"):
    h = x @ w
    y = (h - h.mean(-1, True)).tanh()
    return y.sum()
'''
RUN = SOURCE + '''
import numpy as np
w = dvm.tensor(np.ones((8, 4), np.float32))
for n in (2, 5, 7):
    float(loss(dvm.tensor(np.ones((n, 8), np.float32)), w))
'''


class Client(BaseLanguageClient):
    """An editor: keeps what it is told."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.diagnostics: dict[str, lsp.PublishDiagnosticsParams] = {}
        self.told = asyncio.Event()
        self.refreshed = asyncio.Event()
        self.synchronises: Any = None

        @self.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(given: lsp.PublishDiagnosticsParams) -> None:
            self.diagnostics[given.uri] = given
            self.told.set()

        @self.feature(lsp.WORKSPACE_INLAY_HINT_REFRESH)
        def refresh(_: Any) -> None:
            self.refreshed.set()

        @self.feature(lsp.WORKSPACE_CODE_LENS_REFRESH)
        def lenses(_: Any) -> None:
            return None

    async def open(self, path: Path, text: str) -> str:
        uri = path.as_uri()
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text)))
        return uri

    def change(self, uri: str, version: int, text: str) -> None:
        self.text_document_did_change(lsp.DidChangeTextDocumentParams(
            lsp.VersionedTextDocumentIdentifier(version, uri), [lsp.TextDocumentContentChangeWholeDocument(text)]))

    async def hints(self, uri: str) -> dict[tuple[int, int], str]:
        whole = lsp.Range(lsp.Position(0, 0), lsp.Position(10_000, 0))
        found = await self.text_document_inlay_hint_async(lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), whole))
        return {(h.position.line, h.position.character): str(h.label) for h in found or []}

    async def hover(self, uri: str, line: int, column: int) -> str:
        at = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(line, column))
        found = await self.text_document_hover_async(at)
        return found.contents.value if found and isinstance(found.contents, lsp.MarkupContent) else ""

    async def until(self, uri: str, holds: Callable[[list[lsp.Diagnostic]], bool]) -> list[lsp.Diagnostic]:
        while uri not in self.diagnostics or not holds(list(self.diagnostics[uri].diagnostics)):
            self.told.clear()
            await self.told.wait()
        return list(self.diagnostics[uri].diagnostics)


async def _served(what: Callable[[Client], Awaitable[None]]) -> None:
    client = Client()
    await client.start_io(sys.executable, "-m", "dvm_adapter.lsp")
    support = lsp.WorkspaceClientCapabilities(inlay_hint=lsp.InlayHintWorkspaceClientCapabilities(refresh_support=True),
                                              code_lens=lsp.CodeLensWorkspaceClientCapabilities(refresh_support=True))
    told = await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities(workspace=support)))
    client.synchronises = getattr(told.capabilities.text_document_sync, "change", told.capabilities.text_document_sync)
    client.initialized(lsp.InitializedParams())
    try:
        await asyncio.wait_for(what(client), 60)
    finally:
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()


def serve(what: Callable[[Client], Awaitable[None]]) -> None:
    asyncio.run(_served(what))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DVM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    process = subprocess.run([sys.executable, "-m", "dvm_core.cli", "run", str(path)], env=dict(os.environ), check=False,
                                           capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


def test_before_a_run_the_source_tells(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "train.py", SOURCE)
        assert await client.hints(uri) == {(4, 5): ": f32[B,4]", (5, 5): ": f32[B,4]"}
        assert await client.hover(uri, 4, 9) == ""

    serve(check)


def test_after_a_run_it_is_what_ran(tmp_path: Path) -> None:
    run(tmp_path / "train.py", RUN)

    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "train.py", RUN)
        hints = await client.hints(uri)
        assert hints[4, 5] == ": f32[s0,4]"
        text = await client.hover(uri, 4, 9)
        assert "**`h: f32[s0,4]`** (MATMUL)" in text and "s0 = 2 to 7" in text and "fused with line 6" in text
        lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(lsp.TextDocumentIdentifier(uri)))
        titles = {lens.range.start.line: lens.command.title for lens in lenses or [] if lens.command}
        assert "3 launches in the last run" in titles[3]
        assert set(titles) > {3} and all("%" in title for line, title in titles.items() if line != 3)
        symbols = await client.text_document_document_symbol_async(lsp.DocumentSymbolParams(lsp.TextDocumentIdentifier(uri)))
        function = next(s for s in symbols or [] if isinstance(s, lsp.DocumentSymbol))
        assert function.name == "loss" and [(c.name, c.detail) for c in function.children or []] == [("h", "f32[s0,4]"), ("y", "f32[s0,4]")]

    serve(check)


def test_functions_that_captured_ones_call_are_shown_once_they_ran(tmp_path: Path) -> None:
    outer = "@dvm.jit\ndef outer(x, w):\n    return loss(x, w)\nw = dvm"
    text = RUN.replace("@dvm.jit\n", "").replace("float(loss(", "float(outer(").replace("w = dvm", outer).replace(': "f32[B, 8]"', "")

    async def check(client: Client) -> None:
        path = tmp_path / "train.py"
        uri = await client.open(path, text)
        assert await client.hints(uri) == {}
        await asyncio.to_thread(run, path, text)
        await client.refreshed.wait()
        assert (await client.hints(uri)) == {(3, 5): ": f32[s0,4]", (4, 5): ": f32[s0,4]"}

    serve(check)


def test_a_run_is_taken_over_while_the_document_is_open(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        path = tmp_path / "train.py"
        uri = await client.open(path, RUN)
        assert (await client.hints(uri))[4, 5] == ": f32[B,4]"
        await asyncio.to_thread(run, path, RUN)
        await client.refreshed.wait()
        assert (await client.hints(uri))[4, 5] == ": f32[s0,4]"

    serve(check)


def test_lines_that_moved_keep_what_ran_and_changed_ones_do_not(tmp_path: Path) -> None:
    run(tmp_path / "train.py", RUN)

    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "train.py", RUN)
        client.change(uri, 2, "# one more line\n" + RUN.replace("h = x @ w", "h = (x * 2) @ w"))
        hints = await client.hints(uri)
        assert hints[5, 5] == ": f32[B,4]"  # changed: what the source tells
        assert hints[6, 5] == ": f32[s0,4]"  # moved

    serve(check)


def test_a_broken_text_keeps_its_hints_and_a_closed_one_its_peace(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "train.py", SOURCE)
        before = await client.hints(uri)
        client.change(uri, 2, SOURCE.replace("return y.sum()", "return y.sum("))
        assert await client.hints(uri) == before
        client.change(uri, 3, SOURCE.replace("x @ w", "w @ w"))
        (found,) = await client.until(uri, lambda d: len(d) == 1)
        assert found.code == "shape" and "8 rows" in found.message and (found.range.start.line, found.range.start.character) == (4, 8)
        client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))
        assert await client.until(uri, lambda d: not d) == []
        assert await client.hints(uri) == {}

    serve(check)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_columns_count_utf_16_units(tmp_path: Path, newline: str) -> None:
    lines = ['import dvm_core as dvm', '@dvm.jit', 'def f(x: "f32[2, 3]"):', '    "😀"; 高さ = x.T; z = 高さ @ 高さ', '    return 高さ', '']
    text = newline.join(lines)

    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "数.py", text)
        assert await client.hints(uri) == {(3, 12): ": f32[3,2]"}
        (found,) = await client.until(uri, lambda d: len(d) == 1)
        assert (found.range.start.character, found.range.end.character) == (24, 31)

    serve(check)


def test_a_new_text_overtakes_a_request_and_a_cancelled_one_is_answered(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "train.py", SOURCE)
        await client.hints(uri)
        for version in range(2, 60):
            client.change(uri, version, SOURCE + "# typed\n" * version)
        last = asyncio.ensure_future(client.hints(uri))
        client.change(uri, 60, SOURCE.replace("    h =", "    g = x\n    h ="))
        assert await last == {(4, 5): ": f32[B,8]", (5, 5): ": f32[B,4]", (6, 5): ": f32[B,4]"}

    serve(check)


def test_actions_name_what_is_assigned(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "train.py", SOURCE)
        here = lsp.Range(lsp.Position(4, 0), lsp.Position(4, 0))
        found = await client.text_document_code_action_async(
            lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), here, lsp.CodeActionContext([])))
        told = [(a.title, a.command, list(a.arguments or ())) for a in found or [] if isinstance(a, lsp.Command)]
        path = str(tmp_path / "train.py")
        assert told == [("Watch h", "dvm.watch.addAt", [path, 5, "h"]),
                        ("Stop when h is not finite", "dvm.breakOnNotFinite", [path, 5, "h"])]

    serve(check)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"version": 1}', b"\xff\xfe", b"[" * 100_000,
                                  b'{"version": 1, "path": "P", "values": [{"op": 3}], "texts": {"x": 1}, "functions": 3, "notices": [0]}'])
def test_a_file_that_is_no_run_is_passed_over(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    file = lastrun.file_of(str(path))
    file.parent.mkdir(parents=True)
    file.write_bytes(data.replace(b'"P"', f'"{path}"'.encode()))
    assert lastrun.load(str(path)) in (None, {"texts": {}, "values": [], "functions": [], "notices": []})


HAZARD = '''import dvm_core as dvm
@dvm.jit
def f(x):
    head = x[0:2]
    x[0] = 1
    y = head + 1
    {last}
    return y
'''


def test_a_view_read_after_a_write_is_warned_of(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        uri = await client.open(tmp_path / "a.py", HAZARD.format(last="z = head"))
        (found,) = await client.until(uri, bool)
        assert found.code == "in-place" and found.range.start.line == 5 and "line 5" in found.message
        quiet = await client.open(tmp_path / "b.py", HAZARD.replace("x[0:2]", "x[0:2].copy()").format(last="z = head"))
        assert await client.until(quiet, lambda d: True) == []

    serve(check)


def test_an_edit_behind_what_is_no_end_of_a_line_is_made_where_the_editor_made_it(tmp_path: Path) -> None:
    async def check(client: Client) -> None:
        assert client.synchronises == lsp.TextDocumentSyncKind.Full  # by ranges the library takes these for ends of lines
        for number, odd in enumerate(("\u2028", "\x0c", "\x85", "\x1d")):
            text = SOURCE.replace("@dvm.jit", f"# one {odd} line\n@dvm.jit")
            uri = await client.open(tmp_path / f"train{number}.py", text)
            assert await client.hints(uri) == {(5, 5): ": f32[B,4]", (6, 5): ": f32[B,4]"}
            client.change(uri, 2, text.replace("    h =", "    g = x\n    h ="))
            assert await client.hints(uri) == {(5, 5): ": f32[B,8]", (6, 5): ": f32[B,4]", (7, 5): ": f32[B,4]"}

    serve(check)
