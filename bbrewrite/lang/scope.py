"""The names of a program: what is declared so far, the one name space, and the faults found on the way.

Serves both levels. A name whose own declaration is at fault is kept as broken, so that its uses are not
reported again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isinf

from bbrewrite.core.elements import Element
from bbrewrite.core.indices import EqualExtents, Index, IndexTable
from bbrewrite.core.operators import OperatorTable, builtin_table
from bbrewrite.core.programs import Assumption, Tensor
from bbrewrite.core.spans import Span
from bbrewrite.core.terms import Term
from bbrewrite.lang import syntax
from bbrewrite.lang.diagnostics import Diagnostic, Related, did_you_mean, listed

REDUCTIONS = ("sum", "max", "min", "prod", "mean")
LIBRARY = ("softmax", "log_softmax", "logsumexp", "layer_norm", "rms_norm", "l2_norm", "variance")
STORED_ELEMENTS = {element.value: element for element in Element if element not in (Element.INDEX, Element.NUMBER)}
STRUCTURE = ("pair", "first", "second", "at", "map", "reduce", "stored", "loaded")
_WORDS = ("size", "inf", "and", "or", "not")


def function_names(table: OperatorTable) -> list[str]:
    """The elementwise functions that are written with a name."""
    return [function.name for function in table.functions.values() if not function.symbol]


def shown_symbols(table: OperatorTable) -> dict[str, str]:
    """Functions written with a symbol, by name."""
    return {function.name: function.symbol for function in table.functions.values() if function.symbol}


@dataclass(frozen=True)
class Declared:
    """A name of the program. `kind` is "index", "input", "weight", "definition", "let" or "def"."""

    kind: str
    span: Span


class Scope:
    """Grows as statements are checked in order. `broken` are the names that statements with faults would declare."""

    def __init__(
        self, table: OperatorTable, statements: Iterable[syntax.Statement], broken: Iterable[str] = ()
    ) -> None:
        self.table = table
        self.faults: list[Diagnostic] = []
        self.names: dict[str, Declared] = {}
        self.indices: dict[str, Index] = {}
        self.tensors: dict[str, Tensor] = {}
        self.lets: dict[str, Term] = {}
        self.places: dict[Term, Span] = {}  # where a text has a block term first
        self.assumptions: list[Assumption] = []
        self.equal_extents: dict[EqualExtents, None] = {}  # a set in order: a `def` is checked at each call
        self.broken = set(broken)
        self.defining = ""  # the name whose definition is being checked
        self._later: dict[str, Span] = {}
        for statement in statements:
            for word in _declared_words(statement):
                self._later.setdefault(word.text, word.span)
        # What rule files add is called only, so a program may use these names as it likes.
        language = builtin_table().operators
        self._reserved = {*REDUCTIONS, *LIBRARY, *STORED_ELEMENTS, *STRUCTURE, *_WORDS, *language}

    def report(self, code: str, message: str, span: Span, hint: str = "", related: tuple[Related, ...] = ()) -> None:
        """Keeps a fault."""
        fault = Diagnostic(code, message, span, hint, related)
        # What belongs to the other level stands everywhere in a program whose header takes it for one of this level.
        is_told = code == "level" and any(other.code == code for other in self.faults)
        if fault not in self.faults and not is_told:
            self.faults.append(fault)

    def declare(self, word: syntax.Word, kind: str) -> bool:
        """Enters a name; reports a clash and says False."""
        if word.text in self._reserved:
            message = f"`{word.text}` is a name of the language"
            self.report("name-clash", message, word.span, "tensors, indices, `def`s and operators share one name space")
            self.broken.add(word.text)
            return False
        if word.text in self.names:
            old = self.names[word.text]
            related = (Related(old.span, f"first declared here, as {_with_article(old.kind)}"),)
            self.report("name-clash", f"`{word.text}` is declared twice", word.span, related=related)
            self.broken.add(word.text)
            return False
        self.names[word.text] = Declared(kind, word.span)
        return True

    def report_unknown(self, name: str, span: Span, wanted: str, candidates: Iterable[str]) -> None:
        """Reports a name that stands for nothing, or not yet, or for something else than `wanted`: once each."""
        if name in self.broken:
            return
        self.broken.add(name)
        if name in self.names:
            declared = self.names[name]
            message = f"`{name}` is {_with_article(declared.kind)}; {wanted} is needed here"
            related = (Related(declared.span, "declared here"),)
            self.report("wrong-kind", message, span, related=related)
        elif name == self.defining:
            message = f"`{name}` is used in its own definition"
            self.report("used-before-declared", message, span, "there is no recursion")
        elif name in self._later:
            related = (Related(self._later[name], "declared here"),)
            message = f"`{name}` is used before it is declared"
            self.report("used-before-declared", message, span, "declarations and definitions precede uses", related)
        elif name in self._reserved:
            self.report("wrong-kind", f"`{name}` is a name of the language; {wanted} is needed here", span)
        elif name in self.table.operators:
            self.report("wrong-kind", f"`{name}` is an operator of the rules; {wanted} is needed here", span)
        else:
            names = list(candidates)
            hint = did_you_mean(name, names) or listed("known here", names)
            self.report("unknown-name", f"there is no {_bare(wanted)} `{name}`", span, hint)

    @property
    def index_table(self) -> IndexTable:
        """The indices declared so far."""
        return IndexTable(self.indices)

    def check_extents(self, plain: str, axis: str, tensor: str, span: Span, calls: tuple[Related, ...] = ()) -> bool:
        """Whether `tensor` may be read at an index instead of its own `axis`; reports where not."""
        if self.index_table.same_extent(plain, axis):
            self.note_extents(plain, axis, tensor, span)
            return True
        if self.broken & {plain, axis}:  # an extent that could not be read has been reported
            return False
        both_known = None not in (self.index_table.extent(plain), self.index_table.extent(axis))
        verb = "has" if both_known else "may have"
        message = f"`{plain}` {verb} another extent than `{axis}`, the index of `{tensor}` here"
        hint = "" if both_known else f"if they are equal, declare `index {plain} = {axis}`"
        places = tuple(Related(self.names[name].span, f"`{name}` is declared here") for name in (plain, axis))
        self.report("extent", message, span, hint, (*places, *calls))
        return False

    def note_extents(self, plain: str, axis: str, items: str, span: Span) -> None:
        """Keeps a read that only declared extents allow, for a check of those that are chosen later."""
        if self.index_table.root(plain) != self.index_table.root(axis):
            self.equal_extents[EqualExtents(plain, axis, items, span)] = None

    def check_number(self, node: syntax.NumberSyntax) -> None:
        """Reports a number that no float holds."""
        if isinf(node.value) and not _text(node.span).endswith("inf"):
            self.report("number", "the number is too large", node.span, "infinity is written `inf`")

    def sorted_faults(self, others: Iterable[Diagnostic]) -> list[Diagnostic]:
        """All faults, with others, in order of position."""
        return sorted((*others, *self.faults), key=_position)

    def index(self, word: syntax.Word) -> bool:
        """Whether a word names an index; reports where it does not."""
        if word.text in self.indices:
            return True
        self.report_unknown(word.text, word.span, "an index", self.indices)
        return False

    def distinct_indices(self, words: tuple[syntax.Word, ...], where: str) -> bool:
        """Whether all words are indices, each once; reports where not."""
        good = True
        seen: dict[str, Span] = {}
        for word in words:
            if word.text in seen:
                related = (Related(seen[word.text], "first here"),)
                hint = f"declare another index: `index {word.text}2 = {word.text}`"
                self.report("repeated-index", f"`{word.text}` stands twice {where}", word.span, hint, related)
                good = False
            elif not self.index(word):
                good = False
            seen[word.text] = word.span
        return good

    def element(self, word: syntax.Word) -> Element | None:
        """The element type of that name; reports where there is none."""
        found = STORED_ELEMENTS.get(word.text)
        if found is None:
            hint = did_you_mean(word.text, STORED_ELEMENTS) or f"the types are {', '.join(STORED_ELEMENTS)}"
            self.report("unknown-type", f"there is no element type `{word.text}`", word.span, hint)
        return found


def _declared_words(statement: syntax.Statement) -> list[syntax.Word]:
    match statement:
        case syntax.IndexStatement(items):
            return [item.name for item in items]
        case syntax.InputStatement(_, items):
            return [item.name for item in items]
        case (
            syntax.DefStatement(name)
            | syntax.LetStatement(name)
            | syntax.DefinitionStatement(name)
            | syntax.CarryStatement(name)
        ):
            return [name]
        case _:
            return []


def _with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _bare(wanted: str) -> str:
    return wanted.split(" ", 1)[1]


def _text(span: Span) -> str:
    return span.source.line(span.line)[span.column - 1 : span.column - 1 + span.length]


def _position(fault: Diagnostic) -> tuple[int, int]:
    return (fault.span.line, fault.span.column) if fault.span else (0, 0)
