"""``tempriv serve`` for tests: as the command, but a test may send as often as it likes."""

from tempriv.cli.app import main
from tempriv.collect.server import app
from tests.support.collecting import GENEROUS

if __name__ == "__main__":
    app.RateLimits = lambda: GENEROUS  # type: ignore[assignment,misc]
    main()
