"""Settings for every test: hypothesis repeats the same cases everywhere, and nothing is judged by its duration."""

from hypothesis import settings

settings.register_profile("drtool", deadline=None, derandomize=True, database=None)
settings.load_profile("drtool")
