"""HYPOTHESIS_PROFILE=fuzz (`make fuzz`) runs the property tests for longer."""

import os

from hypothesis import settings

settings.register_profile("fuzz", max_examples=5000, deadline=None)
if os.environ.get("HYPOTHESIS_PROFILE"):
    settings.load_profile(os.environ["HYPOTHESIS_PROFILE"])
