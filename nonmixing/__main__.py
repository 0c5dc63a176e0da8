"""`python -m nonmixing` is the command `nonmixing`."""

from nonmixing.cli import run

if __name__ == "__main__":
    run()
