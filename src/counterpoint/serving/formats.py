"""Predictions as lines of JSON or CSV, for programs."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from counterpoint.serving.predict import Opinion, Prediction, Unread


def json_lines(answers: Iterable[Prediction | Unread], recalibration: str) -> Iterator[str]:
    """One object per file: its prediction, or its path and the error."""
    for answer in answers:
        yield json.dumps(as_json(answer, recalibration), ensure_ascii=False)


def csv_lines(answers: Iterable[Prediction | Unread], recalibration: str, members: int, top: int = 0) -> Iterator[str]:
    """A header, then one line per file; the last column has the error."""
    opinions = [f"{kind}_{i + 1}" for kind, count in (("member", members), ("top", top)) for i in range(count)]
    columns = [f"{opinion}_{what}" for opinion in opinions for what in ("class", "confidence")]
    yield _csv(["path", "class", "confidence", "agree", "sure", "recalibration", *columns, "error"])
    for answer in answers:
        if isinstance(answer, Unread):
            yield _csv([answer.path, *[""] * (5 + len(columns)), answer.error])
            continue
        said = [value for one in (*answer.members, *answer.top) for value in (one.name, one.confidence)]
        sure = "" if answer.sure is None else answer.sure
        start = [answer.path, answer.ensemble.name, answer.ensemble.confidence, answer.agree, sure, recalibration]
        yield _csv([*start, *said, ""])


def as_json(answer: Prediction | Unread, recalibration: str) -> dict[str, Any]:
    """What one file's object says."""
    if isinstance(answer, Unread):
        return {"path": answer.path, "error": answer.error}
    known = {"path": answer.path, **_opinion(answer.ensemble), "members": [_opinion(one) for one in answer.members]}
    sure = {} if answer.sure is None else {"sure": answer.sure}
    top = {"top": [_opinion(one) for one in answer.top]} if answer.top else {}
    return {**known, "agree": answer.agree, **sure, "recalibration": recalibration, **top}


def _opinion(opinion: Opinion) -> dict[str, Any]:
    return {"class": opinion.name, "confidence": opinion.confidence}


def _csv(values: list[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(str(v).lower() if isinstance(v, bool) else v for v in values)
    return line.getvalue()
