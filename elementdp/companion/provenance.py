"""What made a number: the commit, the source files and the versions. Pages and recorded runs both say it."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from elementdp.files import source_hash

ROOT = Path(__file__).resolve().parents[2]
"""The folder this package lies in: the repository, or where it was installed."""

_SHOWN = ("elementdp", "numpy", "scipy", "torch")


def commit(root: Path = ROOT) -> str:
    """The full hash of the checkout's commit; "unknown (not a git checkout)" where there is none."""
    return _git(root, "rev-parse", "HEAD") or "unknown (not a git checkout)"


def checkout(root: Path = ROOT) -> str:
    """The commit in short, marked when the tree holds something else."""
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    return f"{head} with local changes" if head and _git(root, "status", "--porcelain") else head or commit(root)


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def package_hash(root: Path = ROOT) -> str:
    """The :func:`source_hash` of the package's own modules."""
    return source_hash(root, (root / "elementdp").rglob("*.py"))


def versions() -> dict[str, str]:
    """The versions that decide numbers."""
    found = {"Python": platform.python_version()}
    for package in _SHOWN:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
