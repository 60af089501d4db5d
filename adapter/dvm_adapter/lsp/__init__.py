"""The language server: shapes, dtypes, areas and times beside the source, before and after a run.

What is captured is found by decorators (`document`). Shapes come from the last run where a line is still what ran (`recall`), else from
what the source alone tells (`shapes`, `rules`). It imports neither frameworks nor the program.
"""
