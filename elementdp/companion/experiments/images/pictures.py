"""Photos on a page: the largest elements, and what one user holds. A stand-in says so in the figure itself."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from elementdp.companion.data.pseudo_users import PseudoUsers
from elementdp.companion.exhibit import Exhibit
from elementdp.companion.experiments.images.photo_set import PhotoSet


def largest_elements(photos: PhotoSet, clusters: int, seed: int, name: str, rows: int = 5, columns: int = 6) -> Exhibit:
    """Some photos of each of the largest elements, with the share of their commonest label."""
    elements = photos.elements(clusters, seed)
    sizes = np.bincount(elements, minlength=clusters)
    shown = np.argsort(-sizes)[:rows]
    titles = []
    for element in shown:
        labels = np.bincount(photos.labels[elements == element], minlength=len(photos.names))
        share = f"{100 * labels.max() / labels.sum():.0f} % {photos.names[labels.argmax()]}"
        titles.append(f"element {element}: {sizes[element]} pictures, {share}")
    sheet = [np.flatnonzero(elements == element)[:columns] for element in shown]
    commonest = sum(int(np.bincount(photos.labels[elements == element]).max()) for element in np.flatnonzero(sizes))
    return Exhibit(
        name=f"fig-{name}-elements",
        caption=f"Some of each of the largest of {clusters} elements, with its commonest label. Data: {photos.label}.",
        figure=_sheet(photos, sheet, columns, titles),
        alt=f"{rows} rows of pictures, one row an element: {'; '.join(titles)}. Pictures in a row look alike.",
        numbers={
            f"{name}-pure": f"{100 * commonest / len(elements):.0f}",
            f"{name}-kind": "invented pictures, a stand-in for photos" if photos.stand_in else "real photos",
        },
    )


def album(photos: PhotoSet, held: PseudoUsers, name: str, rows: int = 3, columns: int = 8) -> Exhibit:
    """Some of what the first user holds."""
    mine = held.user == 0
    one = held.image[mine]
    count = len(np.unique(held.element[mine]))
    each = np.bincount(held.image, minlength=len(photos.labels))
    return Exhibit(
        name=f"fig-{name}-user",
        caption=f"Some of what one user holds: {len(one)} pictures from {count} elements. Data: {photos.label}.",
        figure=_sheet(photos, [one[columns * row : columns * (row + 1)] for row in range(rows)], columns),
        alt=f"{min(rows * columns, len(one))} of the {len(one)} pictures of one user; neighbours are often alike.",
        numbers={f"{name}-shared": f"{each.mean():.0f}", f"{name}-each": int(held.elements_each.mean())},
    )


def _sheet(photos: PhotoSet, rows: Sequence[NDArray[np.int64]], columns: int, titles: Sequence[str] = ()) -> Figure:
    height = (0.95 + 0.2 * bool(titles)) * len(rows) * 6 / columns
    drawing, axes = plt.subplots(len(rows), columns, figsize=(6.0, height), squeeze=False)
    for number, row in enumerate(rows):
        for axis in axes[number]:
            axis.set_axis_off()
        for axis, picture in zip(axes[number], photos.pictures(row), strict=False):
            axis.imshow(picture)
        if titles:
            axes[number][0].set_title(" ")  # room for a line that may be longer than a picture is wide
            place = axes[number][0].transAxes
            axes[number][0].text(0, 1.06, titles[number], transform=place).set_in_layout(False)
    if photos.stand_in:
        drawing.suptitle("stand-in: invented pictures, not photos")
    return drawing
