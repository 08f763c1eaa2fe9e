"""The git runner: nothing of the operator's configuration counts, nothing secret is told."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from skilltrial.data.errors import GitFailed
from skilltrial.data.git import git, git_text, public_url


def test_the_same_content_is_the_same_commit(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        git("init", "--quiet", cwd=folder)
        (folder / "file").write_text("x")
        git("add", "file", cwd=folder)
        git("commit", "--quiet", "--message", "one", cwd=folder)
        ids.append(git_text("rev-parse", "HEAD", cwd=folder))
    assert ids[0] == ids[1]
    assert git_text("log", "--format=%an|%ae|%aI|%D", cwd=tmp_path / "a") == (
        "Developer|developer@localhost|2000-01-01T00:00:00+00:00|HEAD -> work"
    )


def test_neither_configuration_nor_routing_of_the_operator_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\n\tname = Operator\n[core]\n\thooksPath = hooks\n")
    (home / ".config" / "git" / "ignore").write_text("*.log\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "user.name")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "Routed")
    folder = tmp_path / "repository"
    folder.mkdir()
    git("init", "--quiet", cwd=folder)
    (folder / "seen.log").write_text("x")
    git("add", "--all", cwd=folder)
    git("commit", "--quiet", "--message", "one", cwd=folder)
    assert git_text("ls-files", cwd=folder) == "seen.log"
    assert git_text("log", "--format=%an", cwd=folder) == "Developer"
    assert not (tmp_path / "elsewhere").exists()
    assert not (folder / ".git" / "hooks").exists()


def test_a_failure_names_command_folder_and_reason_and_survives_pickling(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="not a git repository") as caught:
        git("status", cwd=tmp_path)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.arguments, again.folder, again.status) == (("status",), str(tmp_path), 128)
    assert str(again) == str(caught.value)


def test_a_folder_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="there is no folder"):
        git("status", cwd=tmp_path / "missing")


def test_no_credential_reaches_an_error(tmp_path: Path) -> None:
    with pytest.raises(GitFailed) as caught:
        git("ls-remote", "http://user:canary@127.0.0.1:1/x.git", cwd=tmp_path)
    assert "canary" not in str(caught.value)
    assert "http://127.0.0.1:1/x.git" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://user:se@cret@host/x.git", "https://host/x.git"),
        ("https://token@host/x", "https://host/x"),
        ("ssh://git@host/x", "ssh://git@host/x"),
        ("git@host:x.git", "git@host:x.git"),
        ("https://host/a@b", "https://host/a@b"),
        ("/local/path", "/local/path"),
    ],
)
def test_credentials_are_taken_out_of_urls(url: str, public: str) -> None:
    assert public_url(url) == public
