"""``python -m tempriv`` is the command line."""

from tempriv.cli import main

if __name__ == "__main__":
    main()
