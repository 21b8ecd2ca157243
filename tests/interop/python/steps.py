"""Steps of a client on one connection, each said as a line of JSON: `{"event": "step", "step": NAME, "passed": …}`.

Whoever starts the program takes the words behind its options for the steps, in that order.
"""

import json
import sys
import time
import traceback

# Nothing of what is waited for takes a tenth of it on a machine that does much else.
PATIENCE_S = 60


class Expected(Exception):
    """Something else came than what is right: says what was expected, and what came."""


def say(event, **more):
    print(json.dumps({"event": event, **more}, default=str), flush=True)


def expect(is_so, what, seen):
    """Goes on if `is_so`; the step fails with `what` was expected otherwise."""
    if not is_so:
        raise Expected(f"expected {what}; seen: {seen}")


def wait_for(condition, what, seen=lambda: "nothing"):
    """Waits until something is the case that other threads bring about."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        expect(time.monotonic() < end, what, seen())
        time.sleep(0.01)


def take(client, names):
    """Takes the steps of these names, methods of `client`: the exit code of the program."""
    passed = True
    for name in names:
        started = time.monotonic()
        try:
            more = getattr(client, name)() or {}
            good = True
        except Expected as fault:
            more, good = {"text": str(fault)}, False
        except Exception as fault:
            # A library's own failure: where it came about goes to the log.
            traceback.print_exc()
            more, good = {"text": f"{type(fault).__name__}: {fault}"}, False
        say("step", step=name, passed=good, seconds=round(time.monotonic() - started, 2), **more)
        passed &= good
    sys.stdout.flush()
    return 0 if passed else 1
