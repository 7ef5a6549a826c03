"""The whole of a nest under construction: where loops and values are, what they are called, and of what type.

It finds and makes places, and becomes the kernel's immutable statements in the end. Which values to compute, and
where, is the builder's concern (`nest.py`).
"""

from __future__ import annotations

from bbrewrite.core.terms import Cast, Local, Term, rewrite_bottom_up
from bbrewrite.core.types import BlockType, Typing
from bbrewrite.plan.kernel import Let, LocalBlock, Loop, Statement, Store, Update, local_element
from bbrewrite.plan.nests.draft import (
    DraftItem,
    DraftLine,
    DraftLoop,
    Instance,
    Path,
    common_length,
    drop_unused,
    lines_of,
)
from bbrewrite.plan.nests.late_rounding import rounded_late


class DraftNest:
    """Loops and statements, and the values that they make by term and by name."""

    def __init__(self, typing: Typing) -> None:
        self._typing = typing
        self._root = DraftLoop("")
        self._instances: dict[Term, list[Instance]] = {}
        self._by_name: dict[str, Instance] = {}
        self._types: dict[str, BlockType] = {}
        self._counters: dict[str, int] = {}
        self._roundings: set[Cast] = set()

    # Values

    def fresh(self, stem: str) -> str:
        """A name that no other value has."""
        count = self._counters.get(stem, 0)
        self._counters[stem] = count + 1
        return stem if count == 0 else f"{stem}_{count}"

    def register(self, term: Term, instance: Instance) -> None:
        """Makes a value known as what a term is in a place."""
        self._instances.setdefault(term, []).append(instance)
        self.name(instance)

    def name(self, instance: Instance) -> None:
        """Makes a value known by its name."""
        self._by_name[instance.name] = instance

    def named(self, names: set[str] | frozenset[str]) -> list[Instance]:
        """The values that have these names, in the names' order."""
        return [self._by_name[name] for name in sorted(names) if name in self._by_name]

    def instances(self, term: Term) -> list[Instance]:
        """Where a term's value is made."""
        return self._instances.get(term, [])

    def nearest(self, term: Term, base: Path) -> list[Instance]:
        """The instance that a value placed under `base` would use: the last one that shares most loops with it."""
        found = self.instances(term)
        return [max(found, key=lambda instance: common_length(instance.path, base))] if found else []

    def set_type(self, name: str, found: BlockType) -> None:
        """The type of a local block, in the element type in which it is held."""
        self._types[name] = BlockType(found.axes, local_element(found.element))

    def set_type_of(self, name: str, expression: Term) -> None:
        """The type of a local block that holds an expression over others."""
        self.set_type(name, self.type_of(expression))

    def type_of(self, expression: Term) -> BlockType:
        """The type of an expression over local blocks."""
        return self._typing.with_locals(self._types).block(expression)

    def rounding(self, cast: Cast) -> Cast:
        """Marks a cast as the rounding of a state."""
        self._roundings.add(cast)
        return cast

    # Places

    def block(self, path: Path) -> DraftLoop:
        """The body of the innermost loop of a path."""
        return path[-1] if path else self._root

    def path_for(self, base: Path, nest: list[str], operands: list[Instance], before: DraftItem | None = None) -> Path:
        """Loops for a nest of indices under `base`, merged with existing ones where operands are at hand."""
        path = base
        for index in nest:
            block = self.block(path)
            limit = block.items.index(before) if before in block.items else len(block.items)
            first = self._first_position(path, index, operands)
            loop = next(
                (item for item in block.items[first:limit] if isinstance(item, DraftLoop) and item.index == index), None
            )
            if loop is None:
                loop = DraftLoop(index)
                block.items.insert(limit, loop)
            path = (*path, loop)
        return path

    def insert(self, path: Path, item: DraftItem, before: DraftItem | None) -> None:
        """Puts an item at the end of a path's innermost loop, or before another one there."""
        block = self.block(path)
        if before is not None and before in block.items:
            block.items.insert(block.items.index(before), item)
        else:
            block.items.append(item)

    def insert_early(self, path: Path, line: DraftLine) -> None:
        """Puts a statement as early as its operands allow: loops after it would have to come later than need be."""
        self.block(path).items.insert(self._first_position(path, "", self.named(line.used)), line)

    def _first_position(self, path: Path, index: str, operands: list[Instance]) -> int:
        """The first item of a path's innermost loop from which on a loop over `index` has all operands at hand."""
        block, depth = self.block(path), len(path)
        first = 0
        for operand in operands:
            if operand.whole_path[:depth] != path:
                continue
            if len(operand.whole_path) > depth:
                loop = operand.whole_path[depth]
                shares = loop.index == index and len(operand.path) > depth
                first = max(first, block.items.index(loop) + (0 if shares else 1))
            elif operand.line in block.items:
                first = max(first, block.items.index(operand.line) + 1)
        return first

    # Finishing

    def statements(self) -> tuple[Statement, ...]:
        """The nest without what nobody uses."""
        while drop_unused(self._root, frozenset[str]().union(*(line.used for line in lines_of(self._root)))):
            pass
        if self._roundings:
            roundings, typing = frozenset(self._roundings), self._typing.with_locals(self._types)
            states = frozenset[str]().union(*(rounding.local_names for rounding in roundings))
            for line in lines_of(self._root):
                if not line.expression.local_names.isdisjoint(states):
                    line.expression = rounded_late(line.expression, roundings, typing)
        return self._finished(self._root)

    def _finished(self, loop: DraftLoop) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        for item in [*loop.items, *loop.closing]:
            if isinstance(item, DraftLoop):
                statements.append(Loop(item.index, self._finished(item)))
            elif item.kind is Store:
                assert item.output is not None
                statements.append(Store(item.output.tensor, self._with_lists(item.expression)))
            else:
                target = LocalBlock(item.target, self._types[item.target], self._by_name[item.target].list_indices)
                expression = self._with_lists(item.expression)
                is_let = item.kind is Let
                statements.append(Let(target, expression) if is_let else Update(target, expression, item.combines))
        return tuple(statements)

    def _with_lists(self, expression: Term) -> Term:
        """The expression with the lists among its locals at the indices of the loops around it."""
        lists = {name: found for name in expression.local_names if (found := self._by_name[name].list_indices)}
        if not lists:
            return expression

        def change(node: Term) -> Term:
            return Local(node.name, lists[node.name]) if isinstance(node, Local) and node.name in lists else node

        return rewrite_bottom_up(expression, change)
