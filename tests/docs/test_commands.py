"""The reference of the commands is what the program says of itself."""

from tests.docs.commands import PAGE, leaves, page


def test_the_reference_is_written_from_the_code() -> None:
    assert PAGE.read_text("utf-8") == page(), "write it again: .venv/bin/python -m tests.docs.commands"


def test_every_command_and_every_one_of_its_options_is_in_it() -> None:
    from typer.main import get_command

    from sfumato.cli.app import app

    sections = {part.partition("\n")[0]: part for part in page().split("\n## ")[1:]}
    found = dict(leaves(get_command(app)))
    assert list(sections) == list(found)
    assert len(found) >= 12
    for name, command in found.items():
        shown = [each for each in command.params if not getattr(each, "hidden", False)]  # old names are hidden
        options = {option for each in shown for option in each.opts if option.startswith("-")} - {"--help"}
        assert [option for option in options if f"`{option}`" not in sections[name]] == [], name
        assert f"$ sfumato {name}" in sections[name]
