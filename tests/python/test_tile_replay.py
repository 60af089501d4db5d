"""An area gone through by tile instructions: the same code, tile after tile, with the bits of the launch."""
import numpy as np
import pytest
from core_kit import arange, softmax
from core_programs import Program, run, same_bits
from random_programs import random_program

import dvm_core as dvm
from dvm_core import _core

X = arange(300, 40)


@pytest.fixture(autouse=True)
def as_before():
    yield
    _core.set_measure(0)
    _core.set_stop_handler(None)
    _core.set_tile_elements(0)
    dvm.set_device("cpu")


def at_a_launch(work, look):
    """look(launch) from the stop handler of a launch that has run; what it raises is raised here."""
    told = []

    def handler(launch, instruction, reason, hooks):
        told.append(look(launch))

    _core.set_measure(1)
    _core.set_stop_handler(handler)
    try:
        work()
    finally:
        _core.set_measure(0)
        _core.set_stop_handler(None)
    return told


def lines_of(text):
    """Instruction lines of the area's tiles, by number."""
    body = text.rpartition("tile:\n")[2].splitlines()
    return {int(line.partition(":")[0]): line for line in body if line.partition(":")[0].isdecimal()}


@pytest.mark.parametrize("device", ["cpu", "npu-sim:910b", "npu-sim:950:faithful"])
@pytest.mark.parametrize("elements", [0, 400])
def test_every_tile_makes_its_part_of_the_results(device, elements):
    dvm.set_device(device)
    _core.set_tile_elements(elements)

    def look(launch):
        program = launch.program
        unfused = [launch.rerun(unfused=True).array(1 + i) for i in range(len(program.instructions))]
        (area,) = program.fused_areas()
        replay, lines = launch.tile_replay(area.index), lines_of(program.fused_tile_text(area.index))
        seen, tiles = [], set()
        while not replay.done:
            line, tile, instruction = replay.line, replay.tile, replay.instruction
            row, rows, col, cols = replay.place
            assert lines[line].endswith(f"; %{instruction}") or "strip" in lines[line]
            replay.step()
            tiles.add(tile)
            made = [m for m in replay.made() if m[0] >= line] if replay.tile == tile and not replay.done else []
            for number, of, values, _dtype, local in made:
                whole = unfused[of]
                if "load" in lines[number] or values.shape != (rows, min(cols, whole.shape[1])) or "MaxX" in lines[number]:
                    continue
                seen.append(of)
                assert same_bits(values, whole[row:row + rows, col:col + cols]), lines[number]
                assert local or "g" in lines[number]
        assert tiles == set(range(replay.tiles)) and (elements == 0 or len(tiles) > 1)
        assert replay.instruction == -1
        replay.step()  # past the end there is nothing to do
        return set(seen)

    (seen,) = at_a_launch(lambda: softmax(X), look)
    assert {2, 3} <= seen  # the difference stays in vector registers where a strip makes it


@pytest.mark.parametrize("device", ["cpu", "npu-sim:910b"])
def test_areas_of_random_programs_are_gone_through_to_the_end(device):
    dvm.set_device(device)
    stepped = 0
    for seed in range(40):
        program = random_program(seed)
        made = list(range(len(program.inputs), len(program.inputs) + len(program.steps)))

        def look(launch):
            before = [launch.array(v) for v in range(launch.program.input_count + len(launch.program.instructions))]
            copies = [None if a is None else a.copy() for a in before]
            steps = 0
            for area in launch.program.fused_areas():
                try:
                    replay = launch.tile_replay(area.index)
                except _core.Error as error:
                    assert "moves data" in str(error)
                    continue
                while not replay.done and steps < 20000:
                    for _line, _of, values, _dtype, _local in replay.made()[:3]:
                        assert values.ndim == 2
                    replay.step()
                    steps += 1
            assert all(a is None or same_bits(a, b) for a, b in zip(before, copies, strict=True))
            return steps

        try:
            stepped += sum(at_a_launch(lambda: run(program, made[-3:]), look))  # noqa: B023 - called at once
        except _core.Error as error:
            assert device != "cpu", error  # what a chip has not
    assert stepped > 500


def test_an_area_that_is_none_is_an_error():
    def look(launch):
        for area in (-1, 1, 1 << 30):
            with pytest.raises(_core.Error, match="no area"):
                launch.tile_replay(area)
        return True

    assert at_a_launch(lambda: softmax(X), look) == [True]


def test_a_replay_outlives_its_launch():
    kept = at_a_launch(lambda: softmax(np.ones((64, 32), np.float32)), lambda launch: launch.tile_replay(0))[0]
    while not kept.done:
        kept.step()
    assert kept.instruction == -1


def test_an_empty_result_of_moved_data_is_checked_and_measured_on_a_device():
    dvm.set_device("npu-sim:910b")
    told = []
    p = Program()
    x = p.input(np.ones((1, 1, 1, 1), np.float32))
    y = p.op("AVG_POOL2D", x, attrs=(1, 2, 1, 1, 0, 0, 0, 0, 0, 0), shape=(1, 1, 1, 0))
    _core.set_stop_handler(lambda launch, instruction, reason, hooks: told.append(reason))
    try:
        for check, every in ((3, 0), (0, 1)):
            _core.set_check(check)
            _core.set_measure(every)
            recorded, _ = run(p, [y])
            assert recorded.array(y).shape == (1, 1, 1, 0)
    finally:
        _core.set_check(0)
        _core.set_measure(0)
        _core.set_stop_handler(None)
        dvm.set_device("cpu")
    assert told == ["measured"]
