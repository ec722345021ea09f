"""``python -m tempriv`` is the command line."""

from tempriv.cli.app import main

if __name__ == "__main__":
    main()
