"""Mutations of the engine, except for the prefix cache."""

from __future__ import annotations

import ast

from tests.mutation.places import Mutation, argument, call, comparison, condition_of, each

MACHINE = ("tests/oracle/test_machine.py",)
CONTINUED = ("tests/engine/test_continue.py",)
TOOLS = ("tests/engine/test_tool_calls.py",)
VERIFIED = ("tests/engine/models/test_rows.py", "tests/engine/test_speculation.py")

ENGINE_MUTATIONS = (
    Mutation(
        "the newest token counts as fed before it is",
        "engine.runner.decoder:Decoder._launch",
        argument("commit", 0),
        "{old} * 2",
        MACHINE,
    ),
    Mutation(
        "a token that ended the reply is not taken back",
        "engine.runner.decoder:Decoder.detach",
        argument("remove", "undoing"),
        "False",
        CONTINUED,
    ),
    Mutation(
        "the point before the reply lies after the tail",
        "engine.chat.prompt_builder:PromptBuilder._turn_ends",
        call("_passing_len"),
        "0",
        (*MACHINE, "tests/oracle/test_promise.py"),
    ),
    Mutation(
        "no point before another tool result",
        "engine.chat.prompt_builder:PromptBuilder._turn_ends",
        call("_result_lens"),
        "()",
        TOOLS,
    ),
    Mutation(
        "no reply calls a tool in plain text",
        "engine.chat.prompt_builder:PromptBuilder._next_turn",
        call("may_call_tool"),
        "False",
        TOOLS,
    ),
    Mutation(
        "every reply that a template cuts counts as whole",
        "engine.checking.prompts:_is_cut",
        each(ast.Compare, lambda node: node),
        "False",
        ("tests/engine/checking/test_prompts.py",),
    ),
    Mutation(
        "what was read of a stopped prompt is lost",
        "engine.runner.runner:Runner.publish_turn",
        call("cut"),
        "{object}.chunks.clear()",
        (*MACHINE, "tests/engine/pipeline/test_staged_engine.py"),
    ),
    Mutation(
        "the place where a prompt forked is not kept",
        "engine.runner.feeding:Feeder.chunks",
        argument("ResumePoint", 0),
        "len({parameters[0]}.token_ids)",
        ("tests/engine/cache/test_prefix_cache.py",),
    ),
    Mutation(
        "side requests are published",
        "engine.runner.runner:Runner.publish_turn",
        condition_of("abandon"),
        "setattr({object}, 'side', False)",
        ("tests/engine/cache/test_prefix_cache.py",),
    ),
    Mutation(
        "a reply's next turn begins somewhere else",
        "engine.runner.closing:Closing._feed",
        comparison(ast.Lt),
        "False",
        ("tests/engine/test_read_ahead.py", *MACHINE),
    ),
    Mutation(
        "a stopped reply keeps no state of its end",
        "engine.runner.closing:Closing._feed",
        comparison(ast.IsNot),
        "False",
        CONTINUED,
    ),
    Mutation(
        "a reply that goes on draws as from its beginning",
        "engine.runner.next_token:draw_next",
        each(ast.BinOp, lambda node: node.left if isinstance(node.left, ast.Call) else None),
        "sequence.num_output",
        CONTINUED,
    ),
    Mutation(
        "a stored reply replaces a control token of the template",
        "engine.chat.splice:Splicer._find_whole",
        call("_keeps"),
        "True",
        (
            "tests/engine/chat/test_splice.py",
            "tests/engine/chat/test_reply_texts.py",
            "tests/oracle/test_tool_chats.py",
        ),
    ),
    Mutation(
        "a template may write the messages in another order",
        "engine.chat.segments:_align",
        comparison(ast.LtE),
        "False",
        ("tests/engine/chat/test_template.py", "tests/engine/chat/test_prompt.py"),
    ),
    Mutation(
        "a user can type a control token",
        "engine.chat.encoder:TextEncoder.encode_run",
        comparison(ast.Eq),
        "True",
        (
            "tests/engine/chat/test_tokenizer.py",
            "tests/engine/chat/test_prompt.py",
            "tests/engine/chat/test_runs.py",
        ),
    ),
    Mutation(
        "the switch that keeps earlier thoughts is ignored",
        "engine.chat.template:ChatTemplate._variables",
        each(ast.IfExp, lambda node: node.test),
        "False",
        (
            "tests/engine/chat/test_template.py",
            "tests/engine/chat/test_prompt.py",
            "tests/oracle/test_real_templates.py",
        ),
    ),
    Mutation(
        "a stored token without an embedding reaches the model",
        "engine.chat.tokenizer:ChatTokenizer.ids_of",
        comparison(ast.Lt),
        "True",
        ("tests/engine/chat/test_splice.py", "tests/engine/chat/test_reply_texts.py"),
    ),
    Mutation(
        "the answer of a reply begins at its first token",
        "engine.chat.reply:ReplyStream.add",
        call("len"),
        "0",
        ("tests/engine/chat/test_reply.py", "tests/oracle/test_real_templates.py"),
    ),
    Mutation(
        "a draft may hold the end of the reply",
        "engine.runner.speculation:Speculation._start",
        argument("Lookup", 0),
        "()",
        ("tests/engine/speculation", "tests/engine/test_speculation.py"),
    ),
    Mutation(
        "an error of one reply fails those beside it",
        "engine.runner.batch:Batch.forward",
        each(ast.BoolOp, lambda node: node),
        "True",
        ("tests/engine/test_batches.py", "tests/engine/test_speculation.py"),
    ),
    Mutation(
        "padding of a shared pass stays in the K/V",
        "engine.models.rows:MergedRows.keep",
        argument("trim", 0),
        "0",
        VERIFIED,
    ),
    Mutation(
        "all rows of a pass are rewound as far as the first one",
        "engine.models.rewinding:_runs",
        comparison(ast.NotEq),
        "False",
        VERIFIED,
    ),
    Mutation(
        "drafts may see more of a sliding window than the reply",
        "engine.models.draft_probe:_tested_rewinding",
        call("_windows_are_fixed"),
        "True",
        ("tests/engine/models/test_draft_probe.py",),
    ),
    Mutation(
        "the head of a model drafts without its hidden state",
        "engine.models.mtp:ModelWithHead.__call__",
        argument("joined", 1),
        "{old} * 0",
        ("tests/engine/models/test_mtp.py", "tests/engine/test_mtp_drafts.py"),
    ),
    Mutation(
        "a second prompt is read beside the first one",
        "engine.scheduler:Scheduler.next_to_start",
        call("all"),
        "True",
        ("tests/engine/test_scheduler.py", "tests/engine/test_batches.py"),
    ),
    Mutation(
        "an interrupted read-ahead keeps no state of its end",
        "engine.runner.read_ahead:ReadAheadJob.stop",
        call("cut"),
        "None",
        ("tests/engine/test_idle.py", "tests/engine/test_read_ahead.py"),
    ),
    Mutation(
        "other stages keep the state that rank 0 has freed",
        "engine.pipeline.far:_Numbered.__del__",
        call("add"),
        "None",
        ("tests/engine/pipeline/test_staged_engine.py",),
    ),
    Mutation(
        "a stage may load another model than rank 0",
        "engine.hosts.group:Group._prepare",
        call("difference"),
        "''",
        ("tests/engine/hosts/test_divided_engine.py",),
    ),
    Mutation(
        "answers lose their text when the stages end",
        "engine.hosts.staged_engine:StagedEngine._finish",
        call("send"),
        "None",
        ("tests/engine/hosts/test_staged_engine.py", "tests/e2e/test_stages_window.py"),
    ),
    Mutation(
        "the rows of an imported Llama keep the order of the file",
        "engine.gguf.parts:interleaved_halves.order",
        call("swapaxes"),
        "{object}",
        ("tests/engine/gguf/test_architectures.py", "tests/engine/gguf/test_convert.py"),
    ),
    Mutation(
        "settings at which mlx-lm stops are not found",
        "engine.catalog.inspect:_require_generation_config",
        call("isinstance"),
        "True",
        ("tests/engine/catalog/test_inspect.py", "tests/hostile/test_folders.py"),
    ),
    Mutation(
        "removing a model deletes files that another one needs",
        "engine.catalog.removal:_unshared_blobs",
        each(
            ast.Compare,
            lambda node: node if isinstance(node.left, ast.Attribute) else None,
        ),
        "True",
        ("tests/engine/catalog/test_removal.py",),
    ),
    Mutation(
        "a process that reads foreign files may write files",
        "engine.worker.confinement:_opens_for_writing",
        call("bool"),
        "False",
        ("tests/engine/worker/test_confinement.py",),
    ),
)
