"""`python -m streamskit COMMAND`: see `streamskit.cli.commands`."""

import sys

from streamskit.cli.commands import main

sys.exit(main())
