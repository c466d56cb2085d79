"""Settings for every test: hypothesis repeats the same cases everywhere, and nothing is judged by its duration."""

import os
import signal

from hypothesis import settings

# some tests fork: gRPC, whose threads other tests leave behind, must not try to start them again in the child
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

settings.register_profile("drtool", deadline=None, derandomize=True, database=None)
settings.load_profile("drtool")

# a shell that runs the tests in the background has its children ignore SIGINT, and theirs would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)
