"""Says on stdout what the agent does in this process: what it is to do stands in its argument."""
import os
import sys
import time

import dvm_core as dvm  # noqa: F401 - starts the agent if a debugger is named in the environment
from dvm_core import agent

print("connected", agent.connected(), flush=True)
if sys.argv[1] == "fork":
    pid = os.fork()
    if pid == 0:
        print("child", agent.connected(), flush=True)
        time.sleep(60)
    os.waitpid(pid, 0)
elif sys.argv[1] == "busy":
    while True:
        sum(range(1000))
elif sys.argv[1] == "end":
    time.sleep(0.2)
    print("END", flush=True)
