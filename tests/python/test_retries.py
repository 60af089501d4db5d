"""Which refused saves are tried again behind another."""
from dvm_wire import retries


def test_what_was_refused_lately_and_stayed_as_it_was_is_tried_once(tmp_path):
    tried = retries.Retries()
    first, second, third = (str(tmp_path / name) for name in "abc")
    for path in (first, second, third):
        open(path, "w").close()
        assert tried.answered(path, "refused", 0.0) == []
    (tmp_path / "b").write_text("saved since")
    at = retries.WITHIN
    assert tried.answered(str(tmp_path / "d"), "unchanged", at) == []
    assert tried.answered(third, "applied", at) == [first]
    assert tried.answered(first, "refused", at, again=True) == [] and tried.answered(third, "applied", at) == [first]  # it may need both
    assert tried.answered(first, "applied", at, again=True) == [] == tried.answered(third, "applied", at)
    assert tried.answered(first, "refused", at) == [] == tried.answered("not\0 a path", "refused", at)
    assert tried.answered(third, "applied", at + retries.WITHIN + 0.1) == []
