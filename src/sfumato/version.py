"""The version of the code, which every release states."""

__version__ = "0.1.0"
