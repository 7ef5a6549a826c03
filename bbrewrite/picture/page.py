"""The page of `fuse --html`: both forms of a program as pictures, what each moves, and the steps between them.

One file without scripts, fonts or pictures from elsewhere: it opens without a network and can be mailed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = """
:root { color-scheme: light dark; --text: #1c2330; --faint: #667085; --back: #ffffff; --panel: #f6f7f9; --line: #d5d9e0;
  --input: #3b73b9; --weight: #7a5bb5; --buffer: #c8372d; --output: #2f8a4c; --loop: #fdf3d7; --box: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e7ee; --faint: #98a2b3; --back: #14171c; --panel: #1c2027;
  --line: #3a404b; --input: #6ca3e6; --weight: #ad92e3; --buffer: #f0766d; --output: #67c286; --loop: #3d3620;
  --box: #262b34; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); margin: 2rem auto;
  max-width: 1500px; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; } p { margin: .3rem 0; }
.faint, dt { color: var(--faint); }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { padding: .2rem 1rem .2rem 0; text-align: right; font-variant-numeric: tabular-nums; }
td:first-child, th:first-child { text-align: left; }
.forms { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 40rem), 1fr)); gap: 0 1.5rem; }
section { min-width: 0; }
.picture { overflow: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 8px; }
.picture svg { display: block; margin: 0 auto; max-width: 100%; height: auto; }
svg text { font: 11px ui-monospace, Consolas, monospace; fill: var(--text); }
svg .name { font-weight: 600; } svg .caption, svg .amount { fill: var(--faint); }
svg .middle, svg .label { text-anchor: middle; }
svg path { fill: none; } svg marker path { fill: context-stroke; }
.kernel > rect { fill: var(--back); stroke: var(--line); }
.local { stroke: var(--faint); opacity: .7; }
.vertex rect { fill: var(--box); stroke: var(--line); } .vertex.loop rect { fill: var(--loop); }
.vertex.load rect, .vertex.store rect { fill: none; stroke-dasharray: 3 3; stroke: var(--faint); }
.tensor rect { fill: var(--box); stroke-width: 1.5; }
.input rect, .input path { stroke: var(--input); } .weight rect, .weight path { stroke: var(--weight); }
.output rect, .output path { stroke: var(--output); } .buffer rect, .buffer path { stroke: var(--buffer); }
.buffer .amount { fill: var(--buffer); font-weight: 600; } .tensor.buffer rect { stroke-width: 2.5; }
.transfer path { opacity: .75; } .transfer:hover path { opacity: 1; } .transfer:hover .amount { fill: var(--text); }
ol { padding-left: 2rem; } li { margin: .7rem 0; }
code, pre { font: 12px/1.45 ui-monospace, Consolas, monospace; }
li code { display: block; white-space: pre-wrap; overflow-wrap: anywhere; } li code::before { color: var(--faint); }
code.before::before { content: "   "; } code.after::before { content: "=> "; }
pre { overflow: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 12px; }
.key span { padding: 0 .5rem; border-radius: 8px; border: 1.5px solid; margin-right: .6rem; }
.wrong { color: var(--buffer); font-weight: 600; }
""".strip()

_KEY = (
    '<p class="key"><span style="border-color:var(--input)">input</span>'
    '<span style="border-color:var(--weight)">weight</span>'
    '<span style="border-color:var(--buffer)">buffer in global memory</span>'
    '<span style="border-color:var(--output)">output</span>'
    '<span style="border-color:var(--line);background:var(--loop)">serial loop</span>'
    "An arrow between a tensor and a kernel carries all bytes moved, repetitions included;"
    " a thin line passes a block in local memory.</p>"
)


@dataclass(frozen=True)
class Form:
    """One form of the program: its picture as SVG, and its block program and kernels as text."""

    title: str
    picture: str
    program: str
    kernels: str


@dataclass(frozen=True)
class DerivationStep:
    """One step of the derivation, as text. `verdict` tells what checking it found; `is_wrong` marks one that fails."""

    rule: str
    place: str
    meaning: str
    where: str
    before: str
    after: str
    verdict: str
    is_wrong: bool


@dataclass(frozen=True)
class DerivationText:
    """The steps that lead to an output's term."""

    heading: str
    steps: Sequence[DerivationStep]


@dataclass(frozen=True)
class Page:
    """What the page says. `rows` of the table of movement are a name, before, after and a remark."""

    title: str
    subtitle: str
    rows: Sequence[tuple[str, str, str, str]]
    forms: Sequence[Form]
    derivations: Sequence[DerivationText]
    notes: Sequence[str]


def render(page: Page) -> str:
    """The page as an HTML document."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(page.title)}: data movement</title>",
        f"<style>\n{_STYLE}\n</style></head><body>",
        f'<h1>{escape(page.title)}</h1><p class="faint">{escape(page.subtitle)}</p>',
        _table(page.rows),
        *(f"<p>{escape(note)}</p>" for note in page.notes),
        _KEY,
        f'<div class="forms">{"".join(_form(form) for form in page.forms)}</div>',
        *(_derivation(derivation) for derivation in page.derivations),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _table(rows: Sequence[tuple[str, str, str, str]]) -> str:
    head = "<tr><th></th><th>unfused</th><th>fused</th><th></th></tr>"
    body = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    return "<table>" + head + "".join(f"<tr>{cells}</tr>" for cells in body) + "</table>"


def _form(form: Form) -> str:
    return (
        f'<section><h2>{escape(form.title)}</h2>\n<div class="picture">{form.picture}</div>\n'
        f"<details><summary>block program</summary><pre>{escape(form.program)}</pre></details>"
        f"<details><summary>kernels</summary><pre>{escape(form.kernels)}</pre></details></section>\n"
    )


def _derivation(derivation: DerivationText) -> str:
    items = "\n".join(_step(step) for step in derivation.steps)
    return f"<h2>{escape(derivation.heading)}</h2>\n<ol>{items}</ol>"


def _step(step: DerivationStep) -> str:
    wrong = ' class="wrong"' if step.is_wrong else ' class="faint"'
    return (
        f'<li><b>{escape(step.rule)}</b> <span class="faint">{escape(step.place)}, {escape(step.where)}</span>'
        f"<p>{escape(step.meaning)}</p>"
        f'<code class="before">{escape(step.before)}</code><code class="after">{escape(step.after)}</code>'
        f"<p{wrong}>{escape(step.verdict)}</p></li>"
    )
