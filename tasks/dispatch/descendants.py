"""Finding the processes of one round and ending them. Standard library only, like the supervisor that uses it.

A CLI's children leave its process group (Claude Code starts each shell in a session of its own), so a group
is not enough. Linux: a supervisor is the adopter of every orphan below it ("child subreaper"), and what
slipped away all the same is known by a variable in its environment. Elsewhere there are neither adoption nor
readable environments: a process that became a daemon is then found by its process group only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from typing import NamedTuple

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class Entry(NamedTuple):
    """One row of the process table."""

    parent: int
    group: int
    zombie: bool


def become_adopter() -> None:
    """Make orphans below this process its children (Linux; elsewhere nothing happens)."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies (Linux; kept over `exec`)."""
    if LINUX:
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def table() -> dict[int, Entry]:
    """Every process by its id."""
    return _linux_table() if LINUX else _other_table()


def family(root: int, group: int | None, mark: bytes | None) -> set[int]:
    """Ids of the living processes below `root`, in the process group, or with the mark; never `root` itself.

    `mark` is a whole `NAME=value` as it stands in an environment.
    """
    entries = table()
    children: dict[int, list[int]] = {}
    for pid, entry in entries.items():
        children.setdefault(entry.parent, []).append(pid)
    below: set[int] = set()
    queue = [root]
    while queue:
        for child in children.get(queue.pop(), []):
            if child not in below:
                below.add(child)
                queue.append(child)
    for pid, entry in entries.items():
        if pid not in below and (entry.group == group or (mark is not None and _has_mark(pid, mark))):
            below.add(pid)
    return {pid for pid in below if pid != root and not entries[pid].zombie}


def marked(mark: bytes) -> set[int]:
    """Ids of the living processes with the mark, a whole `NAME=value` as it stands in an environment."""
    return {pid for pid, entry in table().items() if not entry.zombie and _has_mark(pid, mark)}


def send(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to each process that still exists and may be signalled."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _linux_table() -> dict[int, Entry]:
    found: dict[int, Entry] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 (pathlib doubles the start-up time of the supervisor)
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as handle:  # noqa: PTH123
                # the name in parentheses may itself hold parentheses and spaces
                state, parent, group = handle.read().rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        found[int(name)] = Entry(int(parent), int(group), state in (b"Z", b"X"))
    return found


def _has_mark(pid: int, mark: bytes) -> bool:
    if not LINUX:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as handle:  # noqa: PTH123
            return mark in handle.read().split(b"\0")
    except OSError:
        return False


def _other_table() -> dict[int, Entry]:
    listing = subprocess.run(["ps", "-axo", "pid=,ppid=,pgid=,stat="], capture_output=True, check=False).stdout
    found: dict[int, Entry] = {}
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) >= 4:
            found[int(fields[0])] = Entry(int(fields[1]), int(fields[2]), fields[3].startswith(b"Z"))
    return found
