"""Mutations of the prefix cache, in memory and on disk."""

from __future__ import annotations

import ast

from tests.mutation.places import Mutation, argument, call, comparison, each

MACHINE = ("tests/oracle/test_machine.py",)
CACHE = ("tests/engine/cache", "tests/oracle/test_machine.py")


def is_save(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "save"


CACHE_MUTATIONS = (
    Mutation(
        "a snapshot of another token is restored",
        "engine.cache.hot:HotCache.is_restored",
        each(ast.BoolOp, lambda node: node if isinstance(node.op, ast.Or) else None),
        "True",
        ("tests/engine/test_faults.py",),
    ),
    Mutation(
        "a snapshot claims one token less",
        "engine.cache.prefix_cache:PrefixCache.capture_snapshot",
        argument("capture", 1),
        "{old} - 1",
        MACHINE,
    ),
    Mutation(
        "the last token is restored without its logits",
        "engine.cache.matching:_match_path",
        argument("min", 1),
        "{old} + 1",
        CACHE,
    ),
    Mutation(
        "K/V is not cut before it is written on",
        "engine.cache.kv:cut",
        argument("trim", 0),
        "0",
        MACHINE,
    ),
    Mutation(
        "lent K/V is overwritten without being copied out",
        "engine.cache.restoring:Restorer.vacate",
        call("copy_out"),
        "None",
        MACHINE,
    ),
    Mutation(
        "a preview's state is used though state before it was evicted",
        "engine.cache.aside:Aside.take",
        each(ast.IfExp, lambda node: node.test),
        "True",
        ("tests/engine/test_previews.py",),
    ),
    Mutation(
        "a rotating window is put back without a copy",
        "engine.cache.snapshot:restore",
        each(ast.IfExp, lambda node: node.test),
        "False",
        ("tests/engine/test_continue.py", *MACHINE),
    ),
    Mutation(
        "a resume point in use may be evicted",
        "engine.cache.radix:RadixTree.lock",
        each(ast.AugAssign, lambda node: node.value),
        "0",
        CACHE,
    ),
    Mutation(
        "deleting a conversation takes everyone's state",
        "engine.cache.eviction:Eviction.forget",
        call("discard"),
        "{object}.clear()",
        ("tests/engine/cache/test_prefix_cache.py",),
    ),
    Mutation(
        "a conversation does not say what it uses",
        "engine.cache.lending:Lending.add_nodes",
        call("add"),
        "None",
        MACHINE,
    ),
    Mutation(
        "how a token was fed does not matter",
        "engine.cache.feeding:common_feeding_end",
        comparison(ast.NotEq),
        "False",
        CACHE,
    ),
    Mutation(
        "a pinned chat is evicted like any other",
        "engine.cache.ranking:CoverageRanking._tier",
        each(ast.IfExp, lambda node: node.test),
        "False",
        ("tests/engine/cache/test_ranking.py", "tests/engine/cache/test_budget.py"),
    ),
    Mutation(
        "the text of a deleted chat stays on disk",
        "engine.cache.disk.index:Index.forget",
        each(ast.UnaryOp, lambda node: node),
        "False",
        (
            "tests/engine/cache/disk/test_index.py",
            "tests/engine/test_disk_deletion.py",
            "tests/engine/test_disk_tier.py",
        ),
    ),
    Mutation(
        "a record is read in the place of another one",
        "engine.cache.disk.record:_read_start",
        each(ast.Compare, lambda node: node if isinstance(node.left, ast.BinOp) else None),
        "False",
        ("tests/engine/cache/disk/test_record.py", "tests/oracle/test_faults_on_disk.py"),
    ),
    Mutation(
        "evicted state is lost although there is a disk",
        "engine.cache.disk.tier:DiskTier.__init__",
        each(ast.Assign, lambda node: node.value if is_save(node.targets[0]) else None),
        "None",
        ("tests/engine/test_disk_tier.py",),
    ),
)
