"""A screenshot as a small PNG: a palette of colours that differ, and every other colour as the nearest of these.

Chromium decodes its own picture; numpy and zlib do the rest, so that no other program is needed.
"""

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

COLOURS, UNLIKE = 250, 150  # at most, and the squared distance between two of them
PIXELS = """async (address) => {
  const image = await createImageBitmap(await (await fetch(address)).blob());
  const pen = new OffscreenCanvas(image.width, image.height).getContext("2d");
  pen.drawImage(image, 0, 0);
  const bytes = pen.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return [image.width, image.height, btoa(text)];
}"""


def save_small(page: Any, path: Path, largest: int) -> None:
    """Save what a page shows; one that is larger than so many bytes is refused."""
    shot = base64.b64encode(page.screenshot()).decode()
    blank = page.context.browser.new_page()  # no page's policy stands in the way there
    width, height, text = blank.evaluate(PIXELS, f"data:image/png;base64,{shot}")
    blank.close()
    rgba = np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)
    path.write_bytes(small_png(rgba[:, :, :3]))
    if path.stat().st_size > largest:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes, above {largest:,}: take fewer colours.")
    print(path, f"{path.stat().st_size:,} bytes")


def small_png(rgb: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """A picture of rows, columns and red, green, blue as a PNG with a palette."""
    height, width = rgb.shape[:2]
    seen, which, counts = np.unique(rgb.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    often = seen[np.argsort(-counts, kind="stable")].astype(np.int32)
    palette = often[:1]
    for colour in often[1:]:  # rare ones too, if they are unlike the others: a thin line keeps its colour
        if len(palette) < COLOURS and ((palette - colour) ** 2).sum(axis=1).min() > UNLIKE:
            palette = np.vstack([palette, colour])
    distances = ((seen[:, None].astype(np.int32) - palette[None]) ** 2).sum(axis=2)
    indices = distances.argmin(axis=1).astype(np.uint8)[which.reshape(-1)].reshape(height, width)
    rows = np.hstack([np.zeros((height, 1), np.uint8), indices])  # each row begins with its filter: none
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": palette.astype(np.uint8).tobytes(),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
