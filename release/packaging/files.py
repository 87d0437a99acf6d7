"""Archives that are the same, byte by byte, for the same contents."""

import gzip
import hashlib
import io
import os
import shutil
import struct
import tarfile
import time
import zipfile
from pathlib import Path

from .project import epoch

# Of gzip and zip. Tests, which do not upload anything, set it to the fastest.
level = 9


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def copy(source: Path, to: Path, mode: int = 0o644) -> Path:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)
    to.chmod(mode)
    return to


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def entries(folder: Path) -> list[Path]:
    """Everything below a folder, in a fixed order."""
    return sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def settle(folder: Path) -> None:
    """Gives everything below a folder the time of the commit."""
    for path in [folder, *entries(folder)]:
        if not path.is_symlink():
            os.utime(path, (epoch(), epoch()))


def tar(folder: Path, prefix: str = "", owners: dict[str, int] | None = None) -> bytes:
    """A tar file of what is below a folder. `owners` has the owners of paths that are not root's."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in entries(folder):
            name = path.relative_to(folder).as_posix()
            entry = archive.gettarinfo(path, prefix + name)
            entry.uid = entry.gid = (owners or {}).get(name, 0)
            entry.uname = entry.gname = ""
            entry.mtime = epoch()
            with path.open("rb") if entry.isfile() else io.BytesIO() as content:
                archive.addfile(entry, content if entry.isfile() else None)
    return out.getvalue()


def gzipped(content: bytes) -> bytes:
    """Without a time of its own, as by `gzip --no-name`."""
    return gzip.compress(content, compresslevel=level, mtime=0)


def zip_folder(folder: Path, to: Path, prefix: str = "") -> None:
    """A zip file of the files below a folder, with their permissions."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for path in entries(folder):
            if path.is_file():
                entry = zipfile.ZipInfo(prefix + path.relative_to(folder).as_posix(), _moment())
                entry.external_attr = (0o100000 | path.stat().st_mode & 0o777) << 16
                entry.create_system = 3
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, level)


def settle_zip(path: Path) -> None:
    """Gives the files in a zip file, which another program has made, the time of the commit."""
    year, month, day, hour, minute, second = _moment()
    moment = struct.pack("<HH", hour << 11 | minute << 5 | second // 2, (year - 1980) << 9 | month << 5 | day)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        place = archive.start_dir
        for entry in archive.infolist():
            content[entry.header_offset + 10 : entry.header_offset + 14] = moment
            content[place + 12 : place + 16] = moment
            place += 46 + sum(struct.unpack_from("<HHH", content, place + 28))
    path.write_bytes(content)


def _moment() -> tuple[int, ...]:
    """The time of the commit; zip files know none before 1980."""
    return time.gmtime(max(epoch(), 315532800))[:6]
