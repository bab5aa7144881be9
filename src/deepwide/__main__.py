"""`python -m deepwide` is `deepwide`."""

from deepwide.cli import main

if __name__ == "__main__":
    main()
