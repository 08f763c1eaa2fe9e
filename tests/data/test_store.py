"""The store: where things lie, which attempt counts, and writes that a kill cannot leave half done."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import platformdirs
import pytest

from skilltrial.data.errors import StoreConflict, UnknownName
from skilltrial.data.models import Kept
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import (
    CampaignFolder,
    CellFolder,
    Store,
    kept_model,
    read_model,
    replace_folder,
    scratch_path,
    write_bytes,
    write_model,
)
from tests.analysis.trials import TREATMENT, Trial, make_plan


class Small(Kept):
    """A record of these tests."""

    name: str
    size: int | None = None


@pytest.fixture
def trial(store: Store) -> Trial:
    return Trial(make_plan(), store)


@pytest.fixture(autouse=True)
def no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SKILLTRIAL_HOME", "SKILLTRIAL_WORKSPACES"):
        monkeypatch.delenv(name, raising=False)


def test_the_given_home_comes_before_the_environments_and_workspaces_lie_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLTRIAL_HOME", str(tmp_path / "environment"))
    assert Store.open(tmp_path / "given") == Store(tmp_path / "given", tmp_path / "given/workspaces")
    assert Store.open() == Store(tmp_path / "environment", tmp_path / "environment/workspaces")
    monkeypatch.setenv("SKILLTRIAL_WORKSPACES", str(tmp_path / "apart"))
    assert Store.open() == Store(tmp_path / "environment", tmp_path / "apart")


def test_without_a_word_the_platform_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_data_path", lambda: tmp_path)
    assert Store.open() == Store(tmp_path / "skilltrial", tmp_path / "workspaces")


def test_links_on_the_way_to_a_home_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert Store.open(tmp_path / "link").home == tmp_path / "real"


def test_only_campaigns_with_a_plan_are_known(trial: Trial) -> None:
    with pytest.raises(UnknownName, match=r"there is no campaign 'trial'; known: \(none\)"):
        trial.store.planned("trial")
    trial.store.campaign("begun").root.mkdir(parents=True)
    write_model(trial.store.campaign("trial").plan_path, trial.plan)
    assert trial.store.campaigns() == ["trial"]
    assert trial.store.planned("trial") == (trial.store.campaign("trial"), trial.plan)


def test_attempts_are_counted_by_number_and_strange_folders_are_none(tmp_path: Path) -> None:
    cell = CellFolder(tmp_path)
    for name in ("attempt-2", "attempt-10", "attempt-x", "attempt-", "attempts", "other-3"):
        (tmp_path / name).mkdir()
    assert [attempt.number for attempt in cell.attempts()] == [2, 10]
    assert cell.begin().root == tmp_path / "attempt-11"


def test_the_first_attempt_is_number_one(tmp_path: Path) -> None:
    begun = CellFolder(tmp_path / "new").begin()
    assert (begun.number, begun.root.is_dir(), begun.record()) == (1, True, None)


def test_the_newest_finished_attempt_of_this_version_of_the_cell_counts(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.store.campaign("trial").cell(cell)
    trial.attempt(cell, Outcome.RATE_LIMITED)
    trial.attempt(cell, Outcome.COMPLETED)
    trial.attempt(cell, Outcome.HUNG, cell_digest="another version")
    folder.begin()  # under way, or killed
    newest = folder.newest(cell.digest)
    assert newest is not None
    assert (newest.attempt, newest.outcome) == (2, Outcome.COMPLETED)
    assert [record.attempt for record in folder.records(cell.digest)] == [1, 2]
    assert folder.settled(cell.digest) == newest
    assert folder.newest("a third version") is None


def test_a_failure_after_a_settled_attempt_unsettles_the_cell(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    trial.attempt(cell, Outcome.COMPLETED)
    trial.attempt(cell, Outcome.NETWORK)
    campaign = trial.store.campaign("trial")
    assert campaign.cell(cell).settled(cell.digest) is None
    assert campaign.settled(trial.plan) == []
    assert [(tried, record.outcome) for tried, record in campaign.newest(trial.plan)] == [(cell, Outcome.NETWORK)]


def test_a_half_written_record_is_no_record(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    attempt = trial.attempt(cell)
    attempt.record_path.write_bytes(attempt.record_path.read_bytes()[:100])
    assert attempt.record() is None


def test_a_cells_folder_is_its_label_and_a_records_identity_is_its_place(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT, 2)
    attempt = trial.attempt(cell)
    assert attempt.root == trial.store.home / "campaigns/trial/cells/alpha/with_skill/r2/attempt-1"
    assert attempt.fragment("usage") == attempt.root / "tables/usage.parquet"
    record = attempt.record()
    assert record is not None
    assert record.cell == cell.label == "alpha/with_skill/r2"
    assert record.identity == {"eval_id": "alpha", "condition": "with_skill", "repetition": 2, "attempt": 1}


def test_a_model_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "small.json"
    write_model(path, Small(name="é"))
    assert path.read_text("utf-8") == '{\n  "name": "é",\n  "size": null\n}\n'
    assert read_model(path, Small) == kept_model(path, Small) == Small(name="é")


@pytest.mark.parametrize(
    "content", [b"", b'{"name": "a"', b"[]", b'{"name": 1}', b'{"name": "a", "newer": 1}', b"\xff"]
)
def test_what_is_no_such_model_is_not_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "small.json"
    path.write_bytes(content)
    assert kept_model(path, Small) is None


def test_what_is_not_there_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert kept_model(tmp_path / "absent.json", Small) is None
    assert kept_model(tmp_path / "file" / "below.json", Small) is None


def test_a_failed_write_leaves_the_old_bytes_and_nothing_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_that_write_one_file_leave_the_bytes_of_one_of_them(tmp_path: Path) -> None:
    path, contents = tmp_path / "file", [bytes([65 + number]) * 50_000 for number in range(8)]
    threads = [threading.Thread(target=write_bytes, args=(path, content)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stands", [True, False])
def test_a_finished_folder_takes_the_place_of_what_was_there(tmp_path: Path, stands: bool) -> None:
    target = tmp_path / "below" / "target"
    if stands:
        (target / "old").mkdir(parents=True)
    scratch = scratch_path(tmp_path / "target")
    (scratch / "new").mkdir(parents=True)
    replace_folder(scratch, target)
    assert [path.name for path in target.iterdir()] == ["new"]
    assert [path.name for path in target.parent.iterdir()] == ["target"]
    assert not scratch.exists()


def test_a_campaign_has_one_holder_at_a_time(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path / "trial")
    assert folder.holder() is None
    with folder.locked():
        assert folder.holder() == os.getpid()
        with pytest.raises(StoreConflict) as caught, CampaignFolder(folder.root).locked():
            pass
        assert str(caught.value) == (
            f"campaign 'trial' is being run by another process (pid {os.getpid()}); wait for it to end"
        )
        assert folder.holder() == os.getpid()
    assert folder.holder() is None
    with folder.locked():
        assert folder.holder() == os.getpid()


def test_the_lock_goes_with_a_holder_that_is_killed(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path / "trial")
    program = (
        "import sys; from pathlib import Path; from skilltrial.data.store import CampaignFolder\n"
        "with CampaignFolder(Path(sys.argv[1])).locked():\n    print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(folder.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert folder.holder() == other.pid
        with pytest.raises(StoreConflict, match=f"pid {other.pid}"), folder.locked():
            pass
        other.kill()
        other.wait()
    assert folder.holder() is None
    with folder.locked():
        assert folder.holder() == os.getpid()
