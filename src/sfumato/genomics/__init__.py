"""Genomics: HLA names and supertypes, files of laboratories, and what of a study may be published.

The linked rows of a study are data like any other, and stay where they are. :func:`build_public_layer` releases noisy
numbers of patients; :func:`hla_uniqueness` says how many people a genotype singles out.
"""

from sfumato.genomics.alleles import Allele, HLATyping
from sfumato.genomics.genotypes import read_genotypes
from sfumato.genomics.peptides import read_peptides
from sfumato.genomics.public_layer import PublicLayer, build_public_layer
from sfumato.genomics.reading import LaboratoryRows
from sfumato.genomics.study import ImmunopeptidomicsStudy
from sfumato.genomics.supertypes import SupertypeTable
from sfumato.genomics.uniqueness import HLAUniqueness, hla_uniqueness
from sfumato.genomics.variants import read_maf, read_vcf

__all__ = [
    "Allele",
    "HLATyping",
    "HLAUniqueness",
    "ImmunopeptidomicsStudy",
    "LaboratoryRows",
    "PublicLayer",
    "SupertypeTable",
    "build_public_layer",
    "hla_uniqueness",
    "read_genotypes",
    "read_maf",
    "read_peptides",
    "read_vcf",
]
