from __future__ import annotations

from app.cli.tree.scenario import Scenario, TreeAction, chat_tree


def replies(scenario: Scenario) -> dict[str, str]:
    return {step.name: step.reply.text for step in scenario.steps}


def test_scenario_has_the_documented_edits_chats_and_stop() -> None:
    steps = chat_tree("x").steps

    assert [step.target for step in steps if step.action is TreeAction.EDIT] == [
        *("turn 7", "turn 5", "turn 3", "turn 1"),
        "turn 5",
    ]
    assert [step.target for step in steps if step.action is TreeAction.REGENERATE] == ["turn 6"]
    assert {step.chat for step in steps} == {"A", "B"}
    assert [step.name for step in steps if step.stops] == ["stop"]
    assert {step.thinking for step in steps} == {True, False}


def test_steps_follow_earlier_steps_and_sends_extend_a_branch_end() -> None:
    seen: set[str | None] = {None, ""}
    followed: set[str | None] = set()
    for step in chat_tree("x").steps:
        assert {step.after, step.target} <= seen
        assert step.name not in seen
        if step.action is TreeAction.SEND and step.after is not None:
            assert step.after not in followed
        seen.add(step.name)
        followed.add(step.after)


def test_system_prompt_begins_with_the_run_name_and_scales_with_size() -> None:
    long, short = chat_tree("x"), chat_tree("x", size=0.5)

    assert 700 <= len(long.system.split()) < 740
    assert 350 <= len(short.system.split()) < 390
    assert long.system.startswith("Run x.")
    assert chat_tree("x") == long


def test_messages_of_a_step_are_the_branch_that_it_continues() -> None:
    scenario = chat_tree("x")
    steps = {step.name: step for step in scenario.steps}

    branch = scenario.messages(steps["branch"], replies(scenario))
    regenerate = scenario.messages(steps["regenerate"], replies(scenario))

    asked = [message.content for message in branch if message.role == "user"]
    names = ["turn 1", "turn 2", "turn 3", "turn 4", "edit 5", "branch"]
    assert asked == [steps[name].user for name in names]
    assert branch[-2].content == steps["edit 5"].reply.text
    assert regenerate == scenario.messages(steps["turn 6"], replies(scenario))


def test_first_letters_of_all_messages_differ() -> None:
    steps = [step for step in chat_tree("x").steps if step.action is not TreeAction.REGENERATE]

    assert len({step.user[0] for step in steps}) == len(steps)
