"""The keys that sign releases."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput

__all__ = ["keys"]

keys = typer.Typer(
    help="Make and show the keys that sign releases.\n\nExample: $ sfumato key new board.key",
    no_args_is_help=True,
)


@keys.command("new")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the key.")], *, as_json: AsJson = False
) -> None:
    """Make an Ed25519 key: FILE, readable by you alone, and FILE.pub to share.

    Neither is ever overwritten: whoever loses a key can no longer sign as the same publisher.

    Example: $ sfumato key new board.key
    """
    from sfumato.core.signature import SigningKey

    public = Path(f"{file}.pub")
    for taken in (file, public):
        if taken.exists() or taken.is_symlink():
            raise InvalidInput(f"{taken} already exists and was not overwritten. Choose a new file.")
    key = SigningKey.new()
    key.save(file)
    if as_json:
        say_json({"key": str(file), "public_key_file": str(public), "public_key": key.public_text})
        return
    say(f"key:        {file} (keep it secret)\npublic key: {public} (share it)\n{key.public_text}")


@keys.command("show")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A key, or its .pub file.")], *, as_json: AsJson = False
) -> None:
    """Print the public half of a key, as 64 hexadecimal digits; the private half is never printed.

    Example: $ sfumato key show board.key
    """
    from sfumato.core.signature import SigningKey, read_public_key

    if not file.is_file():
        raise InvalidInput(f"there is no file {file}. Make a key: sfumato key new {file}")
    try:
        text = read_public_key(file)
    except InvalidInput:
        text = SigningKey.load(file).public_text
    say_json({"public_key": text}) if as_json else say(text)
