"""The command ``specbundle``: runs what was asked for and exits with the code of what failed."""

from __future__ import annotations

import sys
from typing import Any

import typer

from bundle.commands import app, err
from bundle.errors import SpecbundleError, UsageError


def main(argv: list[str] | None = None) -> None:
    """Run the command and exit with the code of what went wrong, if anything did."""
    try:
        code: Any = app(args=argv, standalone_mode=False)
    except SpecbundleError as error:
        err.print(f"specbundle: {error}", markup=False)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        err.print("specbundle: stopped; finished runs stay, the same command resumes")
        sys.exit(130)
    except Exception as error:
        if (formatted := getattr(error, "format_message", None)) is None:
            raise
        err.print(f"specbundle: {formatted()}", markup=False)
        sys.exit(UsageError.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
