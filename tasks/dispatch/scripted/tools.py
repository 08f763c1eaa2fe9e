"""The file tools, with the texts of claude 2.1.332 (measured; those of `Glob` and `Grep` are not)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from .stream import Json

SCHEMAS: Final[dict[str, dict[str, tuple[str, bool]]]] = {
    "Bash": {
        "command": ("string", True),
        "description": ("string", False),
        "timeout": ("number", False),
        "run_in_background": ("boolean", False),
    },
    "Edit": {
        "file_path": ("string", True),
        "old_string": ("string", True),
        "new_string": ("string", True),
        "replace_all": ("boolean", False),
    },
    "Glob": {"pattern": ("string", True), "path": ("string", False)},
    "Grep": {
        "pattern": ("string", True),
        "path": ("string", False),
        "glob": ("string", False),
        "output_mode": ("string", False),
        "-i": ("boolean", False),
        "-n": ("boolean", False),
    },
    "Read": {"file_path": ("string", True), "offset": ("number", False), "limit": ("number", False)},
    "Skill": {"skill": ("string", True), "args": ("string", False)},
    "Write": {"file_path": ("string", True), "content": ("string", True)},
}
"""Parameters of each tool: type, and whether it is required."""

_READ_LIMIT: Final = 256 * 1024
_JSON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {"string": str, "number": (int, float), "boolean": bool}
_CURRENT: Final = " (file state is current in your context — no need to Read it back)"


class Answer(NamedTuple):
    """What a tool gives back. `error` is null where the CLI leaves `is_error` out."""

    content: str
    structured: object
    error: bool | None = None

    @classmethod
    def failure(cls, content: str) -> Answer:
        """An answer that is an error."""
        return cls(content, f"Error: {content}", True)


class Files:
    """Reads and changes files in one working directory; knows which ones were read."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._known: set[Path] = set()

    def run(self, tool: str, given: Json) -> Answer:
        """Carry out a valid and permitted call."""
        run = {"Read": self._read, "Write": self._write, "Edit": self._edit, "Glob": self._glob, "Grep": self._grep}
        try:
            return run[tool](given)
        except OSError as error:
            return Answer.failure(f"{error.strerror}: {error.filename}")

    def problem(self, tool: str, given: Json, readable: bool) -> str | None:
        """Why a call is refused before any hook or permission sees it; `readable`: reading needs no approval."""
        if tool not in ("Edit", "Write"):
            return None
        path = self._cwd / given["file_path"]
        if not path.is_file():
            missing = f"File does not exist. Note: your current working directory is {self._cwd}."
            return missing if tool == "Edit" and given["old_string"] else None
        if path not in self._known and not readable:
            return "File has not been read yet. Read it first before writing to it."
        return self._edit_problem(path, given) if tool == "Edit" else None

    def _edit_problem(self, path: Path, given: Json) -> str | None:
        old = given["old_string"]
        if old == given["new_string"]:
            return "No changes to make: old_string and new_string are exactly the same."
        count = _text(path).count(old)
        if not old:
            return "Cannot create new file - file already exists."
        if count == 0:
            return f"String to replace not found in file.\nString: {old}"
        if count > 1 and not given.get("replace_all", False):
            return (
                f"Found {count} matches of the string to replace, but replace_all is false. To replace all "
                "occurrences, set replace_all to true. To replace only one occurrence, please provide more context to "
                f"uniquely identify the instance.\nString: {old}"
            )
        return None

    def _read(self, given: Json) -> Answer:
        path = self._cwd / given["file_path"]
        if path.is_dir():
            return Answer.failure(f"EISDIR: illegal operation on a directory, read '{path}'")
        if not path.is_file():
            return Answer.failure(f"File does not exist. Note: your current working directory is {self._cwd}.")
        size = path.stat().st_size
        if size > _READ_LIMIT and "limit" not in given:
            shown = f"{size / 1024 / 1024:.1f}MB" if size >= 1024 * 1024 else f"{size / 1024:.1f}KB"
            return Answer.failure(
                f"File content ({shown}) exceeds maximum allowed size (256KB). Use offset and limit parameters to read "
                "specific portions of the file, or search for specific content instead of reading the whole file."
            )
        text = _text(path)
        self._known.add(path)
        lines = text.split("\n")
        first = max(int(given.get("offset", 1)), 1)
        shown_lines = lines[first - 1 :][: int(given["limit"])] if "limit" in given else lines[first - 1 :]
        numbered = "\n".join(f"{first + index}\t{line}" for index, line in enumerate(shown_lines))
        counts = {"numLines": len(shown_lines), "startLine": first, "totalLines": len(lines)}
        file = {"filePath": str(path), "content": "\n".join(shown_lines), **counts}
        return Answer(numbered, {"type": "text", "file": file})

    def _write(self, given: Json) -> Answer:
        path = self._cwd / given["file_path"]
        content = given["content"]
        before = _text(path) if path.is_file() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, content)
        self._known.add(path)
        change = {"filePath": str(path), "content": content, "structuredPatch": patch(before, content)}
        if before is None:
            text = f"File created successfully at: {path}{_CURRENT}"
        else:
            text = f"The file {path} has been updated successfully.{_CURRENT}"
        kind = "create" if before is None else "update"
        return Answer(text, {"type": kind, **change, "originalFile": before, "userModified": False})

    def _edit(self, given: Json) -> Answer:
        path = self._cwd / given["file_path"]
        old, new, everywhere = given["old_string"], given["new_string"], given.get("replace_all", False)
        known = path in self._known
        before = _text(path) if path.is_file() else ""
        after = before.replace(old, new, -1 if everywhere else 1) if old else new
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, after)
        structured: Json = {
            "filePath": str(path),
            "oldString": old,
            "newString": new,
            "originalFile": before,
            "structuredPatch": patch(before, after),
            "userModified": False,
            "replaceAll": everywhere,
        }
        if not known:
            structured["contentNotInModelContext"] = True
        text = f"The file {path} has been updated successfully."
        return Answer(text + (_CURRENT if known else ""), structured)

    def _glob(self, given: Json) -> Answer:
        root = self._cwd / given.get("path", ".")
        found = [str(path) for path in sorted(root.glob(given["pattern"])) if path.is_file() and not _in_git(path)]
        structured = {"filenames": found, "numFiles": len(found), "truncated": False}
        return Answer("\n".join(found) or "No files found", structured)

    def _grep(self, given: Json) -> Answer:
        try:
            pattern = re.compile(given["pattern"], re.IGNORECASE if given.get("-i") else 0)
        except re.error as error:
            return Answer.failure(f"regex parse error: {error}")
        mode = given.get("output_mode", "files_with_matches")
        files: list[str] = []
        lines: list[str] = []
        for path in _searched(self._cwd / given.get("path", "."), given.get("glob", "**/*")):
            numbered = enumerate(_text(path).splitlines(), start=1)
            hits = [(number, line) for number, line in numbered if pattern.search(line)]
            if hits:
                files.append(str(path))
                number = bool(given.get("-n", True))
                lines += [f"{path}:{at}:{line}" if number else f"{path}:{line}" for at, line in hits]
        shown = lines if mode == "content" else files
        text = "\n".join(shown) if mode != "count" else str(len(lines))
        structured = {"mode": mode, "filenames": files, "numFiles": len(files), "numLines": len(lines)}
        return Answer(text or "No matches found", structured)


def input_problem(tool: str, given: Json) -> str | None:
    """What is wrong with a call's parameters, in the CLI's words."""
    schema = SCHEMAS[tool]
    found = [
        f"The required parameter `{key}` is missing" for key, (_, must) in schema.items() if must and key not in given
    ]
    found += [f"An unexpected parameter `{key}` was provided" for key in given if key not in schema]
    for key, (kind, _) in schema.items():
        if key not in given:
            continue
        value = given[key]
        fits = isinstance(value, bool) == (kind == "boolean") and isinstance(value, _JSON_TYPES[kind])
        if not fits:
            is_a = next((name for name, types in _JSON_TYPES.items() if isinstance(value, types)), "object")
            found.append(f"The parameter `{key}` type is expected as `{kind}` but provided as `{is_a}`")
    noun = "issue" if len(found) == 1 else "issues"
    return f"InputValidationError: {tool} failed due to the following {noun}:\n" + "\n".join(found) if found else None


def patch(before: str | None, after: str) -> list[Json]:
    """The change as the CLI's `structuredPatch`; empty for a new file."""
    if before is None or before == after:
        return []
    import difflib  # here, since it costs a sixth of the start-up and many sessions change nothing

    old, new = before.splitlines(), after.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
                continue
            lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
        start, end = group[0], group[-1]
        span = {"oldStart": start[1] + 1, "oldLines": end[2] - start[1]}
        hunks.append({**span, "newStart": start[3] + 1, "newLines": end[4] - start[3], "lines": lines})
    return hunks


def _searched(root: Path, pattern: str) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    pattern = pattern if "/" in pattern else f"**/{pattern}"
    for path in sorted(root.glob(pattern)):
        if path.is_file() and not _in_git(path):
            yield path


def _in_git(path: Path) -> bool:
    return ".git" in path.parts


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _save(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "replace"))
