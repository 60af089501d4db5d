"""Values compared across the ranks of a job: what is of the same call, and what is told of a difference."""
# ruff: noqa: F811 - the fixture is named as what it is imported as
from job_kit import Rank, other, pair, played, until  # noqa: F401 - the fixture among them


def digests(rank, call=None, **steps):
    """Says what that rank has of w, by step. call: the captured function that the step was a call of, and which."""
    for step, digest in steps.items():
        taken = {"missing": True} if digest is None else {"digest": digest, "snapshot": int(step[1:])}
        rank.link.tell("digest", name="w", step=int(step[1:]), call=call, ordinal=0, backward=False, watch=3, shape=[2, 4], **taken)


def test_a_difference_is_told_once_until_the_ranks_are_equal_again(other):
    first, second = pair(other, compare={"elements": 8, "differ": 1, "firstDiffering": [0, 3],
                                         "largest": {"value": 3e-4, "index": [0, 3], "a": "1.0003", "b": "1"}})
    first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}

    async def play(job):
        digests(first, s1="a", s2="b", s3="c", s4="d", s5="e", s7="g")
        digests(second, s1="a", s2="x", s3="y", s4="d", s5="z", s6="f", s7="g")
        await until(lambda: len(first.told) == len(second.told) == 2)

    played(play, first, second)
    assert [body["step"] for body in first.told] == [2, 5] and first.told == second.told
    assert first.told[0]["text"] == ("w differs between rank 0 and rank 1 at step 2: 1 of 8 elements, the first at [0, 3], "
                                     "max |d| 0.0003 at [0, 3] (1 and 1.0003)")
    assert first.told[0]["ranks"] == [0, 1] and (first.told[0]["largest"]["a"], first.told[0]["largest"]["b"]) == ("1", "1.0003")
    assert [arguments["a"] for command, arguments in second.asked] == [{"watch": 3, "snapshot": 2}, {"watch": 3, "snapshot": 5}]


def test_what_is_compared_is_of_the_same_call_of_the_same_function_whatever_the_step(other):
    first, second = pair(other, compare={"elements": 8, "differ": 1, "firstDiffering": [0, 3],
                                         "largest": {"value": 3e-4, "index": [0, 3], "a": "1.0003", "b": "1"}})
    first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}

    async def play(job):
        digests(first, ("train:forward", 5), s9="a")
        digests(first, ("train:evaluate", 6), s10="b")
        digests(second, ("train:forward", 5), s5="a")
        digests(second, ("train:forward", 6), s6="c")
        digests(first, ("train:forward", 6), s11="d")
        await until(lambda: first.told)

    played(play, first, second)
    assert [body["step"] for body in first.told] == [11]
    assert first.told[0]["text"].startswith("w differs between rank 0 and rank 1 at step 11 (of rank 1: 6): 1 of 8 elements")


def test_zeros_of_other_signs_are_no_difference_and_values_that_have_gone_are_said(other):
    first, second = pair(other, compare={"elements": 8, "differ": 0})
    first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}

    async def play(job):
        digests(first, s1="a", s2="b", s3="c")
        digests(second, s1="x", s2="b")
        await until(lambda: second.asked)
        first.answers["tensor"] = {"reason": "it is not kept any more"}
        digests(second, s3="y")
        await until(lambda: first.told)

    played(play, first, second)
    text = "w differs between rank 0 and rank 1 at step 3: by how much is not known: it is not kept any more"
    assert [body["text"] for body in first.told] == [text]


def test_what_a_rank_has_not_got_or_one_that_has_gone_had_is_not_compared(other):
    first, second = pair(other)

    async def play(job):
        digests(second, s1="x")
        await until(lambda: job._compared._digests)
        anew = await Rank(1, other.pid, compare={"elements": 8, "differ": 2}).join(first.server)
        first.answers["tensor"] = {"data": "AAAA", "dtype": "float32", "shape": [2, 4]}
        await second.task
        digests(first, s1="a", s2="b", s3=None, s4="d")
        digests(anew, s1="a", s2=None, s3="y", s4="z")
        await until(lambda: first.told)
        anew.link.close()

    played(play, first, second)
    assert [body["step"] for body in first.told] == [4]
