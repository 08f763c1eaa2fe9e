"""The bundled scripted agent: an agent CLI without a model, for trials that cost nothing and for tests.

    python -I -S agent.py --script FILE --session-id UUID [--permission-mode MODE] … < prompt

It carries out what `script.py` describes, with real tools on real files, under the permission modes and hooks
of claude 2.1.332, and reports in that CLI's stream. It needs the standard library and its own folder, nothing
else: `-I -S` keeps the installed packages, this one included, out of reach.
"""

from __future__ import annotations

import gc
import importlib
import sys
import types
from pathlib import Path


def _main() -> int:
    gc.disable()  # a tenth of the start-up; a session is short and makes few cycles
    # Isolated mode leaves this folder off sys.path, and putting it there would let `stream.py` shadow others'
    # modules of that name: the folder becomes a package of its own instead.
    package = types.ModuleType("scripted_agent")
    package.__path__ = [str(Path(__file__).resolve().parent)]
    sys.modules[package.__name__] = package
    code: int = importlib.import_module("scripted_agent.main").main(sys.argv[1:])
    return code


if __name__ == "__main__":
    sys.exit(_main())
