"""The pixels of a Qt image as an array, for tests that compare pictures pixel by pixel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QImage


def pixels_of(image: QImage) -> NDArray[np.uint32]:
    """Return the colours of an image (0xAARRGGBB, not premultiplied) by row and column.

    QColor.rgba() and QColor.rgb() return the same numbers.
    """
    whole = image.convertToFormat(QImage.Format.Format_ARGB32)
    # The buffer does not keep the image alive.
    return np.frombuffer(whole.constBits(), np.uint32).reshape(whole.height(), whole.width()).copy()
