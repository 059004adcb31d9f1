"""Plays solutions against exported programs and verifiers, as any reader of the format would; imports nothing of whet.

    playing_exported.py FOLDER SOLUTIONS.json

Prints, by scenario and task, what the verifier says of the known good solution, of nothing, and of the damaged ones,
and which calls of the known good solution were refused.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import sys
from pathlib import Path

import httpx


def rows(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()]


def build(database, schema, sample):
    connection = sqlite3.connect(database)
    for table in schema["tables"]:
        connection.execute(table["ddl"])
    for table in sample["tables"]:
        for statement in table["insert_statements"]:
            connection.execute(statement)
    for table in schema["tables"]:
        for index in table["indexes"]:
            connection.execute(index)
    connection.commit()
    connection.close()


async def play(app, solution):
    refused = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://program") as client:
        for act in solution["acts"]:
            reply = await client.post(f"/{act['tool']}", json=act["arguments"])
            if reply.status_code != 200:
                refused.append(f"{act['tool']}: {reply.status_code} {reply.text}")
    return refused


async def main(folder, solutions):
    schemas = {row["scenario"]: row["db_schema"] for row in rows(folder, "gen_db")}
    samples = {row["scenario"]: row["sample_data"] for row in rows(folder, "gen_sample")}
    verifiers = {(row["scenario"], row["task_idx"]): row for row in rows(folder, "gen_verifier.pure_code")}
    results = {}
    for environment in rows(folder, "gen_envs"):
        name = environment["scenario"]
        initial, final = Path(f"{name}-initial.db"), Path(f"{name}-final.db")
        build(initial, schemas[name], samples[name])
        os.environ["DATABASE_PATH"] = f"sqlite:///{final}"
        program = {"__name__": f"program_{name}"}
        exec(environment["full_code"], program)  # noqa: S102
        for place in range(10):
            scope = {}
            exec(verifiers[name, place]["verification"]["code"], {}, scope)  # noqa: S102
            solved = solutions[f"{name} {place}"]
            found = {"good": [], "nothing": [], "damaged": [], "refused": []}
            tries = [("good", solved["good"]), ("nothing", {"acts": [], "answer": ""})]
            for kind, solution in [*tries, *(("damaged", each) for each in solved["damaged"])]:
                shutil.copyfile(initial, final)
                refused = await play(program["app"], {"acts": [], "answer": "", **solution})
                verdict = scope["verify_task_completion"](str(initial), str(final), solution.get("answer", ""))
                found[kind].append(verdict["result"])
                if kind == "good":
                    found["refused"] += refused
            results[f"{name} {place}"] = found
    return results


if __name__ == "__main__":
    solutions = json.loads(Path(sys.argv[2]).read_text("utf-8"))
    sys.stdout.write(json.dumps(asyncio.run(main(Path(sys.argv[1]), solutions))))
