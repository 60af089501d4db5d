"""PyTorch, where it is the one that the front end is for; a test file that begins with it is skipped elsewhere."""
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not torch.__version__.startswith("2.13."):
    pytest.skip(f"torch {torch.__version__}: the front end is for 2.13", allow_module_level=True)


@pytest.fixture(autouse=True)
def fresh():
    """Nothing that Dynamo has compiled is there before a test, nor after it."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
