"""`python -m drtool.cli`"""

from drtool.cli import main

main()
