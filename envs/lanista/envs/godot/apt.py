"""A private apt: Debian's archive as this machine knows it, and a tree that touches no other.

Nothing is installed on the system. apt itself fetches and checks signatures, with Debian's own
keyring; only its folders are moved, and what the machine's configuration hooks onto it is left out.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lanista.envs.errors import RunError

KEYRINGS = (
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
)
"""Debian's keyring, by its newer and its older name."""

_SUITES = frozenset(
    (
        *("oldoldstable", "oldstable", "stable", "testing", "unstable", "sid"),
        *("buster", "bullseye", "bookworm", "trixie", "forky", "duke"),
    )
)
_CHOSEN = re.compile(r"^Inst (\S+) \((\S+) [^\n]*\[(\w+)\]\)", re.MULTILINE)
_BESIDE = ("-updates", "-backports", "-proposed-updates")
_CLEARED = (
    "APT::Architectures",
    "APT::Update::Pre-Invoke",
    "APT::Update::Post-Invoke",
    "APT::Update::Post-Invoke-Success",
    "DPkg::Pre-Invoke",
    "DPkg::Post-Invoke",
    "DPkg::Pre-Install-Pkgs",
)


@dataclass(frozen=True)
class Source:
    """An entry of apt's sources.

    Attributes:
        uri: Address of the archive.
        suites: Releases named.
        components: Parts of them named.
        signed_by: Keyring named, empty if none is.
    """

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""


def read_sources(apt_folder: Path = Path("/etc/apt")) -> list[Source]:
    """Read the machine's enabled binary sources, in both of apt's formats; unreadable files out."""
    sources: list[Source] = []
    parts = apt_folder / "sources.list.d"
    named = [apt_folder / "sources.list"]
    named += sorted(parts.iterdir()) if parts.is_dir() else []
    for path in named:
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if path.suffix == ".sources":
            sources.extend(_stanzas(text))
        elif path.suffix == ".list":
            sources.extend(_lines(text))
    return sources


def debian_archives(sources: list[Source], codename: str = "") -> list[str]:
    """Choose the addresses at which Debian's main archive is to be found, the likeliest first.

    Args:
        sources: The machine's.
        codename: Of the Debian that runs here, where one does.
    """
    suites = _SUITES | {codename} - {""}
    ranked: list[tuple[int, str]] = []
    for source in sources:
        address = urlsplit(source.uri)
        if address.scheme not in ("http", "https") or "main" not in source.components:
            continue
        if not any(_release(suite) in suites for suite in source.suites):
            continue
        if "debian-archive" in source.signed_by:
            rank = 0
        elif source.signed_by:
            # Other people's archives name Debian's releases too, and keys of their own.
            continue
        else:
            rank = 1 if address.path.rstrip("/").endswith("/debian") else 2
        ranked.append((rank, source.uri))
    return list(dict.fromkeys(uri for _, uri in sorted(ranked, key=lambda item: item[0])))


class PrivateApt:
    """apt with every folder of its own.

    Args:
        folder: Where its lists and archives go; made. What was fetched before is used again.
        architecture: Debian's name of it, such as ``amd64``.
        keyring: Keys that the archive has to be signed with.
        lock: Descriptor of a lock on the folder; apt holds it too, so that it outlasts this process
            where apt does.
    """

    def __init__(self, folder: Path, architecture: str, keyring: Path, lock: int) -> None:
        self._folder = folder
        self._keyring = keyring
        self._lock = lock
        for part in ("etc/parts", "state/lists/partial", "cache/archives/partial", "log"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "state" / "status").touch()
        self._configuration = folder / "etc" / "apt.conf"
        settings = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": folder / "etc" / "parts",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State": folder / "state",
            "Dir::State::status": folder / "state" / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Cache::archives": "archives",
            "Dir::Log": folder / "log",
            "APT::Architecture": architecture,
            "APT::Architectures::": architecture,
            "APT::Install-Recommends": "false",
            "APT::Install-Suggests": "false",
            "APT::Default-Release": "sid",
            "APT::Keep-Downloaded-Packages": "true",
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::http::Timeout": "30",
            "Acquire::https::Timeout": "30",
            "Debug::NoLocking": "true",
        }
        lines = [f"#clear {name};" for name in _CLEARED]
        lines += [f'{name} "{value}";' for name, value in settings.items()]
        self._configuration.write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def archives(self) -> Path:
        """Folder of the packages fetched."""
        return self._folder / "cache" / "archives"

    def use(self, uri: str, suite: str) -> None:
        """Take packages from this suite of this archive alone, and fetch its lists.

        Raises:
            RunError: If they cannot be fetched or are not signed as they should be.
        """
        (self._folder / "etc" / "parts" / "archive.sources").write_text(
            f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\nTargets: Packages\n"
            f"Signed-By: {self._keyring}\n",
            encoding="utf-8",
        )
        self._run("update")

    def fetch(self, package: str, on_percent: Callable[[float], None]) -> list[Path]:
        """Fetch a package and all it needs as if nothing were installed; return the files.

        Raises:
            RunError: If that fails; what was fetched is kept for the next time.
        """
        names = [
            f"{name}_{version.replace(':', '%3a')}_{architecture}.deb"
            for name, version, architecture in _CHOSEN.findall(
                self._run("install", "--simulate", package)
            )
        ]
        self._run("install", "--download-only", package, on_percent=on_percent)
        packages = [self.archives / name for name in names]
        missing = [path.name for path in packages if not path.is_file()]
        if missing or not packages:
            raise RunError(f"apt-get did not fetch {', '.join(missing) or package}.")
        return packages

    def _run(
        self, command: str, *arguments: str, on_percent: Callable[[float], None] | None = None
    ) -> str:
        reading, writing = os.pipe()
        printed = self._folder / "log" / f"{command}.txt"
        with os.fdopen(reading) as status, printed.open("wb") as output:
            try:
                process = subprocess.Popen(
                    [
                        "apt-get",
                        f"--config-file={self._configuration}",
                        f"--option=APT::Status-Fd={writing}",
                        "--assume-yes",
                        command,
                        *arguments,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writing, self._lock),
                    env=os.environ | {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
                )
            finally:
                os.close(writing)
            try:
                for line in status:
                    # dlstatus:3:41.5:Retrieving file 3 of 121
                    kind, _, rest = line.partition(":")
                    if kind == "dlstatus" and on_percent is not None:
                        on_percent(float(rest.split(":")[1]))
                code = process.wait()
            finally:
                process.kill()
                process.wait()
        text = printed.read_text(encoding="utf-8", errors="replace")
        if code != 0:
            raise RunError(f"apt-get {command} failed: {_complaints(text)}")
        return text


def missing_programs() -> list[str]:
    """Name what a private apt needs and this machine lacks."""
    return [name for name in ("apt-get", "dpkg", "dpkg-deb") if shutil.which(name) is None]


def _complaints(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line[3:] for line in lines if line.startswith("E: ")] or lines[-3:]
    return " ".join(said) or "it says nothing"


def _release(suite: str) -> str:
    for ending in _BESIDE:
        suite = suite.removesuffix(ending)
    return suite


def _lines(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        kind, _, rest = line.replace("\t", " ").partition(" ")
        if kind != "deb":
            continue
        rest = rest.strip()
        signed_by = ""
        if rest.startswith("["):
            options, _, rest = rest[1:].partition("]")
            named = dict(option.partition("=")[::2] for option in options.split())
            signed_by = named.get("signed-by", "")
        words = rest.split()
        if len(words) >= 2:
            yield Source(words[0], (words[1],), tuple(words[2:]), signed_by)


def _stanzas(text: str) -> Iterator[Source]:
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in kept.split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[name] = f"{fields.get(name, '')} {line.strip()}"
            elif ":" in line:
                name, _, value = line.partition(":")
                name = name.strip().lower()
                fields[name] = value.strip()
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0", "off", "without"):
            continue
        for uri in fields.get("uris", "").split():
            yield Source(
                uri,
                tuple(fields.get("suites", "").split()),
                tuple(fields.get("components", "").split()),
                fields.get("signed-by", "").strip(),
            )
