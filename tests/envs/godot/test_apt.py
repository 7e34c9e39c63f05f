from pathlib import Path

import pytest

from lanista.envs.godot.apt import Source, debian_archives, read_sources

DEB822 = """Types: deb deb-src
# a comment inside
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Enabled: no
Types: deb
URIs: http://disabled.example/debian
Suites: trixie
Components: main

Types: deb-src
URIs: http://sources.example/debian
Suites: trixie
Components: main
"""
ONE_LINE = """# deb http://commented.example/debian trixie main
deb cdrom:[Debian]/ bookworm main
deb [arch=amd64 signed-by=/etc/keys/other.gpg] https://other.example/apt bookworm main
deb\thttp://plain.example/pool trixie main # the country's
deb [ arch=amd64 ] http://tabbed.example/debian/ stable-updates main non-free
deb http://security.example/debian-security trixie-security main
deb http://ubuntu.example/ubuntu noble main
deb http://flat.example/ ./
"""


@pytest.fixture
def apt_folder(tmp_path: Path) -> Path:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(ONE_LINE)
    (parts / "debian.sources").write_text(DEB822)
    (parts / "old.list.save").write_text("deb http://saved.example/debian sid main\n")
    return tmp_path


def test_both_formats_are_read(apt_folder: Path) -> None:
    sources = read_sources(apt_folder)
    assert (
        Source(
            "http://mirror.example/debian",
            ("bookworm", "bookworm-updates"),
            ("main", "contrib"),
            "/usr/share/keyrings/debian-archive-keyring.gpg",
        )
        in sources
    )
    assert Source("https://other.example/apt", ("bookworm",), ("main",), "/etc/keys/other.gpg") in (
        sources
    )
    hosts = " ".join(source.uri for source in sources)
    for absent in ("commented", "disabled", "saved", "sources.example"):
        assert absent not in hosts


def test_debians_own_archives_are_chosen_the_likeliest_first(apt_folder: Path) -> None:
    assert debian_archives(read_sources(apt_folder)) == [
        "http://mirror.example/debian",
        "http://tabbed.example/debian/",
        "http://plain.example/pool",
    ]


def test_a_release_newer_than_this_code_is_known_by_the_machine_itself() -> None:
    sources = [Source("http://mirror.example/debian", ("zurg",), ("main",))]
    assert debian_archives(sources) == []
    assert debian_archives(sources, "zurg") == ["http://mirror.example/debian"]


def test_no_sources_give_no_archive(tmp_path: Path) -> None:
    assert read_sources(tmp_path / "missing") == []
    assert debian_archives([]) == []
