"""`skilltrial`, the command line. Nothing heavy is imported before a command needs it.

Exit codes: 0 done; 1 error; 2 usage or invalid input; 3 finished with unsettled cells; 4 refused by preflight.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TYPE_CHECKING, Final

from cyclopts import App

if TYPE_CHECKING:
    from skilltrial.data.errors import SkilltrialError

_COMMANDS: Final = {
    "init": "Write evals/evals.json with one valid eval beside a SKILL.md.",
    "validate": "Check an evals.json or campaign.toml and list every problem.",
    "plan": "Show cells, order, digests and forecast; write nothing.",
    "run": "Run a campaign: dispatch the missing cells, grade, print the verdict.",
    "status": "Show the cells of a campaign.",
    "retry": "Dispatch the failed cells of a campaign again.",
    "tables": "List the tables and their columns, print rows, or query them.",
    "inspect": "Tell what happened in an event stream on disk.",
    "schema": "Print the JSON schema of a file that skilltrial reads or writes.",
}

_EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 error; 2 usage or invalid input; 3 finished, some cells unsettled; "
    "4 refused, nothing dispatched."
)


def _version() -> str:
    from importlib.metadata import version

    return version("skilltrial")


_OF_THE_DISK: Final = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES}
"""Errors of the system that say all there is to say: no traceback would help."""

app = App(
    name="skilltrial",
    help="Controlled trials of agent skills: does this skill really change what the agent does?",
    help_format="plaintext",
    help_epilogue=_EXIT_CODES,
    version_flags=["--version"],
    version=_version,
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # `main` says what became of the work
)
for _name, _help in _COMMANDS.items():
    app.command(f"skilltrial.flows.cli.{_name}:{_name}", name=_name, help=_help)


def main() -> None:
    """Run the command of `sys.argv` and exit with its code."""
    from skilltrial.flows.cli.output import complain

    try:
        code = app()
        sys.stdout.flush()
    except KeyboardInterrupt:
        complain("interrupted; what was finished is kept, run the same command again to go on")
        sys.exit(130)
    except BrokenPipeError:
        # whoever read our output, such as `head`, has enough: no fault; nothing may be flushed there at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except Exception as error:
        from skilltrial.data.errors import SkilltrialError

        if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
            complain(f"{error.strerror}: {error.filename or 'no path told'}; what was finished is kept")
            sys.exit(1)
        if not isinstance(error, SkilltrialError):
            raise
        complain(str(error))
        if "skilltrial.flows.runtime" in sys.modules:
            _leave_at_once_without_a_server(error)
        sys.exit(error.exit_code)
    sys.exit(code or 0)


def _leave_at_once_without_a_server(error: SkilltrialError) -> None:
    """Prefect would try for seven seconds to deliver each of its events before it lets go (3.9.1, measured)."""
    from skilltrial.flows.runtime import ServerLost

    if isinstance(error, ServerLost):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(error.exit_code)
