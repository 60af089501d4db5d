"""What is announced is served, and what is served needs what it says."""
import asyncio
import os
from types import SimpleNamespace

import dvm_adapter.session  # noqa: F401 - declares all requests
import pytest
from dvm_adapter import addresses, arguments, conditions, config, own_arguments, path_map, progress
from dvm_adapter.errors import RequestError
from dvm_adapter.evaluate import is_harmless
from dvm_adapter.references import FIRST, References
from dvm_adapter.registry import Needs, capabilities, request, requests
from dvm_wire import filters

# capability of the protocol -> the request that stands behind it
SERVED_BY = {
    "supportsConfigurationDoneRequest": "configurationDone", "supportsFunctionBreakpoints": "setFunctionBreakpoints",
    "supportsSetVariable": "setVariable", "supportsSetExpression": "setExpression", "supportsGotoTargetsRequest": "gotoTargets",
    "supportsStepInTargetsRequest": "stepInTargets", "supportsCompletionsRequest": "completions", "supportsModulesRequest": "modules",
    "supportsExceptionInfoRequest": "exceptionInfo", "supportsLoadedSourcesRequest": "loadedSources",
    "supportsTerminateRequest": "terminate",
    "supportsReadMemoryRequest": "readMemory", "supportsDisassembleRequest": "disassemble", "supportsCancelRequest": "cancel",
    "supportsInstructionBreakpoints": "setInstructionBreakpoints", "supportsRestartRequest": "restart",
    "supportsRestartFrame": "restartFrame",
    "supportsStepBack": "stepBack", "supportsDataBreakpoints": "setDataBreakpoints", "supportsWriteMemoryRequest": "writeMemory",
    "supportsTerminateThreadsRequest": "terminateThreads", "supportsBreakpointLocationsRequest": "breakpointLocations",
}


def test_every_announced_request_is_served_and_the_others_are_not_announced():
    for capability, command in SERVED_BY.items():
        assert (capability in capabilities) == (command in requests), capability


def test_debugpys_spelling_and_inventions_are_not_announced():
    assert capabilities["supportTerminateDebuggee"] is True
    assert not {"supportsTerminateDebuggee", "supportsDebuggerProperties"} & capabilities.keys()


def test_the_contracts_requests_are_there():
    for name in ("status", "watch", "unwatch", "tensor", "memory", "programs", "program", "reload", "undoReload", "device", "export",
                 "line", "breakInstruction"):
        assert f"dvm/{name}" in requests
    assert [f["filter"] for f in capabilities["exceptionBreakpointFilters"]] == [
        "raised", "uncaught", "userUnhandled", "nan", "inf", "overflow", "range", "zeros", "unchanged", "diverged"]
    assert [m["mode"] for m in capabilities["breakpointModes"]] == ["forward", "backward", "both"]


def test_declaring_twice_is_a_mistake():
    with pytest.raises(ValueError, match="declared twice"):
        request("threads", needs=Needs.NOTHING)(requests["threads"].handler)
    with pytest.raises(ValueError, match="declared twice"):
        request("other", supportsCancelRequest=True)(requests["threads"].handler)


def test_addresses_sort_like_instructions_and_come_back():
    texts = [addresses.address(program, index) for program in (1, 2, 300) for index in (-70_000, -1, 0, 1, 65_000)]
    assert texts == sorted(texts) and len(set(texts)) == len(texts)
    assert addresses.parse(addresses.address(300, -5)) == (300, -5)
    assert addresses.parse(addresses.address(3, 7), -2) == (3, 5)
    for wrong in ("", None, "x", "-0x5", "0x12"):
        with pytest.raises(RequestError):
            addresses.parse(wrong)


def test_references_die_with_their_stop_and_are_never_given_out_twice():
    references = References()
    first = references.add("a")
    assert first == FIRST and references.get(first, str) == "a"
    with pytest.raises(RequestError, match="no such"):
        references.get(first + 1, str)
    with pytest.raises(RequestError, match="no such"):
        references.get(first, int)
    references.clear()
    with pytest.raises(RequestError, match="earlier stop"):
        references.get(first, object)
    assert references.add("b") == first + 1
    for wrong in (None, "1", -1, 0):
        with pytest.raises(RequestError, match="no such"):
            references.get(wrong, object)


@pytest.mark.parametrize("text, harmless", [("a.b[0:2, c]", True), ("-a + b * 2 if c else d", True), ("f()", False), ("(a := 1)", False),
                                            ("[x for x in y]", False), ("lambda: 0", False), ("a = 1", False), ("", False),
                                            ("f'{g()}'", False),
                                            ("await x", False), ("(" * 500, False)])
def test_what_a_hover_may_contain(text, harmless):
    assert is_harmless(text) is harmless


@pytest.mark.parametrize(("command", "given", "why"), [
    ("view", {"watchId": [1]}, '"watchId" is [1]; it must be a whole number'), ("view", {"watchId": True}, '"watchId" is True'),
    ("view", {"watchId": 1.0}, '"watchId" is 1.0'), ("export", {"format": "npy", "path": "a\0b"}, "it must be the file's path"),
    ("export", {"format": "npy", "path": "\ud800"}, "it must be the file's path"), ("reload", {"path": ""}, "it must be the file's path"),
    ("watch", {"keep": []}, "a whole number of snapshots from 0 to 64"), ("watch", {"everyN": 0}, "a whole number of steps, at least 1"),
    ("line", {"path": "a.py", "line": -1}, '"line" is -1; it must be a whole number, at least 1'),
    ("line", {"path": "a.py", "line": None}, 'dvm/line without "line"'), ("unwatch", {}, 'dvm/unwatch without "watchId"'),
    ("compare", {"a": 1, "b": {}}, "an object that names a tensor"), ("compare", {"a": {"ref": 1.5}, "b": {}}, '"ref" is 1.5'),
    ("compare", {"a": {}, "b": {}, "tolerance": float("nan")}, "a number, at least 0"),
    ("view", {"axes": [1]}, "a list of two whole numbers"),
    ("memoryView", {"from": float("inf")}, "a count of instructions"), ("memory", {"html": "a\0"}, "true, or the file's path"),
])
def test_what_cannot_be_meant_by_a_request_of_ours_is_refused(command, given, why):
    with pytest.raises(RequestError) as refused:
        arguments.checked(f"dvm/{command}", given)
    assert why in str(refused.value)


def test_a_request_of_ours_loses_what_is_null_and_keeps_the_rest():
    given = {"a": {"watchId": 1, "snapshot": None}, "b": {"data": "", "dtype": "float32", "shape": [0]}, "tolerance": 1, "other": "x",
             "rows": None}
    assert arguments.checked("dvm/compare", given) == {"a": {"watchId": 1}, "b": given["b"], "tolerance": 1, "other": "x"}
    assert set().union(*own_arguments.REQUIRED.values()) <= own_arguments.ARGUMENTS.keys()


def test_settings_have_defaults_and_limits():
    assert config.read_settings(None) == {"device": "cpu", "capture": "breakpoint", "sampleEvery": 100, "snapshotMaxBytes": 1 << 20,
                                          "snapshotTimeoutMs": 100, "hotReload": "onSave", "holdRanks": False, "compareRanks": []}
    assert config.read_settings({"hotReload": "off"})["hotReload"] == "off"
    assert config.read_settings({"compareRanks": ["w", "self.w", "grad(w.x)"]})["compareRanks"] == ["w", "self.w", "grad(w.x)"]
    for device in ("npu-sim:950", "npu-sim:910b:faithful", "ascend:3", *config.DEVICES.replace("ascend:N", "ascend:0").split(", ")):
        assert config.read_settings({"device": device})["device"] == device
    for wrong in ({"device": "foo"}, {"device": "npu-sim:911"}, {"device": "ascend:"}, {"device": "cpu "}, {"hotReload": "on"},
                  {"sampleEvery": True}, {"sampleEvery": "3"}, {"snapshotMaxBytes": -1}, {"other": 1}, [1],
                  {"holdRanks": 1}, {"compareRanks": "w"}, {"compareRanks": ["w", "w + 1"]}, {"compareRanks": ["grad(w"]}):
        with pytest.raises(RequestError):
            config.read_settings(wrong)


@pytest.mark.parametrize(("text", "why"), [
    ("", ""), ("abs_max > 10 every 5", ""), ("every 5", ""), (" 'attn' in name ", ""), ("foo >", "is not an expression: invalid syntax"),
    ("foo > every 5", "`foo >` is not an expression"), ("x = 3", "is not an expression"), ("(" * 500, "is not an expression"),
    ("sqrt(abs_max) > 2", ""), ("loss > 3", "no `loss` here; a condition is over count, zeros"), ("open('x')", "no `open` here"),
    ("against cpu", "only the filter 'diverged' compares"), ("> 3", "is not an expression"), ("max > 3 every 0", "every 0"),
    ("x" * 3000, "at most 2,000"),
])
def test_what_is_no_condition_of_a_filter_is_said_before_a_program_runs(text, why):
    assert why in conditions.wrong_filter("range", text) if why else not conditions.wrong_filter("range", text)


@pytest.mark.parametrize(("text", "against", "said", "every"), [
    ("", "float64", "error > 1e-3 + 16 * eps", 1), ("> 1e-2", "float64", "error > 1e-2", 1), ("against fused", "fused", "error > 0", 1),
    ("against unfused >= 0.1 every 3", "fused", "error >= 0.1", 3),
    ("against cpu and gradient", "cpu", "error > 1e-3 + 16 * eps and (gradient)", 1),
    ("against npu-sim:910b:faithful > 1e-3 and gradient", "npu-sim:910b:faithful", "error > 1e-3 and gradient", 1),
    ("op == 'EXP'", "float64", "error > 1e-3 + 16 * eps and (op == 'EXP')", 1), ("error > 2", "float64", "error > 2", 1),
    ("against float64, error > eps", "float64", "error > eps", 1), ("against cpu>1", "cpu", "error >1", 1),
])
def test_what_diverged_compares_with_is_said_in_its_condition(text, against, said, every):
    found = filters.read("diverged", text)
    assert (found.against, found.said, found.every) == (against, said, every)


@pytest.mark.parametrize("text", ["against", "against > 3", "against cpu loss", "againstcpu", "against cpu every 0"])
def test_a_comparison_with_nothing_is_refused(text):
    with pytest.raises(filters.WrongFilter):
        filters.read("diverged", text)


@pytest.mark.parametrize(("sent", "bundled", "no_debug", "path"), [
    ({"env": {}}, "/x/adapter", False, "/mine"), ({"env": {}}, "/x/adapter", True, os.pathsep.join(["/mine", config.STAND_IN])),
    ({"env": {}}, None, False, ...), ({"env": {"PYTHONPATH": "/y"}}, "/x/adapter", False, "/y"),
    ({"env": {"PYTHONPATH": "/x/adapter"}}, "/x/adapter", False, None),
    ({"env": {}, "console": "integratedTerminal"}, "/x/adapter", True, ...)])
def test_a_program_gets_the_path_without_the_extensions_folder_and_a_terminals_its_shells(sent, bundled, no_debug, path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/x/adapter", "/mine"]))
    monkeypatch.setenv("DVM_BUNDLED", bundled) if bundled else monkeypatch.delenv("DVM_BUNDLED", raising=False)
    config.own_path(sent, no_debug)
    assert sent["env"].get("PYTHONPATH", ...) == path and sent["env"].get("DVM_BUNDLED") is None


def test_what_goes_to_debugpy_is_its_own_and_never_its_reload():
    launch = config.Config.read("launch", {"program": "x.py", "pythonPath": "/py", "autoReload": {"enable": True}, "dvm": {},
                                           "env": {"A": "1"}})
    sent = config.for_debugpy(launch, config.environment_for(launch, "127.0.0.1:5", "secret"))
    assert sent["onTerminate"] == "KeyboardInterrupt"
    for given, kept in (({"onTerminate": "kill"}, "kill"), ({"noDebug": True}, None)):  # nobody is in the program to interrupt it
        config_of = config.Config.read("launch", {"program": "x.py", **given})
        assert config.for_debugpy(config_of, {}).get("onTerminate") == kept
    assert sent["autoReload"] == {"enable": False} and "dvm" not in sent and sent["python"] == ["/py"] and sent["type"] == "python"
    assert sent["env"] == {"A": "1", "DVM_AGENT": "127.0.0.1:5", "DVM_TOKEN": "secret", "DVM_LAUNCHED": "1", "DVM_DEVICE": "cpu"}
    attach = config.Config.read("attach", {"connect": {"port": "77"}})
    assert attach.connect == ("127.0.0.1", 77) and "env" not in config.for_debugpy(attach, {"DVM_AGENT": "x"})
    for wrong in ({}, {"connect": {"port": 0}}, {"connect": 5}, {"connect": {"host": "h"}}):
        with pytest.raises(RequestError):
            config.Config.read("attach", wrong)


def test_long_work_is_told_of_while_it_goes_on(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(progress, "UPDATE", 0)
    told = []

    async def long(command):
        enough = asyncio.Event()

        def event(name, body):
            told.append((name, body))
            if len(told) % 4 == 3:
                enough.set()

        session = SimpleNamespace(client_arguments={"supportsProgressReporting": True}, event=event)
        with progress.Progress(session, command, 7):
            await enough.wait()
        await asyncio.sleep(0.01)  # nothing comes after the end

    for command in ("evaluate", "dvm/reload", "attach"):
        asyncio.run(long(command))
    assert [name for name, _ in told] == ["progressStart", "progressUpdate", "progressUpdate", "progressEnd"] * 3
    assert all(body["progressId"] == "dvm-7" for _, body in told)
    assert [told[1][1]["message"], told[5][1]["message"]] == ["0 s", "new code is built, and waits for the next captured call, 0 s"]
    assert "message" not in told[0][1] and told[4][1]["message"] == "new code is built, and waits for the next captured call"
    assert (told[8][1]["title"], told[8][1]["message"][:31]) == ("Attaching", "the program lets the debugger i")


ROOTS = [{"localRoot": "/project/src/", "remoteRoot": "/app"}, {"localRoot": "/project/src/lib", "remoteRoot": "/usr/lib/mine"},
         {"localRoot": "c:\\code", "remoteRoot": "/code"}, {"localRoot": "/here", "remoteRoot": "."}]


@pytest.mark.parametrize(("client", "program"), [
    ("/project/src/a.py", "/app/a.py"), ("/project/src/lib/b.py", "/usr/lib/mine/b.py"), ("/project/srcs/a.py", "/project/srcs/a.py"),
    ("C:\\code\\x\\a.py", "/code/x/a.py"), ("c:/code/a.py", "/code/a.py"), ("/here/a.py", "/run/a.py"), ("/project/src", "/app"),
    ("", ""), ("/elsewhere.py", "/elsewhere.py"), ("/project/src//a.py", "/app/a.py")])
def test_paths_of_the_client_and_of_the_program_lead_to_each_other(client, program):
    """Whole folders, the longest first, slashes of either kind, a drive's letter of either case, separators at the end or none."""
    paths = path_map.PathMap(path_map.read(ROOTS), "/run/")
    assert paths.to_program(client) == program
    back = paths.to_client(program)
    assert back.replace("\\", "/").lower() == client.replace("\\", "/").replace("//", "/").lower()
    message = {"lines": [{"path": client, "line": 1}], "text": client, "place": {"file": client}}
    assert paths.message_to_program(message) == {"lines": [{"path": program, "line": 1}], "text": client, "place": {"file": program}}


def test_mappings_that_cannot_be_meant_are_refused_and_debugpy_gets_them_without_separators():
    for wrong in ({}, [1], [{"localRoot": "/a"}], [{"localRoot": "", "remoteRoot": "/b"}]):
        with pytest.raises(RequestError, match="pathMappings"):
            config.Config.read("launch", {"program": "x.py", "pathMappings": wrong})
    launch = config.Config.read("launch", {"program": "x.py", "pathMappings": [{"localRoot": "/a/", "remoteRoot": "/b\\"}]})
    assert config.for_debugpy(launch, {})["pathMappings"] == [{"localRoot": "/a", "remoteRoot": "/b"}]
    assert not path_map.PathMap(path_map.read([{"localRoot": "/a", "remoteRoot": "."}]))  # not known where the program stands
