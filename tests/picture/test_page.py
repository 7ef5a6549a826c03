"""Pictures of plans: every byte of the model is on an edge, and the page is whole, well-formed and self-contained."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bbrewrite.cli.derivations import CheckedDerivations
from bbrewrite.cli.html_report import html_report
from bbrewrite.core.programs import Role
from bbrewrite.fusion import Fusion, fuse
from bbrewrite.picture.build import picture_of
from bbrewrite.picture.graph import VertexKind
from bbrewrite.picture.page import DerivationStep, DerivationText, Form, Page, render
from bbrewrite.picture.svg import draw
from bbrewrite.request import make_request, read_program
from bbrewrite.resources import resource_directory
from bbrewrite.rules.load import load_rules
from tests.cli.conftest import Command, bbrewrite, rules, scaled_sum  # noqa: F401  fixtures

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.bb"))
_VOID = {"meta", "br", "link"}


def _fusion(name: str) -> Fusion:
    ruleset = load_rules(resource_directory("rules"))
    return fuse(make_request(read_program(ROOT / f"examples/{name}.bb", ruleset.table), ruleset, threads=2))


class _Balanced(HTMLParser):
    """Checks that elements nest, and collects what a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "srcset")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


# All of the decoder's candidates are those of its layer.
@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "decoder"])
def test_every_byte_is_on_an_edge(name: str) -> None:
    # A class of candidates of a large program is planned, and can be drawn, as a small program is.
    for fusion, plan in ((part, plan) for part in _fusion(name).classes for plan in (part.unfused, part.fused)):
        request = fusion.request
        picture = picture_of(plan, request.extents, request.threads, request.rules.table)
        drawn = sum(transfer.amount for transfer in picture.transfers)
        # Blocks that processors merge are in the model's total and belong to no tensor.
        merges = any(kernel.is_split for kernel in plan.kernels.kernels)
        assert drawn < plan.global_bytes if merges else drawn == plan.global_bytes
        assert [cluster.name for cluster in picture.clusters] == [kernel.name for kernel in plan.kernels.kernels]
        for box in picture.tensors.values():
            stores = [t for t in picture.transfers if t.tensor == box.name and t.is_store]
            loads = [t for t in picture.transfers if t.tensor == box.name and not t.is_store]
            assert len(stores) == (box.role in (Role.BUFFER, Role.OUTPUT))
            assert loads or box.role is Role.OUTPUT
        for cluster in picture.clusters:
            keys = [vertex.key for vertex in cluster.vertices]
            assert len(set(keys)) == len(keys)
            places = {key: place for place, key in enumerate(keys)}
            assert all(places[source] < places[target] for source, target in cluster.edges)
            used = {source for source, _ in cluster.edges}
            assert all(v.key in used for v in cluster.vertices if v.kind is not VertexKind.STORE)
        root = ElementTree.fromstring(draw(picture))
        groups = [element.get("class", "") for element in root.iter("{http://www.w3.org/2000/svg}g")]
        assert sum(group == "kernel" for group in groups) == len(picture.clusters)
        assert sum(group.startswith("transfer") for group in groups) == len(picture.transfers)


def test_the_page_of_attention() -> None:
    fusion = _fusion("attention")
    text = html_report(fusion, CheckedDerivations(fusion, lambda _: None))
    page = _Balanced()
    page.feed(text)
    page.close()
    assert page.open == []
    assert page.fetched == []
    assert not re.search(r"@import|url\((?!#)", text)
    assert text.count("<svg ") == 2
    assert "fuse_consecutive_maps" in text
    assert "512.0 MiB" not in text.split("<h2>Fused")[1].split("<details>")[0]


def test_text_is_escaped() -> None:
    step = DerivationStep("a<b", "r:1", "x & y", "in <Y>", "a < b", "b > a", "</li>", True)
    text = render(
        Page(
            "<p>",
            "&",
            [("<", "1", "2", "")],
            [Form("<f>", "<svg></svg>", "<", "&")],
            [DerivationText("<d>", [step])],
            ["<note>"],
        )
    )
    page = _Balanced()
    page.feed(text)
    assert page.open == []
    assert "<note>" not in text
    assert 'class="wrong"' in text


def test_the_command_writes_a_page(bbrewrite: Command, rules: Path, scaled_sum: Path) -> None:  # noqa: F811
    found = bbrewrite("fuse", rules, scaled_sum, "--size", "m=6", "--html", "page.html")
    assert found.exit_code == 0
    assert Path("page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert bbrewrite("fuse", rules, scaled_sum, "--size", "m=6", "--html", "missing/page.html").exit_code == 2


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_a_browser_shows_it(tmp_path: Path) -> None:
    fusion = _fusion("attention")
    path = tmp_path / "page.html"
    path.write_text(html_report(fusion, CheckedDerivations(fusion, lambda _: None)), encoding="utf-8")
    shown = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert shown.stdout.count("</svg>") == 2
    assert shown.stdout.rstrip().endswith("</html>")
