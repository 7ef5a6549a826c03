"""How long planning takes, from text to kernels: one decoder layer, many of them, and a thousand operators.

    python -m benchmarks.planning [--layers 32] [--operators 600]

Nothing is compiled or run. Seconds are those of the processor, which planning has one of; they depend on the machine,
the ratio of many layers to one should not.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from bbrewrite.core.spans import Source
from bbrewrite.lang.programs import parse_program
from bbrewrite.pipeline import fuse
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from tests.candidates.programs import random_network


def main() -> None:
    """Prints a line for each program."""
    parser = argparse.ArgumentParser(description="Times of planning.")
    parser.add_argument("--layers", type=int, default=32, help="layers of the deep decoder")
    parser.add_argument("--operators", type=int, default=600, help="operators of the network, before lowering")
    arguments = parser.parse_args()
    decoder = Path("examples/decoder.bb").read_text(encoding="utf-8")
    one = _measured("one layer", decoder.replace("layer = 32", "layer = 1"))
    many = _measured(f"{arguments.layers} layers", decoder.replace("layer = 32", f"layer = {arguments.layers}"))
    print(f"{'':16}  {many / one:.2f} times one layer")
    extents = "m = 128, c = 256, e = c, f = 512"
    _measured(f"{arguments.operators} operators", random_network(arguments.operators, 7, extents))


def _measured(name: str, text: str) -> float:
    rules = load_rules(resource_directory("rules"))
    start = time.process_time()
    request = make_request(parse_program(Source(name, text), rules.table), rules, threads=2)
    fusion = fuse(request)
    seconds = time.process_time() - start
    print(
        f"{name:16}  {seconds:6.2f} s  {len(request.blocks.definitions):5} definitions,"
        f" {len(fusion.classes)} classes, {fusion.before.kernels} -> {fusion.after.kernels} kernels",
        flush=True,
    )
    return seconds


if __name__ == "__main__":
    main()
