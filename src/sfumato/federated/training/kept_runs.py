"""The runs that lie in the folder of a site: which there are, and how the site leaves one while it is under way."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.federated.training.written import written

__all__ = ["KeptRun", "kept_runs", "leave_run"]

DIGITS = 64
FEWEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run that a site voted for: what was proposed, whether its ledger was charged, and whether it has left."""

    proposal: TrainingProposal
    charged: bool
    left: bool

    @property
    def digest(self) -> str:
        """The digest by which all sites know the run."""
        return self.proposal.digest


def kept_runs(folder: Path) -> tuple[KeptRun, ...]:
    """The runs of a folder, by their digests; a file that is no proposal is passed over."""
    found = []
    for file in sorted(folder.glob("*.proposal")):
        try:
            proposal = TrainingProposal.from_json(file.read_text("utf-8"))
        except (SfumatoError, OSError, ValueError):
            continue
        if proposal.digest == file.stem:
            there = {what: (folder / f"{file.stem}.{what}").exists() for what in ("run", "left")}
            found.append(KeptRun(proposal=proposal, charged=there["run"], left=there["left"]))
    return tuple(found)


def leave_run(folder: Path, run: str) -> KeptRun:
    """Have the site leave a run, named by the first digits of its digest; it takes part in no later round.

    A process that answers from the folder finds that out at its next step. What was charged stays charged.
    """
    fits = [one for one in kept_runs(folder) if len(run) >= FEWEST and one.digest.startswith(run.lower())]
    if len(fits) != 1:
        raise InvalidInput(
            f"{run!r} names no run of this site, or several; nothing was left. Give the first {FEWEST} digits or more, "
            "as sfumato site runs prints them."
        )
    written(folder / f"{fits[0].digest}.left", b"")
    return fits[0]
