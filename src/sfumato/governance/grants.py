"""Who may do what in a PostgreSQL database with a ledger: roles for those who charge and for those who read.

The owner of the tables makes and migrates them, recovers and restores, and runs these statements once. Nobody else can
change or delete a row of the record, or drop the trigger that forbids it to the owner too.
"""

from sfumato.errors import InvalidInput

__all__ = ["statements"]

RECORD = "record"
STATE = ("balance", "edition", "charge", "answer", "node", "head")
READ = ("alembic_version",)
STALLED = {"idle_in_transaction_session_timeout": "60s", "lock_timeout": "60s", "statement_timeout": "10min"}
"""How long a session of each role may stall; the ledger sets less for its own transactions."""


def statements(*, charger: str = "sfumato_charger", reader: str = "sfumato_reader") -> list[str]:
    """The SQL, statement by statement; said again it changes nothing.

    >>> print(statements()[-1])
    ALTER ROLE "sfumato_reader" SET statement_timeout TO '10min';
    """
    if charger == reader:
        raise InvalidInput("who charges and who only reads are two roles; no SQL was written.")
    tables = (RECORD, *STATE, *READ)
    lines = ["-- Run as the owner of the tables, in the database of the ledger."]
    for role in (charger, reader):
        lines += [
            f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_text(role)}) THEN "
            f"CREATE ROLE {_name(role)} LOGIN; END IF; END $$;"
        ]
    both = f"{_name(charger)}, {_name(reader)}"
    lines += [
        f"REVOKE ALL ON {', '.join(tables)} FROM PUBLIC;",
        f"REVOKE ALL ON {', '.join(tables)} FROM {both};",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
        f"GRANT USAGE ON SCHEMA public TO {both};",
        f"GRANT SELECT ON {', '.join(tables)} TO {both};",
        f"GRANT INSERT ON {RECORD} TO {_name(charger)};",
        f"GRANT INSERT, UPDATE ON {', '.join(STATE)} TO {_name(charger)};",
    ]
    for role in (charger, reader):
        lines += [f"ALTER ROLE {_name(role)} SET {name} TO '{most}';" for name, most in STALLED.items()]
    return lines


def _name(role: str) -> str:
    """A role's name as SQL has it."""
    if not role or "\x00" in role:
        raise InvalidInput("a role has a name; no SQL was written.")
    return '"' + role.replace('"', '""') + '"'


def _text(role: str) -> str:
    return "'" + role.replace("'", "''") + "'"
