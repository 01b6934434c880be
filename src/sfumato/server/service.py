"""The service: a folder with a ledger, its key and anchor, the service's own tables, and the data of stewards.

One process owns it. Workers read data and charge through the private socket of this process, so that the ledger's key
and its anchor never leave it (decision 0031).
"""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError
from sfumato.governance import settings as ledger_settings
from sfumato.governance.ledger import Ledger
from sfumato.governance.owner.server import OwnerServer
from sfumato.governance.owner.socket_server import LONGEST_PATH
from sfumato.reports.stored import stored_release
from sfumato.server import words
from sfumato.server.database import Database
from sfumato.server.datasets.databases import check_apart
from sfumato.server.datasets.registry import Datasets
from sfumato.server.identity.people import PersonRegister
from sfumato.server.identity.sessions import Sessions
from sfumato.server.identity.throttle import Throttle
from sfumato.server.identity.tokens import Tokens
from sfumato.server.settings import ServiceSettings

__all__ = ["Service"]

RELEASE_KEY, DATA, SOCKET = "release.key", "data", "owner.sock"


class Service:
    """One institution's service, in one folder.

    Guarantee: this process alone holds the ledger's key and anchor. Assumes: the folder is readable by its owner only.
    """

    def __init__(self, folder: Path, settings: ServiceSettings, ledger: Ledger) -> None:
        self.folder, self.settings, self.ledger = folder, settings, ledger
        self.release_key = folder / RELEASE_KEY
        """The key that signs the certificates of workers."""
        self.database = Database.at(settings.database, folder)
        self.database.create()
        self.people = PersonRegister(self.database)
        self.sessions = Sessions(
            self.database,
            idle=settings.idle_minutes * 60.0,
            longest=settings.session_minutes * 60.0,
            confirmed=settings.confirmed_minutes * 60.0,
            now=self.now,
        )
        self.tokens = Tokens(self.database, now=self.now)
        self.datasets = Datasets(self.database, ledger, folder, self.now, dict(settings.databases))
        self.sign_ins = Throttle(burst=8, seconds=20, now=time.monotonic)
        self.addresses = Throttle(burst=40, seconds=3, now=time.monotonic)
        self.held: dict[str, object] = {}
        """What areas keep for as long as this process runs."""
        self._starting: list[Callable[[], object]] = []
        self._stopping: list[Callable[[], object]] = []
        self._owner: OwnerServer | None = None
        self._thread: threading.Thread | None = None
        self._held = ExitStack()

    @classmethod
    def create(cls, folder: str | Path, settings: ServiceSettings | None = None) -> "Service":
        """Make a service in a new folder: ledger, keys, tables and settings; nothing that exists is overwritten."""
        place = Path(folder).absolute()
        if place.exists() and any(place.iterdir()):
            raise InvalidInput(f"{place} is not empty; nothing was made. Name a new folder.")
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.chmod(0o700)
        (place / DATA).mkdir(mode=0o700)
        ledger_settings.made(place)
        SigningKey.new().save(place / RELEASE_KEY)
        (settings or ServiceSettings()).write(place)
        return cls.open(place)

    @classmethod
    def open(cls, folder: str | Path, **instead: object) -> "Service":
        """Open a service that was made; its ledger is compared with its anchor."""
        place = Path(folder).absolute()
        settings = ServiceSettings.load(place, **instead)
        check_apart(dict(settings.databases), (settings.database, ledger_settings.found(place).url))
        return cls(place, settings, ledger_settings.opened(place))

    @property
    def data(self) -> Path:
        """Where files of stewards lie."""
        return self.folder / DATA

    @property
    def owner(self) -> str:
        """The address at which workers charge, ``unix:…``."""
        if self._owner is None:
            raise LedgerError("the service has not started, so that nobody can charge through it; nothing was done.")
        return f"unix:{self._owner.place}"

    @cached_property
    def release_public_key(self) -> str:
        """The public half of the key that signs releases of this service."""
        return SigningKey.load(self.release_key).public_text

    def clock(self) -> datetime:
        """The time of the ledger."""
        return self.ledger.record.clock().astimezone(UTC)

    def now(self) -> float:
        """The same as seconds."""
        return self.ledger.record.clock().timestamp()

    def words(self, language: str) -> "words.PageWords":
        """What is said to people, in a language."""
        return words.PageWords(language)

    def on_start(self, act: Callable[[], object]) -> None:
        """Do something when the service starts, after its socket listens."""
        self._starting.append(act)

    def on_stop(self, act: Callable[[], object]) -> None:
        """Do something when it stops, before its socket closes; the last that was said comes first."""
        self._stopping.append(act)

    def start(self) -> None:
        """Listen for workers, then do what was asked for at the start."""
        if self._owner is not None:
            return
        listening, failed = threading.Event(), []
        server = OwnerServer(self.ledger, self._socket(), reader=stored_release)

        def serve() -> None:
            try:
                server.serve(listening.set)
            except LedgerError as wrong:
                failed.append(wrong)
                listening.set()

        self._thread = threading.Thread(target=serve, name="ledger owner")
        self._thread.start()
        listening.wait()
        if failed:
            self._thread.join()
            raise failed[0]
        self._owner = server
        for act in self._starting:
            act()

    def stop(self) -> None:
        """Undo :meth:`start`; charges that workers left open count."""
        while self._stopping:
            self._stopping.pop()()
        if self._owner is not None and self._thread is not None:
            self._owner.stop()
            self._thread.join()
        self._owner = self._thread = None
        self._held.close()

    def close(self) -> None:
        """Stop, and give databases back."""
        self.stop()
        self.database.close()
        self.ledger.close()

    def _socket(self) -> Path:
        """The socket in the folder, or where its path would be too long for one, in a folder of its own elsewhere."""
        place = self.folder / SOCKET
        if len(os.fsencode(f"{place}.lock")) <= LONGEST_PATH:
            return place
        other = Path(tempfile.mkdtemp(prefix="sfumato-"))
        self._held.callback(shutil.rmtree, other, ignore_errors=True)
        return other / SOCKET
