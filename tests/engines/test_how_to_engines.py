"""The blocks of docs/how-to/engines.md that need a server, run on one; the others run with the documentation."""

import contextlib
import io
import re
from typing import Any

import pyarrow as pa
import pytest

from tests.engines.loading import in_postgres, in_spark
from tests.parts import ROOT

PAGE = (ROOT / "docs" / "how-to" / "engines.md").read_text("utf-8")
ROWS = pa.table({"patient_id": ["a", "a", "b"], "region": ["north", "south", "north"]})
START = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
COLUMNS = "['region', 'count', 'count_data_low', 'count_data_high', 'limit']\n"


def printed(section: str, **given: Any) -> str:
    """What the block of a section prints, after the first block of the page."""
    part = PAGE[PAGE.index(f"\n## {section}\n") :]
    [block, *_] = re.findall(r"^```py\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(START + "\nfrom sfumato.engines import sources\n" + block, {"__name__": "page", **given})  # noqa: S102
    return output.getvalue()


def test_the_block_about_postgresql(postgres_url: str) -> None:
    in_postgres(postgres_url, ROWS, "wards")
    assert printed("PostgreSQL", url=postgres_url) == COLUMNS


@pytest.mark.long
def test_the_block_about_spark(spark: Any) -> None:
    in_spark(spark, ROWS, "beds")
    assert printed("Spark", spark=spark) == COLUMNS
