"""Compiling the kernels with the system's compiler at their first use, and keeping the result for the next process.

The file's name holds a hash of all that decides its content. It is written in one step, so that processes which start
at once see all of it or nothing. Whatever goes wrong, there is no library and the caller does without.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from seqcritic.errors import UserError
from seqcritic.files import default_cache_directory

FOLDER = Path(__file__).parent
COMPILERS = ("cc", "gcc", "clang")
# Of -ffast-math only what keeps NaN and infinity; -fopenmp-simd obeys the pragmas and starts no threads.
FLAGS = ("-std=c99", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fopenmp-simd")
SHARED = ("-fPIC", "-shared")
FOR_THIS_PROCESSOR = (("-march=native",), ("-mcpu=native",), ())  # the first that the compiler knows
SOURCES = {"float32": ("kernels.c",), "float64": ("kernels.c", "-DDOUBLE"), "bfloat16": ("products.c",)}  # and flags
TIME_LIMIT = 60.0  # seconds for one call of the compiler


class NoLibrary(Exception):
    """There is no compiled library; the message says why."""


@cache
def load(type_name: str) -> ctypes.CDLL:
    """Return the kernels for float32 or float64, or the products of bfloat16, compiled for this processor.

    Raises NoLibrary where there are none.
    """
    compiler, version = find_compiler()
    name = file_name(type_name, version)
    try:
        kept = default_cache_directory() / "native" / name
        return _open(kept) or _build(compiler, type_name, kept)
    except (OSError, UserError):
        pass  # no folder to keep it in
    try:
        # A library that is loaded no longer needs its file.
        with tempfile.TemporaryDirectory(prefix="seqcritic-") as folder:
            return _build(compiler, type_name, Path(folder, name))
    except OSError as error:
        raise NoLibrary(f"no folder to compile in: {error.strerror or error}") from None


def find_compiler() -> tuple[str, str]:
    """Return the path of a C compiler and what it says of its version."""
    for name in COMPILERS:
        if path := shutil.which(name):
            try:
                told = subprocess.run([path, "--version"], capture_output=True, timeout=TIME_LIMIT, check=True)
            except (OSError, subprocess.SubprocessError):
                continue
            return path, told.stdout.decode(errors="replace").partition("\n")[0].strip()
    raise NoLibrary("no C compiler")


def file_name(type_name: str, version: str) -> str:
    """Name the library after its source, the compiler, its flags and the processor."""
    source, *flags = SOURCES[type_name]
    parts = [(FOLDER / source).read_text(encoding="utf-8"), version, *FLAGS, *SHARED, *flags, _processor()]
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()
    return f"kernels-{type_name}-{digest}.so"


def _processor() -> str:
    """Return the processor's model and abilities, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    # A set, since every core repeats them; and these lines alone, since clock speeds change from read to read.
    told = {line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))}
    return "\n".join([platform.machine(), *sorted(told)])


def _open(path: Path) -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None  # not there, or damaged


def _build(compiler: str, type_name: str, path: Path) -> ctypes.CDLL:
    """Compile to a temporary file beside `path`, move it there and load it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, since only within a file system a file is replaced in one step.
    descriptor, temporary = tempfile.mkstemp(prefix=path.stem, suffix=".tmp", dir=path.parent)
    os.close(descriptor)
    try:
        _compile(compiler, type_name, temporary)
        # mkstemp lets its owner alone read it; a cache may be shared.
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    # An interrupt too must leave no half a library behind.
    except BaseException:
        os.unlink(temporary)
        raise
    library = _open(path)
    if library is None:
        raise NoLibrary(f"{compiler} made a library that cannot be loaded")
    return library


def _compile(compiler: str, type_name: str, output: str) -> None:
    told, (source, *flags) = "", SOURCES[type_name]
    for processor in FOR_THIS_PROCESSOR:
        command = [compiler, *FLAGS, *processor, *SHARED, *flags, str(FOLDER / source), "-o", output, "-lm"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise NoLibrary(f"{compiler} does not run: {error}") from None
        if done.returncode == 0:
            return
        told = done.stderr.decode(errors="replace").strip().partition("\n")[0]
    raise NoLibrary(f"{compiler} fails: {told}")
