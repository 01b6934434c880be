"""The public layer of an immunopeptidomics study: noisy numbers of patients by supertype and peptide, nothing else."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural, rational
from sfumato.core.limits import Limit
from sfumato.core.question import Intended
from sfumato.core.release import Release
from sfumato.core.units import Family, Unit, User
from sfumato.errors import InvalidInput, Refused
from sfumato.genomics.study import PATIENT, ImmunopeptidomicsStudy
from sfumato.genomics.supertypes import SupertypeTable
from sfumato.vault import Vault

__all__ = ["NOT_ASSIGNED", "PublicLayer", "build_public_layer"]

NOT_ASSIGNED = "not assigned"
"""The group of peptides that nobody assigned to an allele of a known supertype."""
_PERSONS = Fraction(1, 10)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PublicLayer:
    """What may be published: three releases, each with its certificate, and the version of the supertypes.

    ``patients`` is the noisy number of patients, ``supertypes`` how many carry each supertype, ``peptides`` how many
    have each peptide, by supertype. Guarantee: every number is a release; a layer of anything else is refused.
    """

    version: str
    table: SupertypeTable
    patients: Release
    supertypes: Release
    peptides: Release

    def __post_init__(self) -> None:
        for each in (self.patients, self.supertypes, self.peptides):
            if not isinstance(each, Release):
                raise Refused("a public layer holds releases alone: numbers without noise are refused.")
            if PATIENT in each.to_arrow().column_names:
                raise Refused("a public layer has no column of patients; nothing was published.")

    def frequencies(self) -> pa.Table:
        """The share of patients who carry each supertype, most frequent first: of released numbers, at no cost.

        The interval takes the ends of both released intervals, and so holds wherever both do. What a limit cuts is not
        in it, and patients none of whose alleles is in the table are not counted.
        """
        carriers, all_of_them = self.supertypes.to_arrow(), self.patients.to_arrow()
        number, low, high = (max(1, all_of_them[name][0].as_py()) for name in _named(all_of_them, "persons"))
        count, least, most = _named(carriers, "persons")
        shares = pa.table(
            {
                "supertype": carriers["supertype"],
                "share": _share(carriers[count], number),
                "share_low": _share(carriers[least], high),
                "share_high": _share(carriers[most], low),
            }
        )
        return shares.sort_by([("share", "descending")])

    def save(self, folder: str | Path) -> Path:
        """Write the numbers as CSV files, the certificates, and a file that says what they are."""
        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        for name in ("patients", "supertypes", "peptides"):
            release: Release = getattr(self, name)
            pa.csv.write_csv(release.to_arrow(), into / f"{name}.csv")
            release.certificate.save(into / f"{name}.certificate.json")
        pa.csv.write_csv(self.frequencies(), into / "frequencies.csv")
        said = {
            "version": self.version,
            "supertypes": self.table.version,
            "sha256": self.table.digest,
            "counted": "patients with at least one known supertype",
            "most supertypes per patient": _limit_of(self.supertypes),
            "most peptides per patient": _limit_of(self.peptides),
            "interval": "holds what was counted 95 times in 100; what the limits cut is not in it",
        }
        (into / "layer.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        return into

    def __repr__(self) -> str:
        return f"PublicLayer(version={self.version!r}, supertypes={self.table.version!r})"


def build_public_layer(
    vault: Vault,
    study: ImmunopeptidomicsStudy,
    *,
    version: str,
    supertypes: SupertypeTable,
    epsilon: Exact,
    peptides_per_patient: int,
    delta: Exact = 0,
    supertypes_per_patient: int = 4,
    peptides: Iterable[str] | None = None,
    share_for_peptides: Exact = Fraction(1, 2),
) -> PublicLayer:
    """Release supertype frequencies and peptide counts of a study; its linked rows stay where they are.

    Of each patient at most ``supertypes_per_patient`` supertypes and ``peptides_per_patient`` peptides count, so that
    one patient moves the numbers by that many in all, however many peptides were found. With ``peptides``, a public
    list, exactly these are counted; without it those that enough patients share are found, which needs ``delta``.
    ``share_for_peptides`` of ε goes to the peptides, and a tenth of the rest to the number of patients.

    Guarantee: (ε, δ) for the unit of the vault, a patient or a family, in three charges that are checked together
    before the first. Assumes: ``version`` names these rows for ever.
    """
    if not isinstance(study, ImmunopeptidomicsStudy) or not isinstance(supertypes, SupertypeTable):
        raise InvalidInput(
            "a public layer is made of an ImmunopeptidomicsStudy and a SupertypeTable; nothing was read or spent."
        )
    _check_unit(vault.unit)
    spent, part = rational(epsilon, "epsilon"), rational(share_for_peptides, "share_for_peptides")
    if not 0 < part < 1:
        raise InvalidInput("share_for_peptides is between 0 and 1, both excluded; nothing was read or spent.")
    if peptides is None and rational(delta, "delta") <= 0:
        raise InvalidInput(
            "which peptides there are is private: finding them needs delta; nothing was read or spent. Say delta=1e-7, "
            "or give a public list as peptides=[…]."
        )
    listed = None if peptides is None else _listed(peptides)
    of_patients, of_supertypes = spent * (1 - part) * _PERSONS, spent * (1 - part) * (1 - _PERSONS)
    carriers = vault.table(
        _carriers(study, supertypes),
        name="supertypes of patients",
        version=version,
        limit=_at_most(supertypes_per_patient, "supertypes_per_patient"),
        keys={"supertype": supertypes.names},
    )
    groups = (*supertypes.names, NOT_ASSIGNED)
    found = vault.table(
        _presented(study, supertypes),
        name="peptides of patients",
        version=version,
        limit=_at_most(peptides_per_patient, "peptides_per_patient"),
        keys={"supertype": groups} if listed is None else {"supertype": groups, "peptide": listed},
    )
    asked = (
        found.find_keys("supertype", "peptide") if listed is None else found.group_by("supertype", "peptide").persons()
    )
    questions = (
        (carriers.persons(), Budget.asked(epsilon=of_patients, delta=0)),
        (carriers.group_by("supertype").persons(), Budget.asked(epsilon=of_supertypes, delta=0)),
        (asked, Budget.asked(epsilon=spent * part, delta=delta if listed is None else 0)),
    )
    vault.check_fits([Intended(query=question.query, spend=each) for question, each in questions])
    patients, frequencies, counts = (
        question.release(epsilon=each.epsilon, delta=each.delta) for question, each in questions
    )
    return PublicLayer(version=version, table=supertypes, patients=patients, supertypes=frequencies, peptides=counts)


def _check_unit(unit: Unit) -> None:
    if not isinstance(unit, User | Family) or unit.column != PATIENT:
        raise Refused(
            "the unit of a study is a patient or a family of patients, told apart by the column patient; nothing was "
            "read or spent. Say sf.user('patient', …) or sf.family(4, 'patient', …)."
        )


def _listed(peptides: Iterable[str]) -> list[str]:
    """A public list of peptides; refused where it is one text, or holds anything but texts."""
    found = [] if isinstance(peptides, str) else list(peptides)
    if not found or not all(isinstance(each, str) for each in found):
        raise InvalidInput("peptides is a list of texts such as ['SIINFEKLL']; nothing was read or spent.")
    return sorted(set(found))


def _at_most(number: int, name: str) -> Limit:
    """Of each patient this many groups count, each once."""
    return Limit(groups=natural(number, name), rows_per_group=1)


def _carriers(study: ImmunopeptidomicsStudy, table: SupertypeTable) -> pa.Table:
    """One row for each copy of a gene whose supertype is known. Sensitive."""
    rows = pa.table({PATIENT: study.genotypes[PATIENT], "supertype": table.assign(study.genotypes["allele"]).rows})
    return rows.filter(rows["supertype"].is_valid())


def _presented(study: ImmunopeptidomicsStudy, table: SupertypeTable) -> pa.Table:
    """One row for each peptide of a patient, with the supertype that presents it. Sensitive."""
    groups = pc.fill_null(table.assign(study.peptides["allele"]).rows, NOT_ASSIGNED)
    return pa.table({PATIENT: study.peptides[PATIENT], "supertype": groups, "peptide": study.peptides["peptide"]})


def _limit_of(release: Release) -> int:
    limit = release.statement.limit
    return 0 if limit is None else limit.groups


def _named(rows: pa.Table, what: str) -> tuple[str, str, str]:
    """The columns of a number and of its interval."""
    return what, f"{what}_data_low", f"{what}_data_high"


def _share(numbers: pa.ChunkedArray, of: int) -> pa.ChunkedArray:
    share = pc.divide(numbers.cast(pa.float64()), pa.scalar(float(of)))
    return pc.min_element_wise(1.0, pc.max_element_wise(0.0, share))
