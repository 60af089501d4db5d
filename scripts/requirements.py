"""Prints the requirements of pyproject.toml: the project's own and those of the extras named on the command line, one a line."""

import sys

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10: pip carries the same parser
    from pip._vendor import tomli as tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
for name in sys.argv[1:]:
    if name not in extras:
        sys.exit(f"pyproject.toml has no extra {name!r}; it has {', '.join(extras)}")
print(*project["dependencies"], *(line for name in sys.argv[1:] for line in extras[name]), sep="\n")
