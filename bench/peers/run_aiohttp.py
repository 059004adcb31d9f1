"""The floor: one aiohttp session, the answer parsed and compared, nothing recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import aiohttp
from measuring import KEY, MODEL, SYSTEM_PROMPT, Asked, Question, read_arguments, report


async def open_session(asked: Asked) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=asked.in_flight)
    return aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {KEY}"})


async def work(session: aiohttp.ClientSession, url: str, questions: Iterator[Question]) -> int:
    correct = 0
    for question in questions:
        messages = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question.text}]
        async with session.post(url, json={"model": MODEL, "messages": messages}) as response:
            reply = await response.json()
        correct += reply["choices"][0]["message"]["content"] == question.answer
    return correct


async def answer(session: aiohttp.ClientSession, asked: Asked, questions: Sequence[Question]) -> int:
    waiting = iter(questions)
    url = f"{asked.base_url}/chat/completions"
    return sum(await asyncio.gather(*(work(session, url, waiting) for _ in range(asked.in_flight))))


def main() -> None:
    asked = read_arguments()
    with asyncio.Runner() as runner:
        session = runner.run(open_session(asked))
        report(
            asked,
            name="aiohttp",
            distribution="aiohttp",
            evaluate=lambda questions: runner.run(answer(session, asked, questions)),
        )
        runner.run(session.close())


if __name__ == "__main__":
    main()
