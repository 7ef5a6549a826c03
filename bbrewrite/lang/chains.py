"""Groups long flat chains of one operator in halves: `a + b + ...` of thousands of operands nests a few levels deep.

Operators group to the left, so a flat chain nests as deep as it has operands, and later stages walk expressions
recursively. Beyond `LONGEST` operands a chain becomes the two halves of it, and so on; shorter ones stay as they are.
The value is the same but for rounding, which summing in pairs makes smaller. A chain with `/` is left alone, since
its grouping matters in an index bracket. Both languages use these trees; what they mean is not known here.
"""

from __future__ import annotations

from lark import Token, Tree
from lark.tree import Meta

LONGEST = 64
# Operators that may stand in one chain.
_FAMILY = {"and": "and", "or": "or", "*": "*", "+": "+-", "-": "+-"}
_OPPOSITE = {"+": ("MINUS", "-"), "-": ("PLUS", "+")}


def grouped(tree: Tree[Token]) -> Tree[Token]:
    """The tree with long chains of `infix` nodes in halves. Without recursion, so that no chain is too long."""
    done: dict[int, Tree[Token]] = {}
    inside: set[int] = set()  # the nodes of a chain that are not its top
    subtrees = list(tree.iter_subtrees())
    for node in reversed(subtrees):
        if id(node) not in inside:
            inside.update(id(link) for link in _spine(node)[1:])
    for node in subtrees:
        spine = [] if id(node) in inside else _spine(node)
        children = [done.get(id(child), child) if isinstance(child, Tree) else child for child in node.children]
        if len(spine) < LONGEST:
            done[id(node)] = Tree(node.data, children, node.meta)
            continue
        links = [link.children for link in reversed(spine)]
        operands = [part for part in (links[0][0], *(right for _, _, right in links)) if isinstance(part, Tree)]
        symbols = [symbol for _, symbol, _ in links if isinstance(symbol, Token)]
        done[id(node)] = _halved([done[id(operand)] for operand in operands], symbols)
    return done[id(tree)]


def _spine(top: Tree[Token]) -> list[Tree[Token]]:
    """The `infix` nodes of a chain of one family, from its last operator to its first; none where it is no chain."""
    family = _family(top)
    if not family:
        return []
    spine = [top]
    while True:
        left = spine[-1].children[0]
        if not isinstance(left, Tree) or _family(left) != family:
            return spine
        spine.append(left)


def _family(node: Tree[Token]) -> str:
    """The operators that may stand in one chain with the operator of a node; "" where it has none that chains."""
    return _FAMILY.get(str(node.children[1]), "") if node.data == "infix" else ""


def _halved(operands: list[Tree[Token]], symbols: list[Token]) -> Tree[Token]:
    if len(operands) <= LONGEST:
        left = operands[0]
        for symbol, right in zip(symbols, operands[1:], strict=True):
            left = _joined(left, symbol, right)
        return left
    middle = len(operands) // 2
    symbol, rest = symbols[middle - 1], symbols[middle:]
    if symbol == "-":
        # a - b + c is a - (b - c)
        rest = [token.update(*_OPPOSITE[token]) for token in rest]
    return _joined(_halved(operands[:middle], symbols[: middle - 1]), symbol, _halved(operands[middle:], rest))


def _joined(left: Tree[Token], symbol: Token, right: Tree[Token]) -> Tree[Token]:
    meta = Meta()
    if not left.meta.empty and not right.meta.empty:
        meta.empty = False
        meta.line, meta.column, meta.start_pos = left.meta.line, left.meta.column, left.meta.start_pos
        meta.end_line, meta.end_column, meta.end_pos = right.meta.end_line, right.meta.end_column, right.meta.end_pos
    return Tree("infix", [left, symbol, right], meta)
