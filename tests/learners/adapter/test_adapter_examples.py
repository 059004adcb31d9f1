"""What is learned is what was sent, in the tokens of whoever serves the model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from trying_adapters import END, Letters, a_try, spelled

from whet.core import (
    AdapterRef,
    Brief,
    ConfigError,
    Harness,
    InputError,
    ModelRef,
    Policy,
    Rendering,
    Sampling,
    Skill,
    ToolCall,
    ToolMode,
    ToolSpec,
    assistant,
    user,
)
from whet.learners.adapter import best_condition, examples_of, examples_of_chat, quality, read_chats
from whet.rollout import render
from whet.rollout.render import request_for

pytestmark = pytest.mark.anyio
POLICY = Policy(ModelRef("local", "small"), skill=Skill.from_text("Be brief."))
TOOL = ToolSpec("look", "Look.", {"type": "object"})


async def test_the_answer_is_learned_and_ends() -> None:
    (example,) = await examples_of(a_try("it", "Done.", 0.7), POLICY, (), Letters())
    assert spelled(example.prompt) == "<system>Be brief.<user>Do it.<assistant>"
    assert spelled(example.completion[:-1]) == "Done."
    assert example.completion[-1] == END
    assert (example.source, example.task, example.soft) == ("p", "it", 0.7)


async def test_requests_are_those_that_playing_makes() -> None:
    tokens = Letters()
    policy = msgspec.structs.replace(POLICY, harness=Harness(tool_mode=ToolMode.TEXT))
    said = (user("Do it."), assistant("<tool_call>{}</tool_call>"), user("<tool_result>no"), assistant("Done."))
    trajectory = msgspec.structs.replace(a_try("it", "Done.", 1.0), messages=said)
    examples = await examples_of(trajectory, policy, (TOOL,), tokens)
    rendered = render(policy, Brief("Do it."), (TOOL,))
    assert tokens.asked == [
        request_for(policy, rendered, said[:1], None),
        request_for(policy, rendered, said[:3], None),
    ]
    assert [spelled(each.completion[:-1]) for each in examples] == [said[1].text, said[3].text]
    assert "look" in spelled(examples[0].prompt)


async def test_plain_texts_end_with_what_ends_them() -> None:
    policy = msgspec.structs.replace(
        POLICY, skill=Skill({}), sampling=Sampling(stop=("\n",)), harness=Harness(rendering=Rendering.PLAIN)
    )
    (example,) = await examples_of(a_try("it", " Done.", 1.0), policy, (), Letters())
    assert spelled(example.prompt) == "Do it."
    assert spelled(example.completion) == " Done.\n"


async def test_distilling_renders_without_the_skill_that_played() -> None:
    (example,) = await examples_of(a_try("it", "Done.", 1.0), POLICY.with_skill(Skill({})), (), Letters())
    assert spelled(example.prompt) == "<user>Do it.<assistant>"


async def test_conditioned_prompts_say_how_good_the_answer_is_and_serving_asks_for_the_best() -> None:
    tries = [a_try("it", "Bad.", 0.1), a_try("it", "Good.", 0.85)]
    tokens = Letters()
    prompts = [spelled((await examples_of(each, POLICY, (), tokens, conditioned=True))[0].prompt) for each in tries]
    assert ["1 of 5" in prompts[0], "5 of 5" in prompts[1]] == [True, True]
    condition = best_condition(tries, conditioned=True)
    served = POLICY.with_adapter(AdapterRef("f", "b", condition))
    request = request_for(served, render(served, Brief("Do it."), ()), tries[0].messages[:1], 1)
    assert spelled(await tokens.prompt_tokens(request)) == prompts[1]
    assert best_condition(tries, conditioned=False) == ""


@pytest.mark.parametrize(("soft", "level"), [(0.0, 1), (0.19, 1), (0.2, 2), (0.79, 4), (0.8, 5), (1.0, 5)])
def test_qualities_by_score(soft: float, level: int) -> None:
    assert f"{level} of 5" in quality(soft)


async def test_native_tool_calls_cannot_be_learned_and_are_not_left_out_in_silence() -> None:
    said = (user("Do it."), assistant("Hm.", (ToolCall("1", "look", "{}"),)))
    trajectory = msgspec.structs.replace(a_try("it", "", 1.0), messages=said)
    with pytest.raises(ConfigError, match=r"target\.tools"):
        await examples_of(trajectory, POLICY, (TOOL,), Letters())


async def test_chats_from_outside(tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    line = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}\n'
    file.write_text(f"{line}\n{line}" + line.replace("Ho", "Hey"))
    chats = read_chats(file)
    assert [chat.name for chat in chats] == ["chats.jsonl:1", "chats.jsonl:4"]
    (example,) = await examples_of_chat(chats[1].messages, POLICY, Letters(), source="chats.jsonl", name=chats[1].name)
    assert (spelled(example.prompt), spelled(example.completion[:-1])) == ("<user>Hi<assistant>", "Hey")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "chats.jsonl:2"),
        ('{"messages": [{"role": "robot", "content": "x"}]}', "robot"),
        ('{"messages": [{"role": "user"}]}', "content"),
        ('{"messages": []}', "ends with what the assistant says"),
        ('{"messages": [{"role": "user", "content": "x"}]}', "ends with what the assistant says"),
        (
            '{"messages": [{"role": "user", "content": " "}, {"role": "assistant", "content": "y"}]}',
            "message 1 is empty",
        ),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_text(f"\n{line}\n")
    with pytest.raises(InputError, match=r"chats\.jsonl:2") as caught:
        read_chats(file)
    assert said in str(caught.value)


def test_a_missing_or_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_chats(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(InputError, match="holds no chats"):
        read_chats(tmp_path / "empty.jsonl")
