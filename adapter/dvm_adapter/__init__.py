"""The debug adapter: one DAP session over two engines, debugpy for Python and the agent in the debuggee for tensors."""
