"""The agent CLI of a campaign: where it is, and which version it says it is. No model is called."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from skilltrial.data.digests import file_digest
from skilltrial.data.errors import Problem
from skilltrial.data.plan import PlannedHarness
from skilltrial.data.spec import CampaignSpec
from skilltrial.descriptors.model import SLOT, HarnessDescriptor
from skilltrial.tasks.dispatch.command import fixed_values

PROBE_LIMIT_S: Final = 20.0


def planned_harness(spec: CampaignSpec, descriptor: HarnessDescriptor) -> PlannedHarness:
    """The harness as it is on this machine; a CLI that is missing or silent is null, for preflight to refuse."""
    binary = find_binary(spec.binary, descriptor)
    return PlannedHarness(
        label=descriptor.label,
        descriptor=descriptor.model_dump(mode="json"),
        binary=binary,
        cli_version=probe_version(binary, descriptor) if binary else None,
        inputs={name: file_digest(path) for name, path in sorted(spec.harness_inputs.items())},
    )


def input_problems(spec: CampaignSpec, descriptor: HarnessDescriptor, file: str) -> list[Problem]:
    """Harness inputs that the descriptor does not know, that it needs and were not given, or that are no files."""
    found = []
    for name, path in spec.harness_inputs.items():
        where = f"harness_inputs.{name}"
        if name not in descriptor.inputs:
            known = ", ".join(descriptor.inputs) or "none"
            found.append(Problem(file, where, str(path), f"is no input of harness {descriptor.label!r}", known))
        elif not path.is_file():
            found.append(Problem(file, where, str(path), "is not a file"))
    for name, declared in descriptor.inputs.items():
        if declared.required and name not in spec.harness_inputs:
            message = f"is missing; harness {descriptor.label!r} needs it: {declared.description}"
            found.append(Problem(file, f"harness_inputs.{name}", None, message))
    return found


def find_binary(given: Path | None, descriptor: HarnessDescriptor) -> str | None:
    """Absolute path of the CLI's executable: the given one, else the descriptor's, on PATH; null: not found."""
    name = str(given) if given else _filled(descriptor.binary, fixed_values())
    found = shutil.which(name)
    return os.path.abspath(found) if found else None  # noqa: PTH100 - links stay: CLIs look at their own name


def probe_version(binary: str, descriptor: HarnessDescriptor, *, limit_s: float = PROBE_LIMIT_S) -> str | None:
    """The version that the CLI tells, asked in an environment of nobody's; null: it told none in time."""
    with tempfile.TemporaryDirectory(prefix="probe-") as scratch:
        slots = {**fixed_values(), "binary": binary, **dict.fromkeys(("project", "home", "config", "tmp"), scratch)}
        argv = [_filled(text, slots) for text in descriptor.version.argv]
        output = _output(argv, _environment(descriptor, slots), Path(scratch), limit_s)
    found = re.search(descriptor.version.pattern, output, re.MULTILINE)
    return found.group(1) if found else None


def _output(argv: list[str], environment: Mapping[str, str], folder: Path, limit_s: float) -> str:
    """What a command prints within the limit; "" if it cannot be started, fails or does not end."""
    try:
        process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return ""
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        output = b""
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # also what a wrapper script left behind
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
    return output.decode(errors="replace") if process.returncode == 0 else ""


def _environment(descriptor: HarnessDescriptor, slots: Mapping[str, str]) -> dict[str, str]:
    """The variables of a dispatch as far as they are known without a cell."""
    inherited = {name: os.environ[name] for name in descriptor.environment.inherit if name in os.environ}
    known = {
        name: _filled(text, slots)
        for name, text in descriptor.environment.set.items()
        if all(slot in slots for slot in SLOT.findall(text))
    }
    return {**inherited, **known}


def _filled(text: str, slots: Mapping[str, str]) -> str:
    return SLOT.sub(lambda slot: slots.get(slot[1], slot[0]), text)
