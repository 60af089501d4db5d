"""For all tests: what programs keep in the user's cache goes to a folder of the tests'."""
import os
import tempfile

os.environ.setdefault("DVM_CACHE", tempfile.mkdtemp(prefix="dvm-cache-"))
