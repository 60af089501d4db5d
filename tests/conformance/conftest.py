"""DVM_DEVICE=npu-sim:910b runs the conformance cases on a simulated NPU."""

import os

import dvm_core

if os.environ.get("DVM_DEVICE"):
    dvm_core.set_device(os.environ["DVM_DEVICE"])
