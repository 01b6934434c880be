"""Names of HLA alleles, as laboratories write them: today's with colons, those of before 2010, groups and ambiguities.

A name has a gene and up to four fields: allele group, protein, and two that change no protein. A letter at its end says
how it is expressed (N: not at all), or that it stands for a group (G, P).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sfumato.errors import InvalidInput

__all__ = ["Allele", "AlleleFault", "HLATyping"]

_GENE = r"(?:HLA-)?(?P<gene>A|B|CW?|E|F|G|DRA|DRB[1-9]|DQA[12]|DQB[12]|DPA[12]|DPB[12]|MICA|MICB)"
_TODAY = re.compile(rf"{_GENE}\*?(?P<fields>\d{{2,4}}(?::\d{{2,4}}){{0,3}})(?P<suffix>[NLSCAQGP]?)")
_BEFORE = re.compile(rf"{_GENE}\*?(?P<fields>\d{{4}}(?:\d{{2}}){{0,2}})(?P<suffix>[NLSCAQ]?)")
_CODE = re.compile(rf"{_GENE}\*?\d{{2,4}}:[A-Z]{{2,5}}")
_MOST_LETTERS, _MOST_ALTERNATIVES = 400, 64
RENUMBERED = {("A", 92): ("02", 100), ("B", 95): ("15", 100)}
"""Groups that had run out of numbers before 2010: A*9201 is A*02:101 today, and B*9501 is B*15:101."""


class AlleleFault(Enum):
    """Why a name says no allele."""

    MALFORMED = "malformed"
    """It is no name of an allele."""
    CODE = "code"
    """It is a code of several alleles (letters in place of the second field), which only its registry can open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allele:
    """One allele, or a group of alleles with the same first fields.

    Sensitive: an allele that was read from a person's data is part of that person's genome.

    >>> Allele.read("HLA-A*02:01:01:02L")
    Allele(gene='A', fields=('02', '01', '01', '02'), suffix='L')
    >>> Allele.read("B*9501").name, Allele.read("A0201").two_fields
    ('B*15:101', 'A*02:01')
    >>> Allele.read("HLA-Cw*0702").name
    'C*07:02'
    """

    gene: str
    fields: tuple[str, ...]
    suffix: str = ""

    @classmethod
    def read(cls, text: str) -> "Allele":
        """The allele of a name; refused, without quoting it, where it is none."""
        found = _read(text)
        if isinstance(found, AlleleFault):
            raise InvalidInput(
                "this is not the name of one allele; nothing was read. Names look like HLA-A*02:01, or A*0201."
            )
        return found

    @property
    def name(self) -> str:
        """The name as it is written today, without the prefix."""
        return f"{self.gene}*{':'.join(self.fields)}{self.suffix}"

    @property
    def two_fields(self) -> str | None:
        """The protein: gene and two fields; None where the name is coarser."""
        return None if len(self.fields) < 2 else f"{self.gene}*{':'.join(self.fields[:2])}"

    @property
    def is_null(self) -> bool:
        """Whether no protein of it is on the cells, which then present nothing through it."""
        return self.suffix == "N"


@dataclass(frozen=True, slots=True, kw_only=True)
class HLATyping:
    """What a laboratory reports of one copy of a gene: one allele, or the alternatives that it could not tell apart.

    >>> [each.name for each in HLATyping.read("A*02:01/02:06").alternatives]
    ['A*02:01', 'A*02:06']
    >>> HLATyping.read("A*02:XYZ")
    <AlleleFault.CODE: 'code'>
    """

    alternatives: tuple[Allele, ...]

    @classmethod
    def read(cls, text: str) -> "HLATyping | AlleleFault":
        """The alternatives of one report, or why there are none. Nothing is raised and nothing is quoted."""
        if len(text) > _MOST_LETTERS:
            return AlleleFault.MALFORMED
        parts = text.strip().split("/")
        if len(parts) > _MOST_ALTERNATIVES:
            return AlleleFault.MALFORMED
        first = _read(parts[0])
        if isinstance(first, AlleleFault):
            return first
        alternatives = [first]
        for part in parts[1:]:
            other = _read(part if part[:1].isalpha() else f"{first.gene}*{part}")
            if isinstance(other, AlleleFault) or other.gene != first.gene:
                return other if isinstance(other, AlleleFault) else AlleleFault.MALFORMED
            alternatives.append(other)
        return cls(alternatives=tuple(dict.fromkeys(alternatives)))

    @property
    def gene(self) -> str:
        """The gene that was typed."""
        return self.alternatives[0].gene


def _read(text: str) -> Allele | AlleleFault:
    text = text.strip().upper()
    if not text.isascii():
        return AlleleFault.MALFORMED
    if _CODE.fullmatch(text):
        return AlleleFault.CODE
    if found := _TODAY.fullmatch(text):
        fields = found["fields"].split(":")
        if len(fields) > 1 or len(fields[0]) < 4:
            return Allele(gene=_gene(found), fields=tuple(fields), suffix=found["suffix"])
    if found := _BEFORE.fullmatch(text):
        digits = found["fields"]
        fields = [digits[at : at + 2] for at in range(0, len(digits), 2)]
        return Allele(gene=_gene(found), fields=tuple(_renumbered(_gene(found), fields)), suffix=found["suffix"])
    return AlleleFault.MALFORMED


def _gene(found: re.Match[str]) -> str:
    """The gene as it is named today: HLA-Cw was the name of HLA-C before 2010."""
    return found["gene"].removesuffix("W")


def _renumbered(gene: str, fields: Sequence[str]) -> Sequence[str]:
    moved = RENUMBERED.get((gene, int(fields[0])))
    return fields if moved is None else [moved[0], str(moved[1] + int(fields[1])), *fields[2:]]
