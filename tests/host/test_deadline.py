from __future__ import annotations

import signal
import threading
import time

import pytest

from drtool.host.deadline import OutOfTime, deadline


def test_a_block_that_hangs_is_ended() -> None:
    with pytest.raises(OutOfTime, match=r"the wait took longer than 0\.05 s"), deadline(0.05, "the wait"):
        time.sleep(30)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_block_in_time_is_left_alone() -> None:
    with deadline(60, "the wait"):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_other_threads_have_no_limit() -> None:
    done = []

    def run() -> None:
        with deadline(0.01, "the wait"):
            time.sleep(0.05)
            done.append(True)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done == [True]
