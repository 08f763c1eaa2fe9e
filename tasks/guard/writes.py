"""Which files a Bash command writes, as far as the line itself tells.

The command is followed, not run: folders that it enters, constants that it sets, functions, shells inside
shells. What is joined is taken to succeed (`cd x; touch y` writes `x/y`). Where the line does not fix what
is written, the answer is null, which whoever guards must take for a write anywhere.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from skilltrial.tasks.guard.arguments import Argument, Grammar, read
from skilltrial.tasks.guard.commands import MODELS, SHELLS, WRAPPERS, Interpreter, interpreter, targets_of
from skilltrial.tasks.guard.programs import PROGRAMS
from skilltrial.tasks.guard.shell import Unreadable, parse
from skilltrial.tasks.guard.state import State, Untold, either, merged
from skilltrial.tasks.guard.syntax import (
    Binary,
    Branches,
    Function,
    Group,
    Redirect,
    Simple,
    Statement,
    Substitution,
    Text,
    Variable,
    Word,
    several,
)

_WRITES: Final = frozenset({">", ">>", ">|", "&>", "&>>", "&>|", ">&", "<>"})
_NO_FILE: Final = re.compile(r"/dev/(?:null|stdout|stderr|stdin|tty|zero|fd/\d+|tcp/.*|udp/.*)")
_DESCRIPTOR: Final = re.compile(r"\d+-?|-")
_NESTING: Final = 12
_LOOP_LIMIT: Final = 32
_WORD_LIMIT: Final = 256
_LEAVES: Final = frozenset({"exit", "return", "break", "continue"})


def write_targets(command: str, cwd: str) -> tuple[str, ...] | None:
    """The files that a command writes, makes or removes; relative to `cwd` where they are inside of it.

    An empty tuple: no file. Null: it cannot be told, also because the command cannot be read. Paths are
    compared as they are written, without following links. Never raises.
    """
    walk = _Walk(posixpath.normpath(cwd))
    try:
        walk.block(parse(command), State(walk.cwd, MappingProxyType({})))
    except (Unreadable, Untold, RecursionError):
        return None
    return tuple(walk.targets)


@dataclass(slots=True)
class _Walk:
    cwd: str
    targets: dict[str, None] = field(default_factory=dict)
    functions: dict[str, Statement] = field(default_factory=dict)
    nesting: int = 0

    # statements

    def block(self, statements: Iterable[Statement], state: State) -> State:
        """Follow statements one after the other; what is returned is the state behind them."""
        for statement in statements:
            state = self.statement(statement, state)
        return state

    def statement(self, statement: Statement, state: State) -> State:
        inside = state
        for redirect in statement.redirects:
            inside = self.redirect(redirect, inside)
        if statement.command is None:
            return state
        after = self.command(statement.command, inside)
        return state if statement.background else replace(after, stdin=state.stdin)

    def command(self, command: Simple | Binary | Group | Branches | Function, state: State) -> State:
        if isinstance(command, Simple):
            return self.simple(command, state)
        if isinstance(command, Binary):
            return self.joined(command, state)
        if isinstance(command, Group):
            after = self.block(command.body, state)
            return state if command.subshell else after
        if isinstance(command, Function):
            self.functions[command.name] = command.body
            return state
        return self.branches(command, state)

    def joined(self, command: Binary, state: State) -> State:
        if command.operator in ("|", "|&"):
            self.statement(command.left, state)
            self.statement(command.right, replace(state, stdin=None))
            return state
        after = self.statement(command.left, state)
        right = self.statement(command.right, after)
        if command.operator == "&&":
            return right
        return after if _leaves(command.right) else either(after, right)

    def branches(self, command: Branches, state: State) -> State:
        for word in command.words:
            self.run_inside(word, state)
        items = None
        if command.kind == "ForClause" and command.words:
            items = self.expand_all(command.words, state)
        if command.kind == "ForClause" and items is not None and None not in items and len(items) <= _LOOP_LIMIT:
            for item in items:
                state = self.block(command.bodies[0], merged(state, {command.names[0]: item}))
            return state
        for name in (*command.names, *_assigned(command)):
            state = merged(state, {name: None})
        after = state
        for body in command.bodies:
            after = either(after, self.block(body, state))
        if after.folder != state.folder and command.kind in ("ForClause", "WhileClause"):
            raise Untold  # the next time round starts in another folder
        return after

    # words

    def expand(self, word: Word, state: State) -> list[Argument]:
        """The arguments that a word stands for; a null among them is only known to a run."""
        self.run_inside(word, state)
        pieces: list[Text] = []
        for part in word.parts:
            if isinstance(part, Text):
                pieces.append(part)
                continue
            value = state.variables.get(part.name) if isinstance(part, Variable) and part.plain else None
            if value is None or (isinstance(part, Variable) and not part.quoted and re.search(r"[\s*?\[]", value)):
                return [None]
            pieces.append(Text(value, True))
        if not several(pieces):
            return ["".join(piece.value for piece in pieces)]
        return [*(_braces(pieces) or (None,))]

    def expand_all(self, words: Iterable[Word], state: State) -> list[Argument]:
        found = [argument for word in words for argument in self.expand(word, state)]
        if len(found) > _WORD_LIMIT:
            raise Untold
        return found

    def run_inside(self, word: Word, state: State) -> None:
        """Follow the commands that run inside a word, each in a shell of its own."""
        for substitution in word.substitutions():
            self.block(substitution.body, replace(state, stdin=None))

    def redirect(self, redirect: Redirect, state: State) -> State:
        if redirect.operator in ("<<", "<<-"):
            return replace(state, stdin=self.text_of(redirect.body or Word(()), state))
        if redirect.operator == "<<<":
            return replace(state, stdin=self.text_of(redirect.target, state))
        if redirect.operator in _WRITES and _is_process(redirect.target):
            self.run_inside(redirect.target, state)
            return state
        arguments = self.expand(redirect.target, state)
        if redirect.operator in _WRITES:
            for argument in arguments:
                if redirect.operator != ">&" or argument is None or not _DESCRIPTOR.fullmatch(argument):
                    self.write(argument, state)
        return replace(state, stdin=None) if redirect.operator in ("<", "<>") else state

    def text_of(self, word: Word, state: State) -> str | None:
        """The text of a heredoc or here-string."""
        self.run_inside(word, state)
        pieces = []
        for part in word.parts:
            if isinstance(part, Text):
                pieces.append(part.value)
            elif isinstance(part, Variable) and part.plain and state.variables.get(part.name) is not None:
                pieces.append(str(state.variables[part.name]))
            else:
                return None
        return "".join(pieces)

    def write(self, target: Argument, state: State) -> None:
        """Note a file that is written."""
        if target is None:
            raise Untold
        if not target:
            return
        if not target.startswith("/"):
            if state.folder is None:
                raise Untold
            target = posixpath.join(state.folder, target)
        path = posixpath.normpath(target)
        if path.startswith("//"):
            path = path[1:]
        if _NO_FILE.fullmatch(path):
            return
        inside = path == self.cwd or path.startswith(self.cwd.rstrip("/") + "/")
        self.targets[posixpath.relpath(path, self.cwd) if inside else path] = None

    # commands

    def simple(self, command: Simple, state: State) -> State:
        assigned: dict[str, str | None] = {}
        for assignment in command.assignments:
            value = None
            if assignment.value is not None:
                values = self.expand(assignment.value, merged(state, assigned))
                value = values[0] if len(values) == 1 else None
            if assignment.name:
                assigned[assignment.name] = value
        arguments = self.expand_all(command.words, state)
        if not arguments or arguments[0] in ("export", "declare", "local", "readonly", "typeset"):
            return merged(state, assigned)
        return self.run(arguments, state)

    def run(self, arguments: list[Argument], state: State) -> State:
        """Follow one command with its arguments."""
        if not arguments:
            return state
        if arguments[0] is None:
            raise Untold  # which program runs is not fixed
        name, rest = posixpath.basename(arguments[0]), arguments[1:]
        if name in self.functions and "/" not in arguments[0]:
            given = {str(place): word for place, word in enumerate(rest[:9], start=1)}
            inner = merged(state, {**dict.fromkeys("123456789@*#"), **given})
            return self.nested(lambda: self.statement(self.functions[name], inner), None)
        if name in ("cd", "pushd"):
            return self.change_folder(rest, state)
        if name == "popd":
            return replace(state, folder=None)
        if name in ("read", "mapfile", "readarray", "unset", "getopts"):
            return merged(state, {word: None for word in rest if word is not None})
        if name == "eval":
            return self.code(" ".join(map(str, rest)) if None not in rest else None, state, False)
        if name == "trap":
            return self.code(rest[0], state, True) if len(rest) > 1 and rest[0] not in ("", "-") else state
        if name in ("source", "."):  # a script on disk is trusted, but not known: it may go anywhere
            return replace(state, folder=None, variables=MappingProxyType({}))
        special = PROGRAMS.get(name)
        if special is not None:
            special(self, rest, state)
        elif name in WRAPPERS:
            return self.wrapped(name, rest, state)
        elif name in SHELLS:
            self.shell(rest, state)
        elif (program := interpreter(name)) is not None:
            self.interpreted(program, rest, state)
        elif (model := MODELS.get(name)) is not None:
            for target in targets_of(model, read(rest, model.grammar)):
                self.write(target, state)
        return state

    def change_folder(self, rest: list[Argument], state: State) -> State:
        places = [word for word in rest if word is None or word == "-" or not word.startswith("-")]
        if len(places) != 1 or places[0] in (None, "-", "") or state.variables.get("CDPATH", "") != "":
            return replace(state, folder=None)
        place = str(places[0])
        if not place.startswith("/") and state.folder is None:
            return state
        return replace(state, folder=posixpath.normpath(posixpath.join(state.folder or "/", place)))

    def wrapped(self, name: str, rest: list[Argument], state: State) -> State:
        wrapper = WRAPPERS[name]
        arguments = read(rest, wrapper.grammar)
        if wrapper.nothing_with and arguments.has(*wrapper.nothing_with):
            return state
        if name == "env" and arguments.has("-S", "-C", "--split-string", "--chdir"):
            raise Untold
        for target in arguments.values("-o", "--output") if name == "time" else ():
            self.write(target, state)
        command = list(arguments.operands[wrapper.operands :])
        while wrapper.assignments and command and command[0] is not None and re.match(r"\w+=", command[0]):
            command.pop(0)
        after = self.run(command, state)
        return after if name in ("command", "builtin", "time") else state

    def shell(self, rest: list[Argument], state: State) -> None:
        """A shell inside: code of its own, a script on disk, or what it reads."""
        arguments = read(rest, Grammar("oO", ("--rcfile", "--init-file"), operands_last=True))
        if arguments.has("-c"):
            self.code(arguments.operands[0] if arguments.operands else None, state, True)
        elif arguments.has("-s") or not arguments.operands:
            self.code(state.stdin, state, True)

    def interpreted(self, program: Interpreter, rest: list[Argument], state: State) -> None:
        """Code in a language of its own, where it stands on the line or is read; a script on disk is trusted."""
        grammar = Grammar(program.inline + program.module + program.values, program.inline_long, operands_last=True)
        arguments = read(rest, grammar)
        inline = [f"-{letter}" for letter in program.inline] + list(program.inline_long)
        if inline and arguments.has(*inline):
            raise Untold
        if program.module and arguments.has(f"-{program.module}"):
            return
        script = arguments.operands[0] if arguments.operands else "-"
        if script == "-" and state.stdin != "" and not arguments.has("--version", "--help", "-V", "-h", "-v"):
            raise Untold

    def code(self, code: Argument, state: State, subshell: bool) -> State:
        """Shell code in an argument."""
        if code is None:
            raise Untold
        return self.nested(lambda: self.block(parse(code), state), state if subshell else None)

    def nested(self, follow: Callable[[], State], instead: State | None) -> State:
        """Follow code inside code; `instead` is the state behind it where the inner one is its own."""
        if self.nesting >= _NESTING:
            raise Untold
        self.nesting += 1
        after = follow()
        self.nesting -= 1
        return after if instead is None else instead


def _is_process(word: Word) -> bool:
    return len(word.parts) == 1 and isinstance(word.parts[0], Substitution) and word.parts[0].process


def _leaves(statement: Statement) -> bool:
    """Whether what follows is not reached behind this statement."""
    command = statement.command
    if isinstance(command, Group) and command.body and not command.subshell:
        return _leaves(command.body[-1])
    return isinstance(command, Simple) and bool(command.words) and command.words[0].fixed in _LEAVES


def _assigned(node: object) -> set[str]:
    """Names of the variables that anything below may set."""
    if isinstance(node, Simple):
        return {assignment.name for assignment in node.assignments}
    if isinstance(node, (tuple, list)):
        return set().union(*map(_assigned, node))
    if isinstance(node, Statement):
        return _assigned(node.command)
    if isinstance(node, Binary):
        return _assigned((node.left, node.right))
    if isinstance(node, (Group, Branches)):
        names = set(node.names) if isinstance(node, Branches) else set()
        return names | _assigned(node.body if isinstance(node, Group) else node.bodies)
    return set()


_RANGE: Final = re.compile(r"(-?\d{1,4})\.\.(-?\d{1,4})")


def _braces(pieces: Sequence[Text]) -> list[str] | None:
    """The words of `a{b,c}d` and `{1..3}`; null where there are patterns, quotes inside, or anything unusual."""
    if any("{" in piece.value or "}" in piece.value for piece in pieces if piece.quoted):
        return None
    text = "".join(piece.value for piece in pieces)
    plain = "".join(piece.value for piece in pieces if not piece.quoted)
    if (
        re.search(r"[*?]|\[.+\]", plain)
        or plain.startswith("~")
        or any("," in piece.value for piece in pieces if piece.quoted)
    ):
        return None
    return _expand_braces(text, 0)


def _expand_braces(text: str, depth: int) -> list[str] | None:
    found = re.search(r"\{([^{}]*(?:,|\.\.)[^{}]*)\}", text)
    if found is None:
        return [text]
    if depth > 8:
        return None
    numbers = _RANGE.fullmatch(found[1])
    if numbers is not None:
        first, last = int(numbers[1]), int(numbers[2])
        step = 1 if last >= first else -1
        choices = [str(value) for value in range(first, last + step, step)]
        if max(len(numbers[1]), len(numbers[2])) > 1 and (numbers[1].startswith("0") or numbers[2].startswith("0")):
            return None
    elif "," in found[1]:
        choices = found[1].split(",")
    else:
        return None
    words: list[str] = []
    for choice in choices:
        inner = _expand_braces(text[: found.start()] + choice + text[found.end() :], depth + 1)
        if inner is None or len(words) + len(inner) > _WORD_LIMIT:
            return None
        words += inner
    return words
