"""What a Bash command writes: exact for what the line fixes, null for what it does not."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrial.tasks.guard.writes import write_targets

CWD = "/work/repo"


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("echo > f; >g", ["f", "g"]),
        ("echo > 'a b' 2>> \"c d\"", ["a b", "c d"]),
        ("echo > $'a\\tb'", ["a\tb"]),
        ("echo > a\\ b", ["a b"]),
        ("echo >| 3; echo <> rw", ["3", "rw"]),
        ("exec > log; time touch n; ! touch m", ["log", "n", "m"]),
        ("{ echo a; } > f; (echo) > g", ["f", "g"]),
        ("cat > >(tee z)", ["z"]),
        ("diff <(sort a) <(sort b) > d", ["d"]),
        ('x=$(echo hi > inner); echo "$(rm q)" `touch r`', ["inner", "q", "r"]),
        ("cat <<EOF\n$(touch made)\nEOF", ["made"]),
        ("cat <<'EOF'\n$(touch made)\nEOF", []),
        ("touch a & touch b", ["a", "b"]),
        ("coproc touch c", ["c"]),
        ("touch -- -a", ["-a"]),
    ],
)
def test_redirections_and_what_runs_inside_words(command: str, targets: list[str]) -> None:
    assert write_targets(command, CWD) == tuple(targets)


@pytest.mark.parametrize(
    "command",
    [
        'echo "a > b"',
        "grep '>' f",
        "[[ a > b ]] && (( x > 3 )); let 'y > 2'",
        "git commit -m \"$(cat <<'EOF'\na > b\nEOF\n)\"",
        "# echo > f",
        "echo hi >&3 2>&- 3<&0",
        "echo > /dev/null 2> /dev/stderr > /dev/fd/3",
        "awk '$1 > 3 {print $2}' f",
        "awk '{print ($1 > 2)}' f",
        "sed -n '/x > y/p' f",
        "find . -name x -print",
        "ls | xargs grep x",
        "python app.py; python -m pytest; node x.js; bash script.sh; make",
        "command -v touch",
        "tar tf a.tgz",
        "curl -s http://x | jq .",
        "wget -qO- http://x",
        "git -C sub status; git checkout -b x; git stash list",
        "ssh host 'cat > f'",
        "",
    ],
)
def test_what_only_looks_like_a_write_is_none(command: str) -> None:
    assert write_targets(command, CWD) == ()


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("cd sub && touch f", ["sub/f"]),
        ("cd /tmp; touch f; cd - ", ["/tmp/f"]),
        ("cd sub; cd ..; touch f; cd ../..; touch g", ["f", "/g"]),
        ("(cd sub; touch f); touch g", ["sub/f", "g"]),
        ("cd a || exit 1; touch b", ["a/b"]),
        ('OUT=log; echo > $OUT.txt; echo > "${OUT}"', ["log.txt", "log"]),
        ("a=1; a=2; touch $a", ["2"]),
        ("export A=f; touch $A", ["f"]),
        ('for f in a b; do touch "$f.txt"; done', ["a.txt", "b.txt"]),
        ("touch {a,b}.txt f{1..3}", ["a.txt", "b.txt", "f1", "f2", "f3"]),
        ('f() { touch "$1"; }; f x; f y', ["x", "y"]),
        ("if a; then touch b; elif c; then touch d; else touch e; fi", ["b", "d", "e"]),
        ("case $x in a) touch p;; *) touch q;; esac", ["p", "q"]),
        ("while read l; do echo $l >> o; done < i", ["o"]),
        ("touch ../x /etc/y ./z/../w", ["/work/x", "/etc/y", "w"]),
    ],
)
def test_folders_constants_and_branches_are_followed(command: str, targets: list[str]) -> None:
    assert write_targets(command, CWD) == tuple(targets)


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("bash -c 'echo hi > x'", ["x"]),
        ('bash -lc "cd sub && touch f"; touch g', ["sub/f", "g"]),
        ("eval 'touch e'", ["e"]),
        ("trap 'rm -f t' EXIT", ["t"]),
        ("bash <<< 'touch h'", ["h"]),
        ("X=n; bash <<EOF\ntouch $X\nEOF", ["n"]),
        ("sudo -u me env A=1 timeout -k 5 10 nice -n 3 touch q", ["q"]),
        ("nohup ./run.sh > out.log 2>&1 &", ["out.log"]),
        ("find . -exec touch made {} +; ls", None),
        ("find . -exec grep x {} \\; -fprint found", ["found"]),
        ("ls | xargs -I{} echo {} > log", ["log"]),
    ],
)
def test_commands_inside_commands_are_followed(command: str, targets: list[str] | None) -> None:
    assert write_targets(command, CWD) == (None if targets is None else tuple(targets))


@pytest.mark.parametrize(
    ("command", "targets"),
    [
        ("cp a b; cp a b d; cp a d/; cp -t d a; cp --target=d a", ["b", "d/a", "d/b"]),
        ("mv a b; mv c d/", ["a", "b", "c", "d/c"]),
        ("ln -s a b; ln -s ../c", ["b", "c"]),
        ("install -m 755 a bin/b; install -d x/y", ["bin/b", "x/y"]),
        ("mkdir -p -m 700 a/b; rmdir c; rm -rf d", ["a/b", "c", "d"]),
        ("touch -r ref -d now f; truncate -s 0 g", ["f", "g"]),
        ("chmod +x a b; chown me: c", ["a", "b", "c"]),
        ("dd if=a of=b bs=1", ["b"]),
        ("curl -sLo out.html -D h http://x; curl -O http://x/y/z.tgz", ["out.html", "h", "z.tgz"]),
        ("wget -O f http://x", ["f"]),
        ("tee -a a b < c; sort -o s t", ["a", "b", "s"]),
        ("tar czf a.tgz d; tar -cf - d", ["a.tgz"]),
        ("rsync -a a b/; rsync -a a host:b", ["b"]),
        ("sed --in-plac=.o s/a/b/ f; sed -ni p g", ["f", "f.o", "g"]),
        ("awk '{print $1 > \"o.txt\"}' f", ["o.txt"]),
    ],
)
def test_commands_write_what_their_model_says(command: str, targets: list[str]) -> None:
    assert write_targets(command, CWD) == tuple(targets)


@pytest.mark.parametrize(
    "command",
    [
        "echo > $X",
        "echo > ~/f",
        "echo > *.txt",
        'echo > "$(date).log"',
        "echo >& $fd",
        "$CMD a",
        "cd $X && touch f",
        "cd a || cd b; touch f",
        "for d in *; do cd $d; done; touch f",
        "read x; touch $x",
        "source x; touch f",
        "ls | xargs rm",
        "find . -delete",
        "python3 -c 'x'",
        "node -e '1'",
        "perl -pi -e s/a/b/ f",
        "curl x | bash",
        "echo hi | python3",
        "cat <<EOF | sh\ntouch a\nEOF",
        "tar xf a",
        "patch -p1 < d",
        "unzip a.zip",
        "git apply x",
        "sed -i 's/a/b/e' f",
        "awk '{print | \"sh\"}' f",
        'echo "unterminated',
        "echo a\0b",
        "echo " + "a" * 33_000,
        "( " * 150 + "a" + " )" * 150,
        "f() { f; }; f",
        "echo \ud800",
    ],
)
def test_what_the_line_does_not_fix_cannot_be_told(command: str) -> None:
    assert write_targets(command, CWD) is None


def test_a_root_as_working_folder_holds_everything() -> None:
    assert write_targets("touch a /b/c", "/") == ("a", "b/c")


def test_without_the_parser_nothing_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skilltrial.tasks.guard.shell.binary", lambda: None)
    assert write_targets("ls", CWD) is None


_NAMES = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0/\r"), min_size=1, max_size=30)
_SHELL = st.text(st.sampled_from(list("abcf >|&;$(){}[]<'\"`\\\n*?~=#!-0123./ ")), max_size=60)


@settings(max_examples=60, deadline=None)
@given(_NAMES)
def test_a_quoted_name_is_told_as_it_is(name: str) -> None:
    expected = os.path.normpath(name)
    assert write_targets(f"echo > {shlex.quote(name)}", CWD) == (_inside(expected),)


def _inside(name: str) -> str:
    return {"..": "/work"}.get(name, name)


@settings(max_examples=150, deadline=None)
@given(_SHELL)
def test_no_command_raises(command: str) -> None:
    targets = write_targets(command, CWD)
    assert targets is None or all(isinstance(target, str) for target in targets)


@pytest.mark.corpus
def test_real_commands_are_read() -> None:
    corpus = os.environ.get("SKILLTRIAL_CORPUS")
    if corpus is None:
        pytest.skip("SKILLTRIAL_CORPUS is not set")
    lines = (Path(corpus) / "bash_commands.jsonl").read_text().splitlines()
    found = [write_targets(json.loads(line)["command"], CWD) for line in lines]
    assert len(found) == len(lines)
    assert sum(targets is None for targets in found) / len(found) < 0.15
