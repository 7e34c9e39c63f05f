import io
import json
import subprocess
import sys
import tarfile
import threading
import time
from pathlib import Path

import pytest

from lanista.envs.errors import InputError, RunError
from lanista.envs.godot import installer
from lanista.envs.godot.apt import Source
from lanista.envs.godot.engine import Engine, installed_program, run_engine
from lanista.envs.godot.installer import install_engine, provide_engine

GODOT = """#!/bin/sh
case "$1" in
  --version) echo 4.5.1.stable.made_up ;;
  *) echo lanista 42 ;;
esac
"""
LOADER = """#!/bin/sh
shift 2
exec "$@"
"""
APT = """#!/bin/sh
# A stand-in for apt-get: keeps a log, fetches two packages, fails where it is told to.
echo "$*" >> "$FAKE/log"
config=$(printf '%s\\n' "$@" | sed -n 's/^--config-file=//p')
folder=$(dirname "$(dirname "$config")")
status=$(printf '%s\\n' "$@" | sed -n 's/^--option=APT::Status-Fd=//p')
case "$*" in
  *update*)
    if [ -e "$FAKE/slow" ]; then touch "$FAKE/updating"; sleep 2; touch "$FAKE/updated"; fi
    grep -h URIs "$folder"/etc/parts/*.sources >> "$FAKE/uris"
    if grep -q //broken "$folder"/etc/parts/*.sources; then echo "E: no route"; exit 100; fi ;;
  *--simulate*)
    echo "Inst libthing (1:2.0-1 Debian:unstable [all])"
    echo "Inst libllvm22 (22-1 Debian:unstable [amd64])"
    echo "Inst godot (4.5.1-1 Debian:unstable [amd64])" ;;
  *--download-only*)
    for name in libthing_1%3a2.0-1_all libllvm22_22-1_amd64 godot_4.5.1-1_amd64; do
      if [ -e "$FAKE/offline" ] && [ $name = godot_4.5.1-1_amd64 ]; then
        echo "E: Failed to fetch godot"; exit 100; fi
      [ -e "$folder/cache/archives/$name.deb" ] || echo "$name" >> "$FAKE/fetched"
      cp "$FAKE/$name.deb" "$folder/cache/archives/"
      echo "dlstatus:1:50.0:Retrieving file" > "/proc/self/fd/$status"
    done ;;
esac
"""
DPKG_DEB = """#!/bin/sh
cat "$2"
"""


def make_package(path: Path, files: dict[str, str], links: dict[str, str] | None = None) -> None:
    with tarfile.open(path, "w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size, member.mode = len(text), 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(f"./{name}")
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)


def make_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Debian machine with a stand-in for apt and no engine; the folder of the stand-in."""
    fake = tmp_path / "fake"
    programs = tmp_path / "bin"
    make_program(programs / "apt-get", APT)
    make_program(programs / "dpkg-deb", DPKG_DEB)
    make_program(programs / "dpkg", "#!/bin/sh\necho amd64\n")
    fake.mkdir()
    make_package(
        fake / "libthing_1%3a2.0-1_all.deb",
        {
            "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": LOADER,
            "usr/share/doc/libthing/copyright": "words",
        },
        {
            "usr/lib/x86_64-linux-gnu/libthing.so": "libthing.so.1",
            "usr/lib/x86_64-linux-gnu/libout.so": "/etc/alternatives/libout.so",
        },
    )
    make_package(fake / "libllvm22_22-1_amd64.deb", {"usr/lib/x86_64-linux-gnu/libLLVM.so": "x"})
    make_package(fake / "godot_4.5.1-1_amd64.deb", {"usr/bin/godot": GODOT, "usr/bin/other": "no"})
    keyring = tmp_path / "keyring.gpg"
    keyring.write_text("")
    monkeypatch.setattr(installer, "KEYRINGS", (tmp_path / "none", keyring))
    monkeypatch.setattr(
        installer, "read_sources", lambda: [Source("http://a.example/debian", ("sid",), ("main",))]
    )
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.delenv("GODOT", raising=False)
    monkeypatch.setenv("FAKE", str(fake))
    monkeypatch.setenv("LANISTA_CACHE", str(tmp_path / "cache with space"))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return fake


def test_an_engine_is_installed_once(machine: Path) -> None:
    told: list[tuple[float, str]] = []
    engine = provide_engine(lambda share, note: told.append((share, note)))
    prefix = installed_program().parent
    assert engine == Engine((str(installed_program()),), "4.5.1.stable.made_up")
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert 0.35 in [round(share, 2) for share in shares], "apt's own progress is passed on"
    kept = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    assert kept == {
        "godot",
        "usr/bin/godot",
        "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        "usr/lib/x86_64-linux-gnu/libthing.so",
    }
    assert {path.name for path in prefix.parent.iterdir()} == {"engine", "install.lock"}
    log = (machine / "log").read_text()
    assert provide_engine() == install_engine() == engine
    assert (machine / "log").read_text() == log


def test_the_engine_runs_from_wherever_it_is_moved_to(machine: Path, tmp_path: Path) -> None:
    provide_engine()
    moved = tmp_path / "moved here"
    installed_program().parent.rename(moved)
    (tmp_path / "link").symlink_to(moved / "godot")
    for program in (moved / "godot", tmp_path / "link"):
        assert run_engine((str(program),), ["--x"], timeout_s=20).output == "lanista 42\n"


def test_an_engine_that_is_here_is_left_as_it_is(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_program(machine / "own", "#!/bin/sh\necho 4.4.stable.own\n")
    monkeypatch.setenv("GODOT", str(machine / "own"))
    assert install_engine().version == "4.4.stable.own"
    monkeypatch.setenv("GODOT", str(machine / "nothing"))
    with pytest.raises(InputError, match=r"\$GODOT names"):
        install_engine()
    assert not (machine / "log").exists()


def test_what_was_fetched_is_used_again(machine: Path) -> None:
    (machine / "offline").write_text("")
    with pytest.raises(RunError, match="apt-get install failed: Failed to fetch godot"):
        provide_engine()
    assert not installed_program().exists()
    (machine / "offline").unlink()
    provide_engine()
    fetched = (machine / "fetched").read_text().split()
    assert sorted(fetched) == sorted(set(fetched))
    assert len(fetched) == 3


def test_the_next_archive_is_tried(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [
        Source(f"http://{name}.example/debian", ("sid",), ("main",)) for name in ("broken", "good")
    ]
    monkeypatch.setattr(installer, "read_sources", lambda: sources)
    provide_engine()
    asked = (machine / "uris").read_text().split()[1::2]
    assert asked == ["http://broken.example/debian", "http://good.example/debian"]


def test_no_network_is_said_in_one_line(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("http://broken.example/debian", ("sid",), ("main",))
    monkeypatch.setattr(installer, "read_sources", lambda: [source])
    with pytest.raises(RunError, match=r"look at the network.*\$GODOT.*no route") as caught:
        provide_engine()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["truncated", "refused"])
def test_a_broken_package_is_fetched_anew(machine: Path, damage: str, tmp_path: Path) -> None:
    package = machine / "godot_4.5.1-1_amd64.deb"
    whole = package.read_bytes()
    reader = tmp_path / "bin" / "dpkg-deb"
    if damage == "truncated":
        package.write_bytes(whole[:700])
    else:
        make_program(reader, '#!/bin/sh\ncat "$2"\nexit 2\n')
    with pytest.raises(RunError, match="is broken"):
        provide_engine()
    assert not installed_program().exists()
    package.write_bytes(whole)
    make_program(reader, DPKG_DEB)
    assert provide_engine().version == "4.5.1.stable.made_up"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("#!/bin/sh\necho cannot load libthing >&2; exit 127\n", "does not run.*cannot load"),
        ("#!/bin/sh\n[ $1 = --version ] && echo 4.5.stable.x || exit 5\n", r"no script.*status 5"),
    ],
)
def test_an_engine_that_does_not_run_is_not_installed(
    machine: Path, script: str, expected: str
) -> None:
    make_package(machine / "godot_4.5.1-1_amd64.deb", {"usr/bin/godot": script})
    with pytest.raises(RunError, match=expected):
        provide_engine()
    assert not installed_program().exists()


def test_a_broken_installation_is_replaced(machine: Path) -> None:
    make_program(installed_program(), "#!/bin/sh\nexit 1\n")
    (installed_program().parent / "left").write_text("")
    assert provide_engine().version == "4.5.1.stable.made_up"
    assert not (installed_program().parent / "left").exists()


def test_installations_at_the_same_time_become_one(machine: Path) -> None:
    engines: list[Engine] = []
    threads = [threading.Thread(target=lambda: engines.append(provide_engine())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(engines) == 4
    assert len(set(engines)) == 1
    assert (machine / "log").read_text().count(" update") == 1


def test_an_apt_that_outlives_its_installation_is_waited_for(machine: Path) -> None:
    (machine / "slow").write_text("")
    code = (
        "from pathlib import Path\n"
        "from lanista.envs.godot import installer\n"
        f"installer.KEYRINGS = (Path({str(machine)!r}),)\n"
        "installer.debian_archives = lambda *_: ['http://a.example/debian']\n"
        "installer.provide_engine()\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", code])
    for _ in range(600):
        if (machine / "updating").exists():
            break
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    told: list[str] = []
    (machine / "slow").unlink()
    provide_engine(lambda _, note: told.append(note))
    assert "waiting for another installation" in told
    assert (machine / "updated").exists(), "apt had ended before the second one began"


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("apt-get", "no Debian machine with apt-get"),
        ("keyring", "Debian's keyring is not here"),
        ("sources", "name no archive of Debian's"),
        ("architecture", "its architecture riscv64 is none of amd64, arm64"),
        ("linux", "no Debian machine"),
        ("colon", "without : ; "),
        ("space", "1 GiB"),
    ],
)
def test_a_machine_that_cannot_have_one_is_told_what_to_do(
    machine: Path, monkeypatch: pytest.MonkeyPatch, missing: str, expected: str, tmp_path: Path
) -> None:
    if missing == "apt-get":
        monkeypatch.setattr(installer, "missing_programs", lambda: ["apt-get"])
    elif missing == "keyring":
        monkeypatch.setattr(installer, "KEYRINGS", (tmp_path / "none",))
    elif missing == "sources":
        monkeypatch.setattr(installer, "read_sources", list)
    elif missing == "architecture":
        make_program(tmp_path / "bin" / "dpkg", "#!/bin/sh\necho riscv64\n")
    elif missing == "linux":
        monkeypatch.setattr("platform.system", lambda: "Darwin")
    elif missing == "colon":
        monkeypatch.setenv("LANISTA_CACHE", str(tmp_path / "a:b"))
    else:
        monkeypatch.setattr(installer, "_NEEDED_BYTES", 2**60)
    with pytest.raises(InputError, match=expected) as caught:
        provide_engine()
    assert "\n" not in str(caught.value)
    assert not (machine / "log").exists()
    if missing not in ("colon", "space"):
        assert "standard (not .NET) build of Godot 4.4 or newer" in str(caught.value)
        assert "$GODOT" in str(caught.value)


@pytest.mark.slow
def test_debians_own_engine_is_installed_and_plays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GODOT", raising=False)
    monkeypatch.setenv("LANISTA_CACHE", str(tmp_path / "cache with space"))
    code = (
        "import json; from lanista.envs.godot.installer import provide_engine; "
        "engine = provide_engine(); print(json.dumps([engine.command, engine.version]))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    found = [json.loads(process.communicate(timeout=600)[0]) for process in running]
    assert found[0] == found[1]
    command, version = found[0]
    assert command == [str(installed_program())]
    assert tuple(map(int, version.split(".")[:2])) >= (4, 4)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 2**29
    script = tmp_path / "say.gd"
    script.write_text('extends SceneTree\nfunc _init():\n\tprint("it ", "runs")\n\tquit()\n')
    finished = run_engine(
        tuple(command), ["--headless", "--script", str(script)], timeout_s=60, folder=tmp_path
    )
    assert (finished.code, "it runs" in finished.output) == (0, True)
