"""What a file says as data: the editor's viewer shows it, so it must agree with the text of `dvm dis`, whatever the file is."""

import hashlib
import json
import random

import pytest
from msbc_samples import F32, OP, chain, every_kind

from dvm_core import cli, msbc
from dvm_core.msbc import Code, Input, Instruction
from dvm_core.msbc.facts import facts


def test_a_program_without_instructions_has_none():
    data = msbc.dump(chain(1), sections=False)
    found = facts(data[:facts(data)["instructions"][0]["offset"]] + b"\0")
    assert found["instructions"] == [] and found["outputs"] == []


def test_facts_have_what_the_text_has():
    data = msbc.dump(every_kind())
    found = facts(data)
    text = msbc.disassemble(data)
    for item in found["instructions"]:
        assert f"{item['offset']:#08x}  {item['value']} = {item['text']} " in text
    ends = [item["offset"] + item["bytes"] for item in found["instructions"]]
    assert ends[:-1] == [item["offset"] for item in found["instructions"][1:]]
    assert data[ends[-1]] == 0  # the end of the stream
    assert found["sha256"] == hashlib.sha256(data).hexdigest()
    assert found["functionSha256"] == msbc.function_hash(data).hex()
    assert [item["sha256"] for item in found["instructions"]] == [part.hex() for part in msbc.instruction_hashes(data)]
    assert found["outputs"] == ["%12", "%3"]
    assert [item["constant"] for item in found["inputs"]] == [False, False, True]
    assert found["instructions"][2]["function"] == "step"
    assert found["instructions"][2]["backward"]
    assert sum(section["bytes"] for section in found["sections"]) < found["bytes"]


def test_areas_are_those_of_a_launch_and_nothing_runs():
    found = facts(msbc.dump(every_kind()))
    assert [(area["kind"], area["instructions"]) for area in found["areas"]] == [("vector", [0, 1, 2]), ("cube", [11])]
    huge = 1 << 19
    code = Code("huge", [Input(F32, (huge, huge))], [Instruction(OP["EXP"], (0,), (huge, huge), F32)], [1])
    assert [area["kind"] for area in facts(msbc.dump(code))["areas"]] == ["vector"]  # a terabyte: there is no memory for it


def test_a_file_whose_shapes_do_not_fit_is_shown_without_areas():
    code = Code("f", [Input(F32, (4,))], [Instruction(OP["EXP"], (0,), (5,), F32)], [1])
    found = facts(msbc.dump(code))
    assert found["areas"] == []
    assert "instruction 0 says [5], its operands give [4]" in found["areasRefused"]


def test_the_first_instructions_of_a_long_program():
    found = facts(msbc.dump(chain(300)), 7)
    assert (found["instructionCount"], len(found["instructions"])) == (300, 7)


def test_damaged_files_are_refused_with_offset_and_rule():
    data = bytearray(msbc.dump(every_kind()))
    draw = random.Random(5)
    refused = 0
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            broken[draw.randrange(len(broken))] = draw.randrange(256)
        try:
            json.dumps(facts(bytes(broken)), allow_nan=False)
        except msbc.MsbcError as error:
            assert error.rule
            refused += 1
    assert refused > 200


def test_the_command_writes_json_and_says_what_is_wrong(tmp_path, capsys):
    path = tmp_path / "größe.msbc"
    path.write_bytes(msbc.dump(chain(3)))
    assert cli.main(["dis", "--json", "--most", "2", str(path)]) == 0
    assert [item["op"] for item in json.loads(capsys.readouterr().out)["instructions"]] == ["ADD", "ADD"]
    path.write_bytes(path.read_bytes()[:-3])
    assert cli.main(["dis", "--json", str(path)]) == 1
    assert capsys.readouterr().err.startswith("dvm: MSBC: at offset ")


@pytest.mark.parametrize("words", [["--json", "x.py:f"], ["--json", "--passes", "x.msbc"]])
def test_json_goes_with_a_file_alone(words, capsys):
    assert cli.main(["dis", *words]) == 1
    assert "--json" in capsys.readouterr().err
