"""A program without tensors: the adapter must be as good as debugpy alone."""
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
import some
from dvm_adapter.config import STAND_IN
from harness import PROGRAMS, ROOT, environment, line_of

PLAIN = PROGRAMS / "plain.py"


def test_breakpoint_stack_variables_steps_and_the_end(session):
    line = line_of(PLAIN, "total = a + b")
    session.start(PLAIN, at=lambda client: client.set_breakpoints(str(PLAIN), [line]))
    session.stopped(reason="breakpoint", threadId=1, allThreadsStopped=True, hitBreakpointIds=[1])
    frames = session.stack(1)
    assert [frame["name"] for frame in frames] == ["add", "main", "<module>"]
    assert session.request("stackTrace", threadId=1, startFrame=1, levels=1)["stackFrames"][0]["name"] == "main"
    scopes = session.scopes(frames[0]["id"])
    local = {v["name"]: v["value"] for v in session.variables(scopes["Locals"]["variablesReference"])}
    assert local == {"a": "0", "b": "0"}
    session.request("setVariable", variablesReference=scopes["Locals"]["variablesReference"], name="b", value="100")
    assert session.request("evaluate", expression="a + b", frameId=frames[0]["id"], context="repl")["result"] == "100"
    assert session.request("completions", text="to", column=3, frameId=frames[0]["id"])["targets"] == []
    session.request("next", threadId=1)
    session.stopped(reason="step")
    assert session.stack(1)[0]["line"] == line + 1
    session.request("stepOut", threadId=1)
    session.stopped(reason="step")
    assert session.stack(1)[0]["name"] == "main"
    session.set_breakpoints(str(PLAIN), [])
    session.go_on()
    assert session.event("exited")["body"] == {"exitCode": 0}
    session.run_out()
    assert "result 106" in session.printed()


@pytest.mark.parametrize("without", [False, True])
def test_import_dvm_gives_what_is_installed_and_else_ours(session, without, tmp_path):
    (script := tmp_path / "script.py").write_text("import sys\nimport dvm\nprint(dvm.__name__, dvm.__file__, sys.modules['dvm'] is dvm)\n")
    if without:
        session.request("initialize", adapterID="dvm")
        session.request("launch", program=str(script), console="internalConsole", noDebug=True)
    else:
        session.start(script)
    session.run_out()
    assert session.printed().startswith("dvm_core ") and session.printed().rstrip().endswith("True")
    (real := tmp_path / "site").mkdir()
    (real / "dvm.py").write_text("")
    done = subprocess.run([sys.executable, str(script)], env={**environment(), "PYTHONPATH": os.pathsep.join([STAND_IN, str(real)])},
                          capture_output=True, text=True)
    assert done.stdout == f"dvm {real / 'dvm.py'} True\n", done.stderr
    (real / "dvm.py").write_text("1 / 0")
    code = "import sys\ntry: import dvm\nexcept ZeroDivisionError: print('dvm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env={**environment(), "PYTHONPATH": os.pathsep.join([STAND_IN, str(real)])},
                          capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_program_keeps_its_own_modules_before_those_that_the_extension_brings(adapter, tmp_path):
    bundled = tmp_path / "adapter"
    bundled.symlink_to(ROOT / "adapter")
    (script := tmp_path / "script.py").write_text("import os\nprint(os.environ.get('PYTHONPATH'), os.environ.get('DVM_BUNDLED'))\n")
    session = adapter({"PYTHONPATH": os.pathsep.join([str(bundled), "/mine"]), "DVM_BUNDLED": str(bundled)})
    session.start(script)
    session.run_out()
    assert session.printed() == "/mine None\n"


def test_the_response_to_a_run_request_comes_before_the_stop_it_leads_to(session):
    session.start(PLAIN, stopOnEntry=True)
    session.stopped(reason="entry")
    for _ in range(5):
        session.request("next", threadId=1)
        session.stopped(reason="step")
    said = [(m["type"], m.get("command") or m.get("event")) for m in session.log]
    kinds = [entry for entry in said if entry[1] in ("next", "stopped")]
    assert kinds == [("event", "stopped")] + [("response", "next"), ("event", "stopped")] * 5


def test_no_request_waits_for_an_acknowledgement_of_the_one_before(session):
    session.start(PLAIN, stopOnEntry=True)
    session.stopped()
    # Each would take the kernel's 40 ms without TCP_NODELAY (option 1 of level 6) on pydevd's socket.
    option = "__import__('pydevd').get_global_debugger().writer.sock.getsockopt(6, 1) != 0"
    assert session.request("evaluate", expression=option, context="repl")["result"] == "True"


def test_conditions_hit_counts_and_log_points(session):
    line = line_of(PLAIN, "total = a + b")
    answers = []
    session.start(PLAIN, at=lambda client: answers.extend(client.set_breakpoints(str(PLAIN), [
        {"line": line, "condition": "b == 2"}, {"line": line + 1, "logMessage": "total is {total}, {nope} at 50% of {{it}}"},
        {"line": line_of(PLAIN, "result = add"), "hitCondition": "=> 2"}, {"line": 9999, "condition": "False"},
        {"line": 2, "mode": "sideways"}, {"line": 2, "condition": "b >"}, {"line": 3, "hitCondition": "%0"},
        {"line": line_of(PLAIN, "result = 0"), "logMessage": "{len('}')} of {'{'}, {sorted({2: 3}.values())}"}])))
    assert [a["verified"] for a in answers] == [True, True, False, True, False, False, False, True]
    assert answers[5]["message"] == "the condition `b >` is not an expression: invalid syntax"
    assert answers[6]["message"] == some.containing("% at least 1")
    assert answers[2]["message"] == some.containing("hit count is a number") and "'=> 2'" in answers[2]["message"]
    assert answers[3]["line"] < 9999
    assert answers[4]["message"] == some.containing("forward, backward, both")
    session.stopped(reason="breakpoint")
    frame = session.stack(1)[0]
    assert session.request("evaluate", expression="b", frameId=frame["id"])["result"] == "2"
    session.set_breakpoints(str(PLAIN), [{"line": line_of(PLAIN, "result = add"), "hitCondition": "1"}])
    session.go_on()
    session.stopped(reason="breakpoint")
    session.go_on()
    session.run_out()
    logged = "".join(body["output"] for body in session.seen("output"))
    for total in (0, 1):  # what is wrong is said in its place
        assert f"total is {total}, <`nope`: name 'nope' is not defined> at 50% of {{it}}\n" in logged
    assert "1 of {, [3]\n" in logged


def test_breakpoint_ids_survive_a_resend_with_another_condition(session):
    line = line_of(PLAIN, "total = a + b")
    session.start(PLAIN, stopOnEntry=True)
    session.stopped()
    first = session.set_breakpoints(str(PLAIN), [line, line + 1])
    second = session.set_breakpoints(str(PLAIN), [{"line": line + 1, "condition": "False"}, line])
    assert [p["id"] for p in second] == [first[1]["id"], first[0]["id"]]
    assert session.request("setBreakpoints", source={}, breakpoints=[])["breakpoints"] == []


def test_hovers_run_no_code(session):
    line = line_of(PLAIN, "total = a + b")
    session.start(PLAIN, at=lambda client: client.set_breakpoints(str(PLAIN), [line]))
    session.stopped()
    frame = session.stack(1)[0]["id"]
    assert session.request("evaluate", expression="a + [b][0]", frameId=frame, context="hover")["result"] == "0"
    for code in ("print(a)", "(a := 5)", "[b for b in (1,)]", "a; b"):
        assert "hover does not run code" in session.refusal("evaluate", expression=code, frameId=frame, context="hover")
    assert session.request("evaluate", expression="abs(-3)", frameId=frame, context="repl")["result"] == "3"


def test_exceptions_stop_and_explain_themselves(session):
    def configure(client):
        body = client.request("setExceptionBreakpoints", filters=["uncaught", "nan", "nonsense"])
        assert [b["verified"] for b in body["breakpoints"]] == [True, True, False]

    session.start(PLAIN, args=["raise"], at=configure)
    session.stopped(reason="exception")
    info = session.request("exceptionInfo", threadId=1)
    assert info["exceptionId"] == some.containing("ValueError") and info["description"] == "on purpose"
    session.go_on()
    session.run_out()


def test_pause_reaches_a_running_program(session):
    session.start(PLAIN, args=["sleep"])
    session.event("output", where=lambda body: "ready" in body["output"])
    session.request("pause", threadId=1)
    # the main thread sleeps in native code; debugpy stops it when it comes back, so only the answer is certain here
    assert session.request("threads")["threads"]


def test_wrong_launches_fail_with_a_sentence(adapter):
    cases = [({"program": "/no/such/file.py"}, "does not exist: /no/such/file.py"),
             ({"program": str(PLAIN), "dvm": {"hotReload": "always"}}, "allowed: onSave, manual, off"),
             ({"program": str(PLAIN), "dvm": {"sampleEvery": 0}}, "must be at least 1"),
             ({"program": str(PLAIN), "dvm": {"snapshotTimeoutMs": 60001}}, "must be at most 60000"),
             ({"program": str(PLAIN), "dvm": {"devise": "cpu"}}, 'unknown setting "dvm.devise"'),
             ({"program": str(PLAIN), "dvm": {"device": "foo"}}, '"dvm.device" is \'foo\'; allowed: cpu, npu-sim:910b, npu-sim:950, '),
             ({"program": str(PLAIN), "env": ["A=1"]}, '"env" must be an object'),
             ({}, "program")]
    for arguments, words in cases:
        session = adapter()
        session.request("initialize", adapterID="dvm")
        assert words in session.refusal("launch", **arguments)
        assert session.request("dvm/status")["connected"] is False  # still answers


def test_order_and_unknown_requests_are_answered_cleanly(session):
    assert session.refusal("threads") == "threads before initialize"
    session.request("initialize", adapterID="dvm")
    assert "no program" in session.refusal("threads")
    assert "unknown request" in session.refusal("dvm/nothing")
    assert "twice" in session.refusal("initialize", adapterID="dvm")
    assert "attach needs" in session.refusal("attach")


def test_environment_arguments_cwd_and_module(session, tmp_path):
    folder = tmp_path / "Ordner mit ✓ & 'Anführung'"
    folder.mkdir()
    (folder / "späßchen.py").write_text("import os, sys\nprint(os.environ['GREETING'], sys.argv[1:], os.getcwd())\n", encoding="utf-8")
    session.launch(module="späßchen", args=["a b", "ü"], cwd=str(folder), env={"GREETING": "grüß", "PYTHONUTF8": "1"})
    session.run_out()
    assert session.printed().strip() == f"grüß ['a b', 'ü'] {folder}"


def test_breakpoints_bind_in_a_folder_with_an_odd_name(session, tmp_path):
    folder = tmp_path / "数据 ✓ & 'x' {y}"
    folder.mkdir()
    program = folder / "main.py"
    program.write_text("a = 1\nb = a + 1\nprint(b)\n", encoding="utf-8")
    session.launch(lambda client: client.set_breakpoints(str(program), [2]), program=str(program))
    session.stopped(reason="breakpoint")
    assert session.stack(1)[0]["source"]["path"] == str(program)


def test_without_a_terminal_the_output_comes_to_the_console(session):
    session.start(PLAIN, console="integratedTerminal")
    session.run_out()
    assert "result 6" in session.printed()
    assert any("no terminal" in body["output"] for body in session.seen("output"))


def test_integrated_terminal_runs_through_the_client_with_the_path_of_its_shell(session, tmp_path):
    (script := tmp_path / "script.py").write_text("import os\nimport dvm\nprint(dvm.__name__, os.environ['PYTHONPATH'])\n")
    shells = environment()["PYTHONPATH"] + os.pathsep + "/shell"
    started = []

    def run(request):
        if request["command"] != "runInTerminal":
            return {}
        arguments = request["arguments"]
        started.append(subprocess.Popen(arguments["args"], cwd=arguments["cwd"] or None, stdout=subprocess.PIPE, text=True,
                                        env={**environment(), **arguments.get("env", {}), "PYTHONPATH": shells}))
        return {"processId": started[0].pid}

    session.reverse = run
    session.launch(client_args={"supportsRunInTerminalRequest": True}, program=str(script), console="integratedTerminal")
    session.run_out()
    assert started[0].communicate(timeout=10)[0] == f"dvm_core {shells}\n"


def refuse_the_terminal(request):
    raise NotImplementedError("no terminal here")


def test_a_program_that_the_client_runs_in_no_terminal_runs_without_one(session):
    session.reverse = refuse_the_terminal
    line = line_of(PLAIN, "total = a + b")
    session.start(PLAIN, console="integratedTerminal", client_args={"supportsRunInTerminalRequest": True},
                  at=lambda client: client.set_breakpoints(str(PLAIN), [line]))
    session.stopped(reason="breakpoint", hitBreakpointIds=[1])
    session.set_breakpoints(str(PLAIN), [])
    session.go_on()
    session.run_out()
    assert "result 6" in session.printed()
    (said,) = [body["output"] for body in session.seen("output") if body.get("category") == "important"]
    assert "no terminal here" in said and "appears here instead" in said


def test_a_program_that_is_ended_before_it_began(session):
    """Stop pressed right behind start: both requests are answered."""
    session.request("initialize", adapterID="dvm")
    launched = session.begin("launch", program=str(PLAIN), args=["sleep"], console="internalConsole")
    session.request("terminate", timeout=60)
    session.event("terminated", timeout=60)
    assert launched.get(timeout=60)["message"] == "the program was ended before it began"


def test_a_flood_of_output_is_cut_and_said_so(session):
    begun = time.monotonic()
    session.start(PLAIN, args=["flood"])
    session.event("terminated", timeout=60)
    text = "".join(body["output"] for body in session.seen("output"))
    assert "line 0 of many" in text
    assert len(text) < (time.monotonic() - begun + 1) * (1 << 20)  # what is let through in each second
    assert "of output left out" in text or text.count("of many\n") == 80_000  # a busy machine may not manage a flood


def test_attach_to_a_listening_program(adapter):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = (f"import debugpy, time; debugpy.listen(('127.0.0.1', {port})); print('listening', flush=True); debugpy.wait_for_client()\n"
            "for i in range(500): time.sleep(.02)\n")
    program = subprocess.Popen([sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL)
    try:
        assert program.stdout.readline() == "listening\n"
        session = adapter()
        session.request("initialize", adapterID="dvm")
        attached = session.begin("attach", connect={"host": "127.0.0.1", "port": port})
        session.event("initialized")
        session.request("configurationDone")
        assert attached.get(timeout=10)["success"]
        session.request("pause", threadId=1)
        session.stopped(reason="pause")
        # frameless evaluate: the variables an agent looks for have been put into the program
        result = session.request("evaluate", expression="__import__('os').environ['DVM_AGENT']", context="repl")["result"]
        assert "127.0.0.1:" in result
        session.request("disconnect")
        session.close()
        time.sleep(0.3)
        assert program.poll() is None  # an attached program goes on
    finally:
        program.kill()
        program.wait()


def test_nothing_to_attach_to_is_said(session):
    session.request("initialize", adapterID="dvm")
    assert "nothing to attach to at 127.0.0.1:9" in session.refusal("attach", connect={"host": "127.0.0.1", "port": 9})


def test_the_adapter_serves_on_a_socket_too(tmp_path):
    from dvm_adapter.channel import MAX_MESSAGE

    assert MAX_MESSAGE
    process = subprocess.Popen([sys.executable, "-m", "dvm_adapter", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                               env=environment())
    try:
        host, port = process.stdout.readline().split()[-1].split(":")
        for _ in range(2):  # one session after the other
            with socket.create_connection((host, int(port)), 5) as connection:
                body = b'{"type": "request", "seq": 1, "command": "initialize", "arguments": {"adapterID": "dvm"}}'
                connection.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                assert b"supportsDisassembleRequest" in connection.recv(1 << 16)
    finally:
        process.terminate()
        assert process.wait(5) == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "example.org"])
def test_it_serves_this_machine_alone(host):
    process = subprocess.run([sys.executable, "-m", "dvm_adapter", "--listen", f"{host}:0"], capture_output=True, text=True, timeout=10,
                             stdin=subprocess.DEVNULL, env=environment())
    assert process.returncode == 2 and not process.stdout
    assert f"{host.strip('[]')} is not an address of this machine alone; use 127.0.0.1, ::1 or localhost" in process.stderr


@pytest.mark.parametrize("address, host", [(":7", "127.0.0.1"), ("localhost:7", "localhost"), ("[::1]:7", "::1"),
                                           ("127.0.0.2:7", "127.0.0.2")])
def test_addresses_of_this_machine(address, host):
    from dvm_adapter.__main__ import _address

    assert _address(address) == (host, 7)


@pytest.mark.parametrize("garbage", [b"hello\r\n\r\n", b"Content-Length: -5\r\n\r\n", b"Content-Length: 3\r\n\r\n[1]", b"\0" * 100_000])
def test_what_is_no_dap_ends_the_adapter(garbage):
    process = subprocess.Popen([sys.executable, "-m", "dvm_adapter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    out, _ = process.communicate(garbage, timeout=10)
    assert out == b"" and process.returncode == 0


def test_ctrl_c_does_not_end_the_adapter(session):
    session.request("initialize", adapterID="dvm")
    session.process.send_signal(signal.SIGINT)
    assert session.request("dvm/status")["connected"] is False
    assert session.process.poll() is None


def test_stray_prints_do_not_reach_the_protocol_stream():
    code = ("import os, sys, dvm_adapter.__main__ as m, dvm_adapter.session as s\n"
            "run = s.Session.run\n"
            "async def noisy(self):\n    print('stray'); os.write(1, b'stray'); await run(self)\n"
            "s.Session.run = noisy\nsys.exit(m.main([]))")
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment(), cwd=os.path.dirname(__file__))
    out, err = process.communicate(b"", timeout=10)
    assert out == b"" and b"stray" in err
