"""codegen with pass names, run types that only make code, lines as tools read them."""

import itertools
import re

import numpy as np
import pytest
from dvm_kit import make, one

import dvm_core as dvm
from dvm_core.frontends.builder_kinds import PASSES
from dvm_core.tester import Tester


@pytest.mark.parametrize("names", [(), *((name,) for name in PASSES), PASSES], ids=str)
def test_no_pass_changes_a_bit(names):
    (x, w), (y, v) = make((33, 65)), make((65,), seed=1)
    found = []
    for passes in ((), names):
        t = Tester("vector")
        t.set_passes(*passes)
        a, b = t.load(x), t.load(y)
        c = t.reshape(t.reshape(t.exp(t.add(a, b)), [65, 33]), [33, 65])
        store = t.expect(t.store(t.div(c, t.sum(c, [1], True))), np.exp(w + v) / np.exp(w + v).sum(1, keepdims=True))
        t.run_check()
        found.append(t.output(store).tobytes())
    assert found[0] == found[1]
    one("vector", lambda t, a: t.abs(a), np.abs(w), x)


def test_a_pass_that_does_not_exist():
    t = Tester("vector")
    t.store(t.exp(t.load([3], "float32")))
    with pytest.raises(dvm.ArgumentError, match="there is no pass ReorderLoads; there are PrintPeakLive, "):
        t.codegen(["ReorderLoads"])


def graph_names(text):
    return re.findall(r"= (\w+)(?:<[^>]*>)?\(", text)


def test_dead_code_is_gone_with_or_without_its_pass():
    for passes in ([], ["DeadCodeEliminate"]):
        t = Tester("vector")
        a, b = t.load([33, 65], "float32"), t.load([33, 65], "float32")
        t.sqrt(t.sqrt(b))
        t.store(t.add(t.sqrt(a), 1.0))
        assert graph_names(t.dump()) == ["Load", "Load", "Sqrt", "Sqrt", "Sqrt", "Add", "Store"]
        t.codegen(passes)
        assert graph_names(t.dump()) == ["Load", "Sqrt", "Add", "Store"]
        assert t.das().count("load.") == 1


def test_a_reshape_is_no_instruction():
    t = Tester("vector")
    t.store(t.exp(t.reshape(t.load([6, 35], "float32"), [2, 105])))
    t.codegen(["EliminateReshape"])
    assert "Reshape" not in t.das() and "Exp.fp32" in t.das()


def test_a_load_is_stored_by_one_copy():
    t = Tester("vector")
    t.store(t.load([33, 65], "float32"))
    t.codegen(["VectorDoubleBuffer"])
    assert t.dump().count("Copy") == 1


def peak(capsys, body):
    t = Tester("vector")
    body(t)
    capsys.readouterr()
    t.codegen(["PrintPeakLive"])
    text = capsys.readouterr().out
    assert re.fullmatch(r"(area \d+: peak live \d+ bytes of UB\n)+", text)
    return sum(int(number) for number in re.findall(r"(\d+) bytes", text))


def test_the_peak_is_what_lives_at_once_not_what_was_written(capsys):
    def chain(t):
        value = t.load([64, 1024], "float32")
        for _ in range(30):
            value = t.exp(t.mul(value, 0.1))
        t.store(value)

    def fan(t):
        a = t.load([64, 1024], "float32")
        values = [t.exp(t.mul(a, 0.1 * i)) for i in range(12)]
        total = values.pop()
        while values:
            total = t.div(total, values.pop(0))
        t.store(total)

    assert peak(capsys, chain) < peak(capsys, fan)


def test_ub_addresses_stay_in_the_ub_that_is_named():
    t = Tester("vector")
    a, b = t.load([64, 1000], "float32"), t.load([1000], "float32")
    c = t.exp(t.add(a, b))
    t.store(t.div(c, t.sum(c, [1], True)))
    t.store(t.select(t.greater(a, 0.0), c, b))
    text = t.das()
    sections = re.split(r"(?m)^// target=", text)[1:]
    for section in sections:
        found = re.search(r"ub=(\d+)", section)
        if found is None:  # nothing of this area is in the UB
            continue
        limit = int(found.group(1))
        assert all(int(address, 16) < max(limit, 1) for address in re.findall(r"0x([0-9a-f]+)", section))


@pytest.mark.parametrize("run_type", ["das", "dry"])
def test_run_types_that_only_make_code(run_type, capsys):
    k = dvm.Kernel("vector", run_type)
    a = k.load([32, 64], "float32")
    out = k.store(k.view_load([32, 64], [1, 32], "float32"))
    gaps = k.view_store(k.exp(a), [128, 2])
    base = np.full((32, 128), 7, np.float32)
    k.set_output(gaps, base)
    k.codegen()
    k.run()
    assert "Exp.fp32" in k.das() and (base == 7).all()
    with pytest.raises(dvm.ArgumentError, match=f"run type '{run_type}' makes code and computes nothing"):
        k.output(out)
    k.dry_run(0)
    assert capsys.readouterr().out == k.das()
    with pytest.raises(dvm.ArgumentError, match="core 4096 of"):
        k.dry_run(4096)


def test_lines_of_the_texts_are_as_tools_read_them():
    t = Tester("split")
    a, b = t.load([32, 512], "float32"), t.load([32, 512], "float32")
    t.store(t.sum(t.add(t.add(a, b), 0.1), [1], True))
    before = t.dump().splitlines()
    assert before[0] == "rgraph.split() {" and before[-1] == "}"
    assert before[3] == "  %2[-1]<float32> = Add(%0[32,512]<float32>, %1[32,512]<float32>)"
    t.codegen()
    after = t.dump().splitlines()
    assert re.fullmatch(r"vgraph\(tile_num=\d+\) \{", after[0]) and after[-1] == "}"
    assert after[1:3] == [f"  %{i}[512,32]<float32> = Load()" for i in (0, 1)]
    assert after[4] == "  %3[512,32]<float32> = Add<0.1>(%2[512,32]<float32>) // stride=[1, 512]"
    assert re.match(rf"// target={dvm.device()}, block_dim=\d+", t.das()) and t.das().endswith("}\n")
    assert after[-2] == "  %4[1,32]<float32> = Store(%4[1,32]<float32>)"
    inputs = [re.findall(r"%(\d+)\[", line.split(" = ")[1]) for line in itertools.chain(before, after) if " = " in line]
    assert ["0", "1"] in inputs
