"""Who may charge what through an owner process: users of the machine, each with the accounts that are theirs.

A user is known by the number that the kernel states for the other end of a connection. It grants charging, and nothing
else: accounts, caps, datasets and decisions are not offered on the socket.
"""

import os
import pwd
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sfumato.core.signature import read_public_key
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.owner.frames import overflow_uid
from sfumato.governance.terms import levels_of

__all__ = ["Permissions", "uid_of"]

EVERYTHING = "*"
BELOW = "/*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The accounts that each user may charge, and the keys that may sign for it.

    ``accounts`` are paths, each for itself alone; ``hospital/oncology/*`` is every account below that one, and ``*``
    every account. The user who runs the process may charge every account. A user with ``keys`` commits what one of them
    signed; of others any key may sign.

    >>> allowed = Permissions(accounts={1001: frozenset({"hospital/oncology/*"})})
    >>> allowed.allows(1001, "hospital/oncology/readmissions"), allowed.allows(1001, "hospital/oncology")
    (True, False)
    """

    accounts: Mapping[int, frozenset[str]] = field(default_factory=dict)
    keys: Mapping[int, frozenset[str]] = field(default_factory=dict)
    own: int = field(default_factory=os.geteuid)
    nobody: int = field(default_factory=overflow_uid)

    @classmethod
    def read(cls, allow: Iterable[str] = (), release_keys: Iterable[str] = ()) -> "Permissions":
        """Permissions as options state them: ``USER=ACCOUNT`` and ``USER=KEY``, a user by name or number."""
        accounts: dict[int, frozenset[str]] = {}
        keys: dict[int, frozenset[str]] = {}
        for text in allow:
            uid, path = _pair(text, "--allow USER=institution/department/project")
            if path != EVERYTHING:
                levels_of(path.removesuffix(BELOW))
            accounts[uid] = accounts.get(uid, frozenset()) | {path}
        for text in release_keys:
            uid, key = _pair(text, "--release-key USER=KEY")
            keys[uid] = keys.get(uid, frozenset()) | {read_public_key(key)}
        return cls(accounts=accounts, keys=keys)

    @property
    def alone(self) -> bool:
        """Whether nobody but the user of the process itself may charge."""
        return set(self.accounts) <= {self.own}

    def check_user(self, uid: int) -> None:
        """Refuse whom nobody listed, and who is no user in particular."""
        if uid == self.nobody:
            raise Refused(
                f"user {uid} stands for everybody whom this machine does not know, such as users of a container with "
                "users of its own; nothing was read and nothing was spent. Charge as a user of this machine."
            )
        if uid != self.own and uid not in self.accounts:
            raise Refused(
                f"user {uid} may charge nothing here; nothing was read and nothing was spent. Ask whoever runs the "
                "owner process: sfumato ledger serve --allow USER=ACCOUNT"
            )

    def check_account(self, uid: int, path: str) -> None:
        """Refuse an account that a user may not charge, in words that do not say whether it exists."""
        self.check_user(uid)
        if not self.allows(uid, path):
            raise Refused(
                f"user {uid} may not charge this account here, whether or not there is one of this name; nothing was "
                "read and nothing was spent. Ask whoever runs the owner process: sfumato ledger serve --allow "
                "USER=ACCOUNT"
            )

    def allows(self, uid: int, path: str) -> bool:
        """Whether a user may charge an account."""
        if uid == self.nobody:
            return False
        listed = self.accounts.get(uid, frozenset())
        above = levels_of(path)[:-1]
        return (
            uid == self.own
            or EVERYTHING in listed
            or path in listed
            or any(f"{level}{BELOW}" in listed for level in above)
        )

    def check_signer(self, uid: int, key: str) -> None:
        """Refuse a certificate that none of the user's keys signed, where some are declared."""
        known = self.keys.get(uid)
        if known is not None and key not in known:
            raise Refused(
                f"the certificate is signed by the key {key[:16]}…, which is not a release key of user {uid}; nothing "
                "was stored, nothing may be delivered, and the charge counts. Sign with a declared key: sfumato "
                "ledger serve --release-key USER=KEY"
            )


def uid_of(user: str) -> int:
    """The number of a user by name or number.

    >>> uid_of("1001")
    1001
    """
    if user.isdecimal() and len(user) <= 10:
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        raise InvalidInput(
            f"this machine knows no user {user!r}; nothing was served. Give a name or a number."
        ) from None


def _pair(text: str, form: str) -> tuple[int, str]:
    user, sign, value = text.partition("=")
    if not (user and sign and value):
        raise InvalidInput(f"{text!r} says nothing about a user; nothing was served. Write {form}.")
    return uid_of(user), value
