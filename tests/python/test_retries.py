"""Which refused saves are tried again behind another."""
from dvm_wire import retries


def test_what_was_refused_lately_and_stayed_as_it_was_is_tried_once(tmp_path):
    now = 0.0
    tried = retries.Retries(lambda: now)
    first, second, third = (str(tmp_path / name) for name in "abc")
    for path in (first, second, third):
        open(path, "w").close()
        assert tried.answered(path, "refused") == []
    (tmp_path / "b").write_text("saved since")
    now = retries.WITHIN
    assert tried.answered(str(tmp_path / "d"), "unchanged") == []
    assert tried.answered(third, "applied") == [first]
    assert tried.answered(first, "refused", again=True) == [] == tried.answered(third, "applied")
    assert tried.answered(first, "refused") == []
    now += retries.WITHIN + 0.1
    assert tried.answered(third, "applied") == []
