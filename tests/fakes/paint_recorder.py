"""A Qt paint device that records which ink colour is painted on which background colour.

telling_colors() gives each colour token of the theme a different value, so a painted colour
identifies its token. The device finds pairs of tokens in the widgets that it paints.
tests/app/theme/test_painted_pairs.py compares these pairs with the pairs in tests/fakes/contrast.py,
which have a guaranteed contrast.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import product
from typing import Generic, TypeVar, cast

import numpy as np
from PySide6.QtCore import QLine, QLineF, QPoint, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QImage,
    QPaintDevice,
    QPaintEngine,
    QPaintEngineState,
    QPainter,
    QPainterPath,
    QPixmap,
    QPolygonF,
    QRegion,
    QTextItem,
)
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.theme.tokens import LIGHT, Colors, FolderInks, StateInk, SyntaxColors
from tests.fakes.contrast import EXEMPT, SURFACES, PaintKind, Pair
from tests.fakes.pixels import pixels_of

TRANSLUCENT = ("inline_code",)
NEAR = 3  # tolerance of each colour channel (0 to 255), for rounding
OPAQUE = 250  # alpha (0 to 255) from which a colour counts as opaque
NOTHING = QColor(1, 1, 1)  # colour of the pixels before anything is painted
ICON_INKS = 4  # highest number of opaque colours of an icon
# Positions along an outline (0 to 1) at which the background colour is read.
POINTS = (0.05, 0.3, 0.55, 0.8)
LINES = 2  # in pixels: only every second pixel row of a text is compared

Metric = QPaintDevice.PaintDeviceMetric
Dirty = QPaintEngine.DirtyFlag
Place = QPointF | QPoint | QPainterPath.Element
W = TypeVar("W", QRect, QLine, QPoint)
R = TypeVar("R", QRectF, QLineF, QPointF)
# Names of two colour tokens: a background, and the background below it ("" if the first is opaque).
Names = tuple[str, str]


def telling_colors() -> tuple[Colors, dict[str, QColor]]:
    """Return Colors with a different value for each token, and a dict with these values."""
    names = list(_names(LIGHT))
    steps = range(20, 256, 40)
    levels = list(product(steps, steps, steps))
    chosen = random.Random(7).sample(levels, len(names))
    by_name = {
        name: QColor(red, green, blue, 128 if name in TRANSLUCENT else 255)
        for name, (red, green, blue) in zip(names, chosen, strict=True)
    }
    return _filled(by_name), by_name


def _names(
    colors: Colors | StateInk | SyntaxColors | FolderInks, prefix: str = ""
) -> Iterator[str]:
    for one in fields(colors):
        value = getattr(colors, one.name)
        if isinstance(value, str):
            yield f"{prefix}{one.name}"
        else:
            yield from _names(value, f"{one.name}.")


def _filled(by_name: Mapping[str, QColor]) -> Colors:
    texts = {name: color.name(QColor.NameFormat.HexArgb) for name, color in by_name.items()}
    values: dict[str, object] = {}
    for one in fields(Colors):
        part = getattr(LIGHT, one.name)
        if isinstance(part, StateInk | SyntaxColors | FolderInks):
            inner = {inner.name: texts[f"{one.name}.{inner.name}"] for inner in fields(part)}
            values[one.name] = replace(part, **inner)
        else:
            values[one.name] = texts[one.name]
    return replace(LIGHT, **values)


class PaintRecorder:
    """A record of the pairs of ink and background in all widgets painted so far.

    If a text has a colour that is no token, its pair has the colour value instead of a name.
    """

    def __init__(self, by_name: Mapping[str, QColor]) -> None:
        opaque = {name: color for name, color in by_name.items() if name not in TRANSLUCENT}
        backgrounds: dict[Names, QColor] = {(name, ""): opaque[name] for name in opaque}
        for veil, name in product(TRANSLUCENT, opaque):
            backgrounds[veil, name] = _mixed(by_name[veil], opaque[name])
        self._inks, self._backgrounds = _ColorNames(opaque), _ColorNames(backgrounds)
        # Key: pair of ink and background; value: place where it was found first.
        self.pairs: dict[Pair, str] = {}
        self._place = ""

    def record(self, widget: QWidget, place: str, part: QRect | None = None) -> None:
        """Paint a widget, or a part of it, and record its pairs under the name `place`."""
        self._place = place
        region = QRegion(part or widget.rect())
        widget.render(_Device(widget.size(), self), QPoint(0, 0), region)

    def note(self, kind: PaintKind, ink: QColor, background: QColor, what: str) -> None:
        if ink.alpha() < OPAQUE:
            ink = _mixed(ink, background)
        name, below = self._inks.find(ink), self._backgrounds.find(background)
        if name is None and kind is PaintKind.MARK:
            return  # the colour comes from Qt's own style, not from the theme
        on, over = below or (background.name(), "")
        inked = name or ink.name()
        if background != NOTHING and inked not in (on, *EXEMPT) and on not in EXEMPT:
            pair = Pair(inked, on, over or "canvas", kind)
            self.pairs.setdefault(pair, f"{what} in {self._place}")

    def is_surface(self, color: QColor) -> bool:
        return self._inks.find(color) in SURFACES


Key = TypeVar("Key")


class _ColorNames(Generic[Key]):
    """The known colours. The key found for a colour is kept: most colours are painted often."""

    def __init__(self, known: Mapping[Key, QColor]) -> None:
        self._known = known
        self._found: dict[int, Key | None] = {}  # by the RGB value

    def find(self, color: QColor) -> Key | None:
        """Return the key of the nearest colour, or None if no colour is near enough."""
        value = color.rgb()
        if value not in self._found:
            best = min(self._known, key=lambda name: _distance(self._known[name], color))
            is_near = _distance(self._known[best], color) <= NEAR
            self._found[value] = best if is_near else None
        return self._found[value]


def _distance(one: QColor, other: QColor) -> int:
    return max(
        abs(one.red() - other.red()),
        abs(one.green() - other.green()),
        abs(one.blue() - other.blue()),
    )


def _mixed(veil: QColor, below: QColor) -> QColor:
    share = veil.alphaF()
    return QColor.fromRgbF(
        share * veil.redF() + (1 - share) * below.redF(),
        share * veil.greenF() + (1 - share) * below.greenF(),
        share * veil.blueF() + (1 - share) * below.blueF(),
    )


class _Device(QPaintDevice):
    """A paint device that has the size of a widget."""

    def __init__(self, size: QSize, recorder: PaintRecorder) -> None:
        super().__init__()
        self._size = size
        self._engine = _RecordingPaintEngine(size, recorder)

    @override
    def paintEngine(self) -> QPaintEngine:
        return self._engine

    @override
    def metric(self, metric: QPaintDevice.PaintDeviceMetric) -> int:
        known = {
            Metric.PdmWidth: self._size.width(),
            Metric.PdmHeight: self._size.height(),
            Metric.PdmDepth: 32,
            Metric.PdmDevicePixelRatio: 1,
            Metric.PdmDevicePixelRatioScaled: round(QPaintDevice.devicePixelRatioFScale()),
        }
        return known.get(metric, 96)


class _RecordingPaintEngine(QPaintEngine):
    """A paint engine that records each text, shape and picture, and paints it into an image.

    Before an item is painted, its background is read from the image.
    """

    def __init__(self, size: QSize, recorder: PaintRecorder) -> None:
        super().__init__(QPaintEngine.PaintEngineFeature.AllFeatures)
        self._recorder = recorder
        self._image = QImage(size, QImage.Format.Format_RGB32)
        self._image.fill(NOTHING)
        self._painter = QPainter()
        self._clip: QPainterPath | None = None

    @override
    def begin(self, pdev: QPaintDevice) -> bool:
        return self._painter.begin(self._image)

    @override
    def end(self) -> bool:
        return self._painter.end()

    @override
    def type(self) -> QPaintEngine.Type:
        return QPaintEngine.Type.User

    @override
    def updateState(self, state: QPaintEngineState) -> None:
        painter, changed = self._painter, state.state()
        painter.setPen(state.pen())
        painter.setBrush(state.brush())
        painter.setOpacity(state.opacity())
        if changed & Dirty.DirtyClipRegion:
            region = QPainterPath()
            region.addRegion(state.clipRegion())
            self._set_clip(state, region)
        if changed & Dirty.DirtyClipPath:
            self._set_clip(state, state.clipPath())
        painter.resetTransform()
        painter.setClipRegion(self.systemClip())
        if self._clip is not None and state.isClipEnabled():
            painter.setClipPath(self._clip, Qt.ClipOperation.IntersectClip)
        painter.setTransform(state.transform())

    def _set_clip(self, state: QPaintEngineState, path: QPainterPath) -> None:
        """Apply the painter's clip path, in pixels of the image. Qt itself clips to the widget."""
        clip = state.transform().map(path)
        if state.clipOperation() is Qt.ClipOperation.NoClip:
            self._clip = None
        elif state.clipOperation() is Qt.ClipOperation.IntersectClip and self._clip is not None:
            self._clip = self._clip.intersected(clip)
        else:
            self._clip = clip

    @override
    def drawTextItem(self, p: Place, textItem: QTextItem) -> None:
        """Record a text on the backgrounds of its visible pixels.

        The text may be clipped. So it is painted for a test: the pixels that change are visible,
        and their earlier colours are the backgrounds. Afterwards the text is removed.
        """
        painter, ink = self._painter, self._painter.pen().color()
        start = _point(p)
        height = textItem.ascent() + textItem.descent()
        box = QRectF(start.x(), start.y() - textItem.ascent(), textItem.width(), height)
        rect = painter.transform().mapRect(box).toAlignedRect() & self._image.rect()
        if rect.isEmpty():
            return
        before = self._image.copy(rect)
        painter.setFont(textItem.font())
        painter.drawText(start, textItem.text())
        after = self._image.copy(rect)
        earlier, later = pixels_of(before)[::LINES], pixels_of(after)[::LINES]
        for background in np.unique(earlier[earlier != later]).tolist():
            self._recorder.note(PaintKind.TEXT, ink, QColor(background), repr(textItem.text()))
        painter.save()
        painter.resetTransform()
        painter.drawImage(rect, before)
        painter.restore()

    @override
    def drawPath(self, path: QPainterPath) -> None:
        if path.isEmpty():
            return
        painter = self._painter
        pen, brush = painter.pen(), painter.brush()
        if pen.style() is not Qt.PenStyle.NoPen:
            for share in POINTS:
                self._note(PaintKind.MARK, pen.color(), path.pointAtPercent(share), "an outline")
        if brush.style() is Qt.BrushStyle.SolidPattern:
            centre = path.boundingRect().center()
            if path.contains(centre) and not self._recorder.is_surface(brush.color()):
                self._note(PaintKind.MARK, brush.color(), centre, "a shape")
        painter.drawPath(path)

    @override
    def drawRects(self, rects: Iterable[object]) -> None:
        for rect in _each(rects, QRect, QRectF):
            path = QPainterPath()
            path.addRect(QRectF(rect))
            self.drawPath(path)

    @override
    def drawLines(self, lines: Iterable[object]) -> None:
        for line in _each(lines, QLine, QLineF):
            path = QPainterPath(QPointF(line.p1()))
            path.lineTo(QPointF(line.p2()))
            self.drawPath(path)

    @override
    def drawEllipse(self, r: QRect | QRectF) -> None:
        path = QPainterPath()
        path.addEllipse(QRectF(r))
        self.drawPath(path)

    @override
    def drawPolygon(self, points: Iterable[object], mode: QPaintEngine.PolygonDrawMode) -> None:
        path = QPainterPath()
        path.addPolygon(QPolygonF([QPointF(point) for point in _each(points, QPoint, QPointF)]))
        if mode is not QPaintEngine.PolygonDrawMode.PolylineMode:
            path.closeSubpath()
        self.drawPath(path)

    @override
    def drawPixmap(self, r: QRectF | QRect, pm: QPixmap | QImage, sr: QRectF | QRect) -> None:
        whole = pm if isinstance(pm, QImage) else pm.toImage()
        image = whole.copy(QRectF(sr).toRect())
        pixels = pixels_of(image)
        inks = np.unique(pixels[pixels >> 24 >= OPAQUE]).tolist()
        if len(inks) > ICON_INKS:  # a picture of the user, whose colours are no inks
            self._painter.fillRect(QRectF(r), NOTHING)
            return
        for ink in inks:
            self._note(PaintKind.MARK, QColor(ink), QRectF(r).center(), "an icon")
        self._painter.drawImage(QRectF(r), image)

    def _note(self, kind: PaintKind, ink: QColor, place: QPointF, what: str) -> None:
        point = self._painter.transform().map(place).toPoint()
        is_seen = self._clip is None or self._clip.contains(QPointF(point))
        if is_seen and self.systemClip().contains(point) and ink.alpha():
            self._recorder.note(kind, ink, self._image.pixelColor(point), what)


def _point(place: Place) -> QPointF:
    if isinstance(place, QPainterPath.Element):
        return QPointF(place.x, place.y)
    return QPointF(place)


def _each(parts: Iterable[object], whole: type[W], real: type[R]) -> Iterator[W | R]:
    """Yield the shapes of an array. PySide passes the array as a list inside a list."""
    for part in parts:
        if isinstance(part, list):
            yield from _each(cast("list[object]", part), whole, real)
        elif isinstance(part, whole | real):
            yield part
