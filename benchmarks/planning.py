"""How long planning takes, from text to kernels: the examples, one decoder layer and many, and a thousand operators.

    python -m benchmarks.planning [--only NAME] [--layers 32] [--definitions 1000]

Nothing is compiled or run. A line gives the seconds that one waits, those of processors in all processes that plan, and
the kernels without and with rules. Seconds depend on the machine, the ratios of many layers to one should not.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

from bbrewrite.core.spans import Source
from bbrewrite.fusion import fuse
from bbrewrite.lang.programs import parse_program
from bbrewrite.request import make_request
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from benchmarks.large_programs import (
    elementwise_chain,
    fan,
    random_graph,
    small_arrays,
    uneven_layers,
    written_out_decoder,
)
from tests.candidates.programs import random_network


def main() -> None:
    """Prints a line for each program."""
    parser = argparse.ArgumentParser(description="Times of planning.")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--layers", type=int, default=32, help="layers of the deep decoders")
    parser.add_argument("--definitions", type=int, default=1000, help="definitions of the large programs, about")
    arguments = parser.parse_args()
    layers, count = arguments.layers, arguments.definitions
    examples = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path("examples").glob("*.bb"))}
    decoder = examples.pop("decoder")
    # What is asked for first pays for what is made once: parsers, rules, the engine.
    _seconds("one number", "program p\ninput x : f32\noutput y = x * 2\n")
    for name, text in examples.items():
        if arguments.only in name:
            _measured(name, text)
    many = {
        "one layer": decoder.replace("layer = 32", "layer = 1"),
        f"{layers} layers": decoder.replace("layer = 32", f"layer = {layers}"),
        f"{layers} written out": written_out_decoder(layers),
    }
    seconds = {name: _measured(name, text) for name, text in many.items() if arguments.only in name}
    for name in list(many)[1:]:
        if {"one layer", name} <= seconds.keys():
            print(f"{'':28}  {name}: {seconds[name] / seconds['one layer']:.2f} times one layer")
    large: dict[str, Callable[[], str]] = {
        "random network": lambda: random_network(count * 5 // 9, 7, "m = 128, c = 256, e = c, f = 512"),
        "random graph": lambda: random_graph(count * 5 // 8, 7),
        "small arrays": lambda: small_arrays(count * 12 // 23, 7),
        "uneven layers": lambda: uneven_layers(count // 5),
        "elementwise chain": lambda: elementwise_chain(count, 5, 7),
        "fan": lambda: fan(count // 9, 8),
    }
    for name, make in large.items():
        if arguments.only in name:
            _measured(name, make())


def _measured(name: str, text: str) -> float:
    waited, seconds, shown = _seconds(name, text)
    print(f"{name:28}  {waited:6.2f} s  {seconds:6.2f} s of processors  {shown}", flush=True)
    return seconds


def _seconds(name: str, text: str) -> tuple[float, float, str]:
    rules = load_rules(resource_directory("rules"))
    start, before = time.perf_counter(), sum(os.times()[:4])
    request = make_request(parse_program(Source(name, text), rules.table), rules, threads=2)
    fusion = fuse(request)
    waited, seconds = time.perf_counter() - start, sum(os.times()[:4]) - before
    definitions, classes = len(request.blocks.definitions), len(fusion.classes)
    kernels = f"{fusion.before.kernels} -> {fusion.after.kernels} kernels"
    return waited, seconds, f"{definitions:5} definitions, {classes} classes, {kernels}"


if __name__ == "__main__":
    main()
