"""The agreement of a consortium as a small file that people read and compare: TOML, the same at every site."""

import json
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from sfumato.core.query import check_name
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.federated.agreement import SiteAgreement
from sfumato.federated.http_site import place_of

__all__ = ["ConsortiumPaper"]

KIND, VERSION = "consortium agreement", 1
NUMBERS = ("sites_per_person", "missing", "colluding", "least_sites")
FIELDS = {"kind", "version", "name", "address", "coordinator", "lying", "members", *NUMBERS}


@dataclass(frozen=True, kw_only=True)
class ConsortiumPaper:
    """What all sites of a consortium hold alike: its name, where its coordinator is reached, and the agreement.

    ``address`` is HOST:PORT; where it is empty, files are carried. Guarantee: one agreement has one text, so that sites
    that compare :attr:`digest` have agreed on the same. Public: every field.
    """

    name: str
    agreement: SiteAgreement
    address: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a consortium")
        for member in self.agreement.members:
            check_name(member, "the name of a site")
        if not self.agreement.coordinator:
            raise InvalidInput("an agreement names the public key of its coordinator; nothing was agreed.")
        if self.address:
            place_of(self.address)

    @property
    def digest(self) -> str:
        """SHA-256 of the text: what sites compare by another way, such as the telephone."""
        return sha256(self.to_toml().encode()).hexdigest()

    def to_toml(self) -> str:
        """The text."""
        paper = self.agreement
        said: dict[str, str | int] = {
            "kind": KIND,
            "version": VERSION,
            "name": self.name,
            "coordinator": paper.coordinator,
            "address": self.address,
            **{name: getattr(paper, name) for name in NUMBERS},
            "lying": paper.lying,
        }
        members = "".join(f"{_text(name)} = {_text(key)}\n" for name, key in sorted(paper.members.items()))
        return "".join(f"{name} = {_text(value)}\n" for name, value in said.items()) + f"\n[members]\n{members}"

    @classmethod
    def from_toml(cls, text: str) -> "ConsortiumPaper":
        """Read an agreement; what is not in the form of :meth:`to_toml` is refused."""
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as wrong:
            raise InvalidInput(f"this is no TOML ({wrong}); nothing was agreed.") from None
        if set(found) != FIELDS or (found["kind"], found["version"]) != (KIND, VERSION):
            raise InvalidInput("this is not the agreement of a consortium; nothing was agreed.")
        texts = {name: found[name] for name in ("name", "address", "coordinator")}
        members = found["members"]
        if not all(isinstance(value, str) for value in (*texts.values(), *_values(members))):
            raise InvalidInput("names, the address and keys of an agreement are texts; nothing was agreed.")
        if type(found["lying"]) is not bool:
            raise InvalidInput("lying is true or false in an agreement; nothing was agreed.")
        agreement = SiteAgreement(
            members=members,
            lying=found["lying"],
            coordinator=texts["coordinator"],
            **{name: found[name] for name in NUMBERS},
        )
        return cls(name=texts["name"], address=texts["address"], agreement=agreement)

    @classmethod
    def load(cls, file: str | Path) -> "ConsortiumPaper":
        """Read an agreement from its file."""
        try:
            return cls.from_toml(Path(file).read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"{file} cannot be read; nothing was agreed.") from None
        except SfumatoError as wrong:
            raise InvalidInput(f"{file}: {wrong}") from None


def _values(members: object) -> list[object]:
    return list(members.values()) if isinstance(members, dict) else [None]


def _text(value: str | int) -> str:
    return json.dumps(value, ensure_ascii=False)
