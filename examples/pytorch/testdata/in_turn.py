"""Runs scripts in one process, one after the other, as torch takes long to import.

Its argument is a list of command lines in JSON. They run on one rank: of several, one might still
serve the store of a script when another looks for that of the next.
"""

import json
import os
import runpy
import sys

folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, folder)
for argv in json.loads(sys.argv[1]):
    sys.argv = argv
    print("runs", *argv, flush=True)
    runpy.run_path(os.path.join(folder, argv[0]), run_name="__main__")
