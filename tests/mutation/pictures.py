"""Mutations of pictures in chats: their identity, their positions, their files, their prices."""

from __future__ import annotations

import ast

from tests.mutation.places import Mutation, Place, argument, call, comparison, each

VISION = ("tests/engine/vision/test_pictures.py",)
STORED = ("tests/app/store/test_pictures.py",)


def _source(text: str) -> Place:
    """Return a Place that finds the operation with this source."""
    return each(ast.BinOp, lambda node: node if ast.unparse(node) == text else None)


PICTURE_MUTATIONS = (
    Mutation(
        "the first id of a picture has 20 bits of its hash",
        "engine.picture_ids:picture_ids",
        _source("ids[0] & _FIRST_HASH"),
        "{old} & 0xFFFFE",
        ("tests/engine/test_picture_ids.py",),
    ),
    Mutation(
        "all pictures of one size have the same ids",
        "engine.vision.seeing:Vision.ids",
        argument("picture_ids", 0),
        "{old}[64:]",
        VISION,
    ),
    Mutation(
        "a cut divides a picture",
        "engine.picture_ids:before_picture",
        each(ast.While, lambda node: node.test),
        "False",
        ("tests/engine/test_picture_ids.py",),
    ),
    Mutation(
        "restored caches have no shift of their positions",
        "engine.cache.hot:HotCache.adopt",
        call("position_shift"),
        "0",
        VISION,
    ),
    Mutation(
        "a picture in another size has the pixels of its full size",
        "app.store.pictures:PictureFiles.resized",
        argument("make_view", 1),
        "PictureSize.FULL",
        STORED,
    ),
    Mutation(
        "no file of a picture is ever deleted",
        "app.store.pictures:PictureFiles.remove_unused",
        comparison(ast.Lt),
        "False",
        STORED,
    ),
    Mutation(
        "each size of a picture has the price of its full size",
        "app.controllers.picture_prices:PicturePrices.price",
        argument("view_size", 2),
        "PictureSize.FULL",
        ("tests/app/widgets/test_picture_chips.py",),
    ),
    Mutation(
        "a picture that is added during a move stays in the old folder",
        "app.store.place:DataPlace._copy_new_pictures",
        each(ast.If, lambda node: node.test),
        "False",
        ("tests/app/store/test_place.py",),
    ),
    Mutation(
        "an edited message keeps the pictures that were removed in its editor",
        "app.controllers.edited_files:EditedFiles.changed_files",
        call("get"),
        "None",
        ("tests/app/widgets/test_edited_files.py",),
    ),
)
