"""A site that answers both kinds of requests: questions about its table, and steps of training runs."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from sfumato.errors import SfumatoError
from sfumato.federated.agreement import SiteAgreement
from sfumato.federated.hospital import Hospital
from sfumato.federated.messages import unpacked

if TYPE_CHECKING:
    from sfumato.federated.training.training_site import TrainingSite

__all__ = ["WholeSite"]

TRAIN = b"train"


class WholeSite:
    """A :class:`Hospital`, and a training site that is made when the coordinator first asks for training.

    ``training`` makes it: what training needs is loaded then, and a site that is never asked for it never loads it.
    Guarantee: that of the two; who may ask what is checked by each of them, and here before either is made.
    """

    def __init__(self, hospital: Hospital, training: "Callable[[], TrainingSite]", *, agreement: SiteAgreement) -> None:
        self._hospital, self._begin, self._agreement = hospital, training, agreement
        self._training: TrainingSite | None = None
        self._turn = Lock()

    @property
    def public_key(self) -> str:
        """The key that this site is known by."""
        return self._hospital.public_key

    def answer(self, request: bytes) -> bytes:
        """Answer what the coordinator sent."""
        if not self._about_training(request):
            return self._hospital.answer(request)
        with self._turn:
            if self._training is None:
                self._training = self._begin()
        return self._training.answer(request)

    def close(self) -> None:
        """Leave the folders to another process."""
        self._hospital.close()
        if self._training is not None:
            self._training.close()

    def _about_training(self, request: bytes) -> bool:
        asked = self._agreement.request(request, self.public_key)
        try:
            return unpacked(asked)[0] == TRAIN
        except (SfumatoError, LookupError, ValueError):
            return False
