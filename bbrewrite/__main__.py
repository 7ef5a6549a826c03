"""`python -m bbrewrite` is the command `bbrewrite`."""

from bbrewrite.cli.main import main

if __name__ == "__main__":
    main()
