"""Invented donors with the HLA-A and HLA-B frequencies of a real population, to see what a public layer tells of them.

Numbers of copies among White British participants of UK Biobank, as published with McInnes et al., Global Biobank
Engine, Bioinformatics 35 (2019); alleles with fewer than 200 copies are left out. Donors draw both copies of a gene,
and both genes, independently.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sfumato.genomics import SupertypeTable

__all__ = ["COPIES", "carriers", "donors"]

_A = """
01:01 130565, 02:01 180969, 02:02 441, 02:03 212, 02:05 4971, 02:06 1151, 02:11 396, 03:01 97125, 03:02 713,
11:01 40272, 23:01 11396, 24:02 47378, 25:01 9807, 26:01 11046, 26:08 459, 29:01 553, 29:02 28605, 30:01 6779,
30:02 6545, 30:04 639, 31:01 18014, 32:01 23299, 33:01 3653, 33:03 1169, 34:02 616, 66:01 1870, 68:01 20274,
68:02 3912, 74:01 221
"""
_B = """
07:02 99180, 07:05 846, 08:01 96875, 13:02 12854, 14:01 7722, 14:02 16808, 15:01 39895, 15:03 393, 15:16 247,
15:17 1144, 15:18 718, 18:01 23586, 27:02 419, 27:05 25959, 35:01 28656, 35:02 715, 35:03 4935, 35:08 561, 37:01 8835,
38:01 4592, 39:01 3993, 39:06 4434, 40:01 37138, 40:02 5122, 41:01 1288, 41:02 2246, 44:02 74617, 44:03 39012,
44:04 267, 44:05 745, 45:01 4361, 47:01 2069, 49:01 7636, 50:01 5637, 51:01 23438, 51:08 388, 52:01 3271, 53:01 1562,
55:01 12210, 56:01 1692, 57:01 26234, 58:01 3319
"""
COPIES: Mapping[str, Mapping[str, int]] = {
    gene: {f"{gene}*{name}": int(number) for name, number in (each.split() for each in text.split(","))}
    for gene, text in {"A": _A, "B": _B}.items()
}


def carriers(table: SupertypeTable) -> dict[str, float]:
    """The share of people who carry each supertype if copies are independent, most frequent first: what is published.

    >>> small = SupertypeTable(version="", digest="", of={"A*02:01": "A02", "A*02:05": "A02", "A*01:01": "A01"})
    >>> {name: round(share, 3) for name, share in carriers(small).items()}
    {'A02': 0.488, 'A01': 0.36}
    """
    missing: dict[str, float] = {}
    for copies in COPIES.values():
        everybody, of_gene = sum(copies.values()), dict[str, float]()
        for allele, number in copies.items():
            name = table.supertype(allele)
            if name is not None:
                of_gene[name] = of_gene.get(name, 0.0) + number / everybody
        for name, share in of_gene.items():
            missing[name] = missing.get(name, 1.0) * (1 - share) ** 2
    return dict(sorted(((name, 1 - left) for name, left in missing.items()), key=lambda each: -each[1]))


def donors(number: int, *, seed: int = 1) -> pa.Table:
    """Genotypes of invented donors: patient, gene and allele, four rows each.

    >>> donors(2).column_names, donors(2).num_rows
    (['patient', 'gene', 'allele'], 8)
    """
    chance = np.random.default_rng(seed)
    patient, gene, allele = [], [], []
    for name, copies in COPIES.items():
        share = np.array(list(copies.values())) / sum(copies.values())
        drawn = chance.choice(len(share), size=(number, 2), p=share)
        patient.append(np.repeat(np.char.add("d", np.arange(number).astype(str)), 2))
        gene.append(np.full(2 * number, name))
        allele.append(np.array(list(copies))[drawn.ravel()])
    columns = (np.concatenate(each) for each in (patient, gene, allele))
    return pa.table(dict(zip(("patient", "gene", "allele"), columns, strict=True)))
