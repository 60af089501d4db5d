"""`python -m dvm_adapter` as a file: the client starts an interpreter with one argument."""
import runpy

runpy.run_module("dvm_adapter", run_name="__main__", alter_sys=True)
