"""Words that every part of drtool shares. No I/O; imports nothing of ours."""
