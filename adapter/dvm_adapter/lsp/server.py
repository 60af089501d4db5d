"""The server itself: documents as they are typed, one analysis per version, answers from it."""
from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import watchfiles
from dvm_wire import lastrun
from lsprotocol import types as lsp
from pygls import uris
from pygls.lsp.server import LanguageServer

from . import diagnose, present
from .analysis import Analysis

log = logging.getLogger(__name__)
PAUSE = 0.15  # seconds without a keystroke before a text is looked at
_LARGEST = 2_000_000  # characters of a source that is looked at
T = TypeVar("T")


def _version() -> str:
    try:
        return importlib.metadata.version("dvm-live")
    except importlib.metadata.PackageNotFoundError:  # the copy that comes with the extension
        return "bundled"


class Server(LanguageServer):
    """pygls' server with what it knows of open documents."""

    def __init__(self) -> None:
        super().__init__("dvm-lsp", _version(), text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self._analyses: dict[str, asyncio.Task[Analysis | None]] = {}
        self._last: dict[str, Analysis] = {}  # the last one that was finished
        self._watching: asyncio.Task[None] | None = None

    # ---- analyses
    def changed(self, uri: str, pause: float = PAUSE) -> None:
        """A text is new: what was begun for the old one is given up."""
        old = self._analyses.pop(uri, None)
        if old is not None:
            old.cancel()
        self._analyses[uri] = asyncio.ensure_future(self._analyse(uri, pause))

    async def _analyse(self, uri: str, pause: float) -> Analysis | None:
        await asyncio.sleep(pause)
        document = self.workspace.get_text_document(uri)
        path = uris.to_fs_path(uri) or ""
        text, version = document.source, document.version
        if len(text) > _LARGEST or "\0" in text:
            return None
        try:
            found = await asyncio.to_thread(Analysis, path, text, self._last.get(uri))
            told = diagnose.diagnostics(found)
        except Exception:  # a fault of ours: the next text may do better
            log.exception("%s cannot be analysed", uri)
            return None
        self._last[uri] = found
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, told, version))
        return found

    async def analysis(self, uri: str) -> Analysis | None:
        """Of the text as it is now; None if it cannot be analysed. A newer text that comes in while one waits is waited for instead."""
        while (task := self._analyses.get(uri)) is not None:
            with contextlib.suppress(asyncio.CancelledError):
                return await asyncio.shield(task)
            if task is self._analyses.get(uri):  # we were cancelled, not the analysis
                raise asyncio.CancelledError
        return None

    def closed(self, uri: str) -> None:
        task = self._analyses.pop(uri, None)
        if task is not None:
            task.cancel()
        self._last.pop(uri, None)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    async def answer(self, uri: str, make: Callable[[Analysis], T], otherwise: T) -> T:
        found = await self.analysis(uri)
        return otherwise if found is None else make(found)

    # ---- the last run
    def watch(self) -> None:
        """From now on, what a run tells of open documents is taken over as it comes."""
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        try:
            await self._follow()
        except OSError as error:
            log.warning("runs are not followed, the last one is read when a document is opened: %s", error)

    async def _follow(self) -> None:
        folder = lastrun.folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        async for changes in watchfiles.awatch(folder, recursive=False, step=100):
            names = {Path(path).name for _, path in changes}
            stale = [uri for uri in self._analyses if lastrun.file_of(uris.to_fs_path(uri) or "").name in names]
            for uri in stale:
                self.changed(uri, 0)
            if stale:
                self._refresh()

    def _refresh(self) -> None:
        """The editor is to ask again, where it can be told so."""
        can = self.client_capabilities.workspace
        if can and can.inlay_hint and can.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if can and can.code_lens and can.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for task in self._analyses.values():
            task.cancel()


def make() -> Server:
    """A server with its features declared, not started yet."""
    server = Server()

    @server.feature(lsp.INITIALIZED)
    def initialized(_: Any) -> None:
        server.watch()

    @server.feature(lsp.SHUTDOWN)
    def shutdown(*_: Any) -> None:
        server.end()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def did_open(given: lsp.DidOpenTextDocumentParams) -> None:
        server.changed(given.text_document.uri, 0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(given: lsp.DidChangeTextDocumentParams) -> None:
        server.changed(given.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(given: lsp.DidCloseTextDocumentParams) -> None:
        server.closed(given.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(given: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        first, last = given.range.start.line, given.range.end.line
        return await server.answer(given.text_document.uri, lambda a: present.hints(a, first, last), [])

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(given: lsp.HoverParams) -> lsp.Hover | None:
        at = given.position
        return await server.answer(given.text_document.uri, lambda a: present.hover(a, at.line, at.character), None)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(given: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        return await server.answer(given.text_document.uri, present.lenses, [])

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbol(given: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        return await server.answer(given.text_document.uri, present.symbols, [])

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    async def code_action(given: lsp.CodeActionParams) -> list[lsp.Command]:
        first, last = given.range.start.line, given.range.end.line
        return await server.answer(given.text_document.uri, lambda a: present.actions(a, first, last), [])

    return server
