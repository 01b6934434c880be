"""How many people are the only ones with their HLA genotype: why coarser typing does not protect anybody."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

__all__ = ["HLAUniqueness", "hla_uniqueness", "uniqueness_curve", "zipf"]

_MOST_ALLELES, _MOST_PAIRS = 2_000, 5 * 10**8


@dataclass(frozen=True, slots=True, kw_only=True)
class HLAUniqueness:
    """``genotypes`` that are possible, and the share of ``people`` expected to be the only one with theirs."""

    genotypes: int
    people: int
    unique: float


def hla_uniqueness(*alleles: int | Sequence[float], people: int, evenly: bool = False) -> HLAUniqueness:
    """Genotypes over several genes, and the expected share of people whom theirs singles out.

    Each gene is given by its number of alleles, which then have frequencies as 1/rank, or by their frequencies. People
    draw both copies independently (Hardy–Weinberg), and genes independently. With ``evenly`` every genotype is as
    likely as any other. Assumes these frequencies; nothing private is read. Public: all of it.

    >>> hla_uniqueness(21, 36, people=1000, evenly=True)
    HLAUniqueness(genotypes=153846, people=1000, unique=0.9935275097925241)
    >>> round(hla_uniqueness(21, 36, people=1000).unique, 3)
    0.829
    """
    natural(people, "people")
    if not alleles:
        raise InvalidInput("no gene was given; nothing was done. Give the number of alleles of each.")
    genes = [zipf(int(each)) if isinstance(each, int | np.integer) else _frequencies(each) for each in alleles]
    genotypes = 1
    for gene in genes:
        genotypes *= len(gene) * (len(gene) + 1) // 2
    if evenly:
        return HLAUniqueness(genotypes=genotypes, people=people, unique=(1 - 1 / genotypes) ** (people - 1))
    weights, counts = np.ones(1), np.ones(1)
    for gene in genes[:-1]:
        weights, counts = _crossed(weights, counts, *_genotypes(gene))
    last, times = _genotypes(genes[-1])
    if len(weights) * len(last) > _MOST_PAIRS:
        raise InvalidInput("so large a table of genotypes is not computed; nothing was done. Give fewer alleles.")
    unique = 0.0
    for weight, count in zip(weights, counts, strict=True):
        chance = np.minimum(weight * last, 1 - 1e-16)
        unique += float(count * (times * chance * np.exp((people - 1) * np.log1p(-chance))).sum())
    return HLAUniqueness(genotypes=genotypes, people=people, unique=unique)


def uniqueness_curve(*alleles: int, people: Sequence[int]) -> NDArray[np.float64]:
    """The share of unique people for several numbers of people, for a picture: chances are rounded to half a percent.

    >>> uniqueness_curve(21, 36, people=(10, 1000)).round(2).tolist()
    [1.0, 0.83]
    """
    step = 0.005  # of the logarithm of a chance
    mass = np.ones(1)
    for each in alleles:
        chances, times = _genotypes(zipf(each))
        places = np.round(-np.log(chances) / step).astype(int)
        mass = np.convolve(mass, np.bincount(places, weights=chances * times))
    chance = np.minimum(np.exp(-step * np.arange(len(mass))), 1 - 1e-16)
    return np.asarray([(mass * np.exp((number - 1) * np.log1p(-chance))).sum() for number in people])


def zipf(alleles: int) -> NDArray[np.float64]:
    """Frequencies as 1/rank: a few alleles are common and most are rare.

    >>> zipf(2).round(4).tolist()
    [0.6667, 0.3333]
    """
    shares = 1 / np.arange(1, natural(alleles, "alleles", most=_MOST_ALLELES) + 1)
    return np.asarray(shares / shares.sum())


def _frequencies(given: Sequence[float]) -> NDArray[np.float64]:
    try:
        shares = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        shares = np.zeros(1)
    if shares.ndim != 1 or not 0 < len(shares) <= _MOST_ALLELES or not np.isfinite(shares).all() or (shares <= 0).any():
        raise InvalidInput("frequencies of alleles are positive numbers, one for each allele; nothing was done.")
    return np.asarray(shares / shares.sum())


def _genotypes(gene: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct probabilities of genotypes of one gene, and how many genotypes have each."""
    first, second = np.triu_indices(len(gene))
    return _distinct(gene[first] * gene[second] * np.where(first == second, 1.0, 2.0), np.ones(len(first)))


def _crossed(
    weights: NDArray[np.float64], counts: NDArray[np.float64], more: NDArray[np.float64], times: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(weights) * len(more) > _MOST_PAIRS // 100:
        raise InvalidInput("so large a table of genotypes is not computed; nothing was done. Give fewer genes.")
    return _distinct(np.outer(weights, more).ravel(), np.outer(counts, times).ravel())


def _distinct(
    weights: NDArray[np.float64], counts: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Equal weights once: probabilities that differ in the last bits alone are taken as one."""
    digits = 12 - np.floor(np.log10(weights)).astype(int)
    values, places = np.unique(np.round(weights * 10.0**digits) / 10.0**digits, return_inverse=True)
    return values, np.bincount(places, weights=counts).astype(np.float64)
