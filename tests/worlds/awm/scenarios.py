"""A small scenario in the format, and ways to spoil it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROGRAM = """\
import os
import uuid
from datetime import date, datetime
from typing import List, Optional

from fastapi import Body, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, Field
from sqlalchemy import Column, DateTime, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker
from sqlalchemy.sql import func

DATABASE_PATH = os.getenv("DATABASE_PATH", "sqlite:///xxxx.db")
engine = create_engine(DATABASE_PATH, connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)
Base = declarative_base()


class Note(Base):
    __tablename__ = "notes"
    id = Column(Integer, primary_key=True)
    owner = Column(String, nullable=False)
    text = Column(String, nullable=False)
    code = Column(String)
    created_at = Column(DateTime, nullable=False, default=func.now())
    seen_at = Column(DateTime, nullable=True)


app = FastAPI()


class NoteIn(BaseModel):
    owner: str = Field(..., description="Whose note it is")
    text: str = Field(..., description="What it says", min_length=1)
    tags: Optional[List[str]] = None


class NoteOut(BaseModel):
    id: int
    owner: str
    text: str
    code: Optional[str] = None
    created_at: datetime
    seen_on: Optional[date] = None


@app.post("/api/notes", operation_id="add_note", summary="Add a note", response_model=NoteOut)
async def add_note(body: NoteIn = Body(...)):
    session = SessionLocal()
    note = Note(owner=body.owner, text=body.text, code=uuid.uuid4().hex, seen_at=datetime.now())
    session.add(note)
    session.commit()
    session.refresh(note)
    answer = NoteOut(
        id=note.id, owner=note.owner, text=note.text, code=note.code, created_at=note.created_at, seen_on=date.today()
    )
    session.close()
    return answer


@app.get("/api/notes/{note_id}", operation_id="get_note", summary="One note", response_model=NoteOut)
def get_note(note_id: int = Path(..., description="Which one", ge=1)):
    session = SessionLocal()
    note = session.query(Note).filter(Note.id == note_id).first()
    session.close()
    if note is None:
        raise HTTPException(404, "there is no such note")
    return NoteOut(id=note.id, owner=note.owner, text=note.text, code=note.code, created_at=note.created_at)


@app.get("/api/notes", operation_id="find_notes", summary="Notes of an owner", response_model=List[NoteOut])
def find_notes(owner: Optional[str] = Query(None), limit: int = Query(10, le=50), newest: bool = False):
    session = SessionLocal()
    found = session.query(Note)
    if owner is not None:
        found = found.filter(Note.owner == owner)
    notes = found.order_by(Note.id.desc() if newest else Note.id).limit(limit).all()
    session.close()
    return [NoteOut(id=n.id, owner=n.owner, text=n.text, code=n.code, created_at=n.created_at) for n in notes]


@app.get("/api/broken", operation_id="broken", summary="Fails")
def broken():
    raise RuntimeError("a secret of the program")
"""

VERIFIER = """\
def verify_task_completion(initial_db_path: str, final_db_path: str, final_answer: str | None = None) -> dict:
    import sqlite3
    conn = sqlite3.connect(f"file:{final_db_path}?mode=ro", uri=True)
    rows = conn.execute("SELECT owner FROM notes WHERE text = 'buy milk'").fetchall()
    conn.close()
    return {"result": "complete" if rows == [("ann",)] else "others"}
"""

FACTS = """\
def verify_task(initial_db_path: str, final_db_path: str) -> dict:
    import sqlite3
    conn = sqlite3.connect(final_db_path)
    return {"notes": conn.execute("SELECT count(*) FROM notes").fetchone()[0]}
"""

DDL = """CREATE TABLE notes (
    id INTEGER PRIMARY KEY, owner TEXT NOT NULL, text TEXT NOT NULL, code TEXT,
    created_at DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP, seen_at DATETIME
);"""

INSERTS = [
    "INSERT INTO notes (id, owner, text, created_at) VALUES (1, 'ann', 'water plants', datetime('now', '-3 days'));",
    "INSERT INTO notes (id, owner, text) VALUES (2, 'bob', 'it is bob\\'s; call him');",
]

SECRET = "the secret of the machine"


def scenario(name: str = "Note Book!", **changes: Any) -> dict[str, Any]:
    """The parts of a sound scenario, some of them changed."""
    return {
        "name": name,
        "program": PROGRAM,
        "ddl": [DDL],
        "inserts": list(INSERTS),
        "tasks": ["Add a note for ann that says: buy milk"],
        "coded": [VERIFIER],
        "judged": [FACTS],
        "operations": [("add_note", "POST", "/api/notes"), ("get_note", "GET", "/api/notes/{note_id}")],
        "solutions": [],
        **changes,
    }


def write_folder(folder: Path, *scenarios: dict[str, Any]) -> Path:
    files: dict[str, list[Any]] = {}

    def line(file: str, **fields: Any) -> None:
        files.setdefault(file, []).append(fields)

    for one in scenarios:
        name = one["name"]
        line("gen_scenario.jsonl", name=name, description="A book of notes.")
        line("gen_tasks.jsonl", scenario=name, tasks=one["tasks"])
        tables = [{"name": "notes", "ddl": ddl, "indexes": []} for ddl in one["ddl"]]
        line("gen_db.jsonl", scenario=name, db_schema={"tables": tables}, db_path="x.db")
        data = {"tables": [{"table_name": "notes", "reasoning": "", "insert_statements": one["inserts"]}]}
        line("gen_sample.jsonl", scenario=name, tables_count=1, inserts_count=len(one["inserts"]), sample_data=data)
        endpoints = [{"operation_id": o, "method": m, "path": p} for o, m, p in one["operations"]]
        line("gen_spec.jsonl", scenario=name, api_spec={"api_groups": [{"group_name": "g", "endpoints": endpoints}]})
        line("gen_envs.jsonl", scenario=name, db_path="x.db", full_code=one["program"])
        for kind, file in (("coded", "gen_verifier.pure_code.jsonl"), ("judged", "gen_verifier.jsonl")):
            for index, code in enumerate(one[kind]):
                line(file, scenario=name, task_idx=index, task=one["tasks"][index], verification={"code": code})
        for index, solution in enumerate(one["solutions"]):
            line("whet_solutions.jsonl", scenario=name, task_idx=index, **solution)
    folder.mkdir(parents=True, exist_ok=True)
    for file, lines in files.items():
        (folder / file).write_text("".join(json.dumps(fields) + "\n" for fields in lines))
    return folder
