"""The pictures of README.md out of screenshots of the workbench. Flat colours look as good with 256 of them, at a third of the size."""
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PICTURES = {  # name in media: screenshot below build, what of it is shown (None: all)
    "screenshot.png": ("screenshot.png", None),
    "nan.png": ("screenshots/stops/*-the-first-NaN.png", (0, 34, 1500, 605)),
    "tensor.png": ("screenshots/watch/*-the-page-alone.png", (348, 34, 1500, 810)),
    "programs.png": ("screenshots/training/*-programs-view*.png", (0, 34, 1500, 605)),
    "memory.png": ("screenshots/looks/*-memory-page-in-dark.png", (348, 34, 1500, 605)),
}

for name, (source, box) in PICTURES.items():
    [found] = (ROOT / "build").glob(source)
    picture = Image.open(found).convert("RGB")
    target = ROOT / "media" / name
    picture.crop(box or (0, 0, *picture.size)).quantize(256, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1024:.0f} KiB")
