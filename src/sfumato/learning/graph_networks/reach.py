"""How far one node reaches, and how many recipients and hops there may be; it needs neither NumPy nor torch.

Proof: docs/proofs/graph_networks.md
"""

from sfumato.core.exact import natural

__all__ = ["MOST_HOPS", "MOST_RECIPIENTS", "influenced"]

MOST_RECIPIENTS, MOST_HOPS = 2**20, 16


def influenced(recipients: int, hops: int) -> int:
    """In how many rooted subgraphs of ``hops`` hops one node can be: 1 + D + … + D^K, attained on trees.

    How often somebody else's list names a node does not matter.

    >>> influenced(10, 2), influenced(10, 3), [influenced(d, k) for d, k in ((3, 1), (3, 2), (2, 4))]
    (111, 1111, [4, 13, 31])
    """
    most = natural(recipients, "recipients", most=MOST_RECIPIENTS)
    return sum(most**hop for hop in range(natural(hops, "hops", most=MOST_HOPS) + 1))
