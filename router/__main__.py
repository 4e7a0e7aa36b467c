"""`python -m router`: the `domicile` command where its script is not on the path."""

from router.cli.main import main

if __name__ == "__main__":
    main(prog_name="domicile")
