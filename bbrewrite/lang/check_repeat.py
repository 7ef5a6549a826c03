"""Checks `repeat`: a body of definitions that is made once for each position of an index.

    repeat layer
        carry H[m, d] = X[m, d]                      # what the first layer is given
        A[m, d] = rms_norm[d](H[m, d]) * g[layer, d]
        next H[m, d] = H[m, d] + A[m, d]             # what the following layer is given, and the rest of the program

In the body the index has one position, a carried name is the value that came in, and other names are known only there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bbrewrite.core.arrays import ArrayDefinition, Repeat
from bbrewrite.core.programs import Role, Tensor
from bbrewrite.lang import syntax
from bbrewrite.lang.array_definitions import check_definition, check_stored_type, indices_are_bound
from bbrewrite.lang.array_expressions import Expressions
from bbrewrite.lang.diagnostics import Related, counted, did_you_mean
from bbrewrite.lang.scope import Declared, Scope


@dataclass
class _Open:
    """A repeat whose end has not come."""

    statement: syntax.RepeatStatement
    position: int
    is_index: bool
    carried: dict[str, ArrayDefinition] = field(default_factory=dict[str, ArrayDefinition])
    body: list[ArrayDefinition] = field(default_factory=list[ArrayDefinition])
    following: dict[str, ArrayDefinition] = field(default_factory=dict[str, ArrayDefinition])
    given: set[str] = field(default_factory=set[str])  # the names after `next`, right or not
    words: list[syntax.CarryStatement] = field(default_factory=list[syntax.CarryStatement])


class Repeats:
    """Takes the statements of repeats in order; `found` are the repeats that are complete."""

    def __init__(self, scope: Scope, expressions: Expressions) -> None:
        self._scope = scope
        self._expressions = expressions
        self._open: _Open | None = None
        self.found: tuple[Repeat, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether statements stand in the body of a repeat."""
        return self._open is not None

    def check_place(self, statement: syntax.Statement) -> None:
        """Reports a statement that cannot stand where it does: in a body, or outside one."""
        match statement:
            case syntax.RepeatStatement() if self._open is not None:
                self._scope.report("repeat", "a `repeat` cannot stand in another", statement.span)
            case syntax.CarryStatement() | syntax.NextStatement() if self._open is None:
                word = "carry" if isinstance(statement, syntax.CarryStatement) else "next"
                hint = "indent it under `repeat layer`, where `layer` is an index"
                self._scope.report("repeat", f"`{word}` belongs to the body of a `repeat`", statement.span, hint)
            case (
                syntax.DefinitionStatement()
                | syntax.CarryStatement()
                | syntax.NextStatement()
                | syntax.RepeatStatement()
                | syntax.RepeatEnd()
            ):
                pass
            case _ if self._open is not None:
                hint = "declare it before the `repeat`"
                message = "the body of a `repeat` has only definitions, `carry` and `next`"
                self._scope.report("repeat", message, statement.span, hint)
            case _:
                pass

    def begin(self, statement: syntax.RepeatStatement, position: int) -> None:
        """Opens a repeat before which there are `position` definitions."""
        if self._open is None:
            self._open = _Open(statement, position, self._scope.index(statement.index))

    def carry(self, statement: syntax.CarryStatement) -> None:
        """Checks the first value of a carried name."""
        repeat = self._open
        if repeat is None:
            return
        if repeat.body or repeat.following:
            hint = "put it directly under `repeat`"
            self._scope.report("repeat", "`carry` stands before the definitions of the body", statement.span, hint)
        definition = syntax.DefinitionStatement(
            statement.name, statement.indices, statement.element, statement.expression, False, statement.name.span
        )
        repeat.words.append(statement)
        if self._has_no_layer(statement.indices):
            found = check_definition(self._scope, self._expressions, definition)
            if found is not None:
                repeat.carried[found.tensor.name] = found
        else:
            self._scope.broken.add(statement.name.text)

    def definition(self, statement: syntax.DefinitionStatement) -> None:
        """Checks a definition of the body."""
        repeat = self._open
        assert repeat is not None
        if statement.is_output:
            hint = "carry the value, and write the output behind the `repeat`"
            self._scope.report("repeat", "an output cannot stand in a `repeat`", statement.span, hint)
        if self._has_no_layer(statement.indices):
            found = check_definition(
                self._scope, self._expressions, replace(statement, is_output=False), repeat.statement.index.text
            )
            repeat.body += [found] if found is not None else []
        else:
            self._scope.broken.add(statement.name.text)

    def next(self, statement: syntax.NextStatement) -> None:
        """Checks what the following iteration is given."""
        repeat, scope, name = self._open, self._scope, statement.name.text
        if repeat is None:
            return
        if name in repeat.given:
            scope.report("repeat", f"`next {name}` is given twice", statement.name.span)
            return
        repeat.given.add(name)
        carried = [word.name.text for word in repeat.words]
        if name not in carried:
            if name not in scope.broken:
                shown = ", ".join(f"`{other}`" for other in carried) or "nothing"
                hint = f"write `carry {name} = ...` under the `repeat`; it carries {shown}"
                hint = did_you_mean(name, carried) or hint
                scope.report("repeat", f"`{name}` is not carried", statement.name.span, hint)
                scope.broken.add(name)
            return
        good = scope.distinct_indices(statement.indices, f"in {name}") and self._has_no_layer(statement.indices)
        value = self._expressions.resolve(statement.expression)
        first = repeat.carried.get(name)
        if first is None or not good or value is None:
            scope.broken.add(name)
            return
        declared = first.tensor
        if len(statement.indices) != len(declared.indices):
            rank = counted(len(declared.indices), "index", "indices")
            related = (Related(scope.names[name].span, "carried from here"),)
            message = f"`{name}` has {rank}; {len(statement.indices)} given"
            scope.report("rank", message, statement.name.span, related=related)
            return
        good = all(
            scope.check_extents(word.text, axis, name, word.span)
            for word, axis in zip(statement.indices, declared.indices, strict=True)
        )
        good = indices_are_bound(scope, statement, value, repeat.statement.index.text) and good
        check_stored_type(scope, declared.element, value, statement.name.span)
        if good:
            indices = tuple(word.text for word in statement.indices)
            tensor = Tensor(name, indices, declared.element, Role.BUFFER)
            repeat.following[name] = ArrayDefinition(tensor, value.expression, statement.name.span)

    def end(self) -> None:
        """Closes the repeat: the names of its body are forgotten, the carried ones are the last values."""
        repeat, scope = self._open, self._scope
        self._open = None
        if repeat is None:
            return
        index = repeat.statement.index.text
        for definition in repeat.body:
            name = definition.tensor.name
            scope.tensors.pop(name, None)
            scope.names[name] = Declared(f"definition inside `repeat {index}`", scope.names[name].span)
        if not repeat.words and not repeat.given and repeat.is_index:
            hint = "write `carry H[m, d] = X[m, d]` first and `next H[m, d] = ...` last"
            scope.report("repeat", f"nothing is carried out of this `repeat {index}`", repeat.statement.span, hint)
        # A `next` of a name that is not carried has been reported; it is the one that is missing here.
        is_misnamed = not repeat.given <= {word.name.text for word in repeat.words}
        for word in repeat.words:
            name = word.name.text
            if name not in repeat.given and name not in scope.broken and not is_misnamed:
                hint = f"write `next {name} = ...` in the body, with its indices"
                scope.report("repeat", f"`{name}` is carried, but there is no `next {name}`", word.span, hint)
        if repeat.is_index and repeat.following.keys() == repeat.carried.keys():
            carried = tuple(repeat.carried.values())
            following = tuple(repeat.following[name] for name in repeat.carried)
            self.found += (Repeat(index, carried, tuple(repeat.body), following, repeat.position),)

    def _has_no_layer(self, indices: tuple[syntax.Word, ...]) -> bool:
        """Whether the repeated index is not among those of a definition; reports it where it is."""
        assert self._open is not None
        name = self._open.statement.index.text
        for word in indices:
            if word.text == name:
                hint = f"leave it out: in the body `{name}` is the number of the iteration"
                self._scope.report("repeat", f"a definition in `repeat {name}` has no `{name}`", word.span, hint)
                return False
        return True
