"""``tempriv serve`` for tests: as the command, but a test may send as often as it likes."""

from tempriv.cli import main
from tempriv.collect import app
from tests.collecting import GENEROUS

if __name__ == "__main__":
    app.Limits = lambda: GENEROUS  # type: ignore[assignment,misc]
    main()
