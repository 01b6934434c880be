"""From alleles to supertypes: groups of alleles that present similar peptides, by a table with a version."""

import csv
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sfumato.errors import InvalidInput
from sfumato.genomics.alleles import Allele, AlleleFault, HLATyping
from sfumato.genomics.reading import LaboratoryRows

__all__ = ["NOT_EXPRESSED", "SupertypeTable"]

NOT_EXPRESSED = "not expressed"
"""The group of null alleles: no protein of theirs presents anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupertypeTable:
    """Which supertype each allele belongs to, by gene and two fields. Public: every field.

    ``version`` names the table, and ``digest`` is the fingerprint of its file; both are part of what is published.

    >>> table = SupertypeTable(version="small", digest="", of={"A*02:01": "A02", "A*02:06": "A02", "A*01:01": "A01"})
    >>> table.names, table.supertype("A*02:01:01:02L"), table.supertype("A*02:01/02:06")
    (('A01', 'A02', 'not expressed'), 'A02', 'A02')
    >>> table.supertype("A*02:01/01:01"), table.supertype("A*02:01N"), table.supertype("B*07:02")
    (None, 'not expressed', None)
    """

    version: str
    digest: str
    of: Mapping[str, str]

    @classmethod
    def read(cls, path: str | Path, *, version: str) -> "SupertypeTable":
        """Read a CSV file with the columns ``allele`` and ``supertype``; refused where a name is no allele.

        A published table is public, so what is wrong with it is said.
        """
        data = Path(path).read_bytes()
        rows = list(csv.DictReader(data.decode("utf-8-sig").splitlines()))
        if not rows or not {"allele", "supertype"} <= set(rows[0]):
            raise InvalidInput("the table of supertypes needs the columns allele and supertype; nothing was read.")
        of: dict[str, str] = {}
        for number, row in enumerate(rows, start=2):
            name, supertype = _two_fields(row["allele"]), (row["supertype"] or "").strip()
            if name is None or not supertype or of.get(name, supertype) != supertype:
                raise InvalidInput(
                    f"line {number} of the table of supertypes has no allele with two fields, no supertype, or an "
                    "allele that has another supertype above; nothing was read."
                )
            of[name] = supertype
        return cls(version=version, digest=hashlib.sha256(data).hexdigest(), of=of)

    @property
    def names(self) -> tuple[str, ...]:
        """All supertypes in order, with a group for alleles that are not expressed: a public list of keys."""
        return (*sorted(set(self.of.values())), NOT_EXPRESSED)

    def supertype(self, text: str) -> str | None:
        """The supertype of a typing; None where it is no name, is not in the table, or its alternatives differ."""
        found = self._looked_up(text)
        return None if isinstance(found, tuple) else found

    def assign(self, alleles: pa.Array | pa.ChunkedArray) -> LaboratoryRows[pa.Array]:
        """The supertype of each row, missing where there is none, and how many rows that were, by the reason.

        Each row is looked up by itself, so that a person changes no row but the own ones. Distinct names are read once.
        """
        coded = pc.dictionary_encode(alleles.cast(pa.string()))
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        found = [self._looked_up(name) for name in coded.dictionary.to_pylist()]
        groups = pa.array([None if isinstance(each, tuple) else each for each in found], pa.string())
        reasons = pa.array([each[0] if isinstance(each, tuple) else None for each in found], pa.string())
        counted = Counter(reasons.take(coded.indices).drop_null().to_pylist())
        if missing := coded.null_count:
            counted["missing"] = missing
        return LaboratoryRows(rows=groups.take(coded.indices), refused=dict(sorted(counted.items())))

    def _looked_up(self, text: str) -> str | tuple[str]:
        """A supertype, or in a tuple why there is none."""
        typing = HLATyping.read(text)
        if isinstance(typing, AlleleFault):
            return (typing.value,)
        groups = {NOT_EXPRESSED if each.is_null else self.of.get(each.two_fields or "") for each in typing.alternatives}
        match list(groups):
            case [None]:
                return ("unknown allele",)
            case [str(group)]:
                return group
        return ("ambiguous",)


def _two_fields(text: str | None) -> str | None:
    try:
        return Allele.read(text or "").two_fields
    except InvalidInput:
        return None
