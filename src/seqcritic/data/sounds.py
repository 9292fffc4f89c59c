"""Sound files as waveforms: wav and flac, one channel, at the rate that a model hears.

A sound that stands inside a dataset, as bytes or as numbers, is written to the cache once: whatever is told of a source
is then one line, the path of a file.

Shapes: N samples.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import conv1d, pad

from seqcritic.errors import UserError
from seqcritic.files import cache_fault, default_cache_directory, write_whole

Samples = npt.NDArray[np.float32]
SUFFIXES = (".wav", ".flac")
ZERO_CROSSINGS = 16  # of the interpolating sinc on each side: more is sharper and slower
PASSED = 0.95  # of the band that is left, so that the filter's slope ends where mirrored frequencies would begin


def is_sound(value: object) -> bool:
    """Tell whether a column holds a sound itself: bytes or numbers, as `datasets` has them."""
    return isinstance(value, Mapping) and (
        {"bytes", "path"} <= value.keys() or {"array", "sampling_rate"} <= value.keys()
    )


def sound_path(sound: Mapping[str, Any], place: str) -> str:
    """Return the path of a file with a sound that stands in a dataset; it is written to the cache once."""
    content = sound.get("bytes")
    if content is None and sound.get("array") is None:
        if not sound.get("path"):
            raise UserError(f"{place}: an empty sound; leave the row out")
        return str(sound["path"])
    if content is None:
        written = io.BytesIO()
        # As floats: the usual 16 bits would round the samples.
        _library().write(
            written, np.asarray(sound["array"], np.float32), int(sound["sampling_rate"]), "FLOAT", format="WAV"
        )
        content = written.getvalue()
    suffix = Path(sound.get("path") or "").suffix or ".wav"
    folder = default_cache_directory() / "sounds"
    path = folder / f"{hashlib.blake2b(content, digest_size=16).hexdigest()}{suffix}"
    if not path.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except OSError as error:
            raise cache_fault(folder, error) from None
    return str(path)


def read_sound(content: bytes, rate: int, path: str) -> Samples:
    """Return the samples [N] of a sound file's content, the mean of its channels, at a rate; `path` is for faults."""
    try:
        samples, own_rate = _library().read(io.BytesIO(content), dtype="float32", always_2d=True)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{path}: not a sound that can be read ({' '.join(str(error).split())}); give wav or flac"
        ) from None
    if len(samples) == 0:
        raise UserError(f"{path}: the sound is empty; leave the row out")
    return resample(samples.mean(axis=1), own_rate, rate)


def resample(samples: Samples, own_rate: int, rate: int) -> Samples:
    """Return samples [N] of one rate at another, by a sinc under a Hann window that leaves out what would be mirrored.

    y(n) = Σ_k x(k) h(n / rate − k / own_rate): the filters of the few phases that n / rate has are the kernels of one
    convolution.
    """
    if own_rate == rate:
        return samples
    # In lowest terms: after `own` samples, and `new` made of them, the filters begin again.
    common = math.gcd(own_rate, rate)
    own, new = own_rate // common, rate // common
    # The lower of both rates: downwards, frequencies that the new one cannot hold would be mirrored.
    cutoff = PASSED * min(own, new)
    width = math.ceil(ZERO_CROSSINGS * own / cutoff)
    times = torch.arange(-width, width + own, dtype=torch.float64)[None] / own
    phases = torch.arange(new, dtype=torch.float64)[:, None] / new  # of the `new` samples in a period
    offsets = (times - phases) * cutoff
    # Hann's window as cos²; clamped, it stays 0 beyond its ends.
    window = torch.cos(offsets.clamp(-ZERO_CROSSINGS, ZERO_CROSSINGS) * math.pi / ZERO_CROSSINGS / 2).square()
    kernels = (torch.sinc(offsets) * window * (cutoff / own)).float()[:, None]  # [phases, 1, width]
    # Silence before and after, and enough of it for a last period that the sound does not fill.
    padded = pad(torch.from_numpy(samples)[None, None], (width, width + own))
    # [phases, periods] to samples in their order in time.
    found = conv1d(padded, kernels, stride=own)[0].t().reshape(-1)
    resampled: Samples = found[: math.ceil(len(samples) * new / own)].numpy()
    return resampled


def _library() -> Any:
    try:
        import soundfile
    except ImportError:
        raise UserError("sounds need the extra 'audio': pip install 'seqcritic[audio]'") from None
    return soundfile
