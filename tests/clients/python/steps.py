"""What the Python clients share: steps that are told one by one, and a receiver of webhooks.

A client is a list of steps for each transport. A step that is done prints `ok TRANSPORT STEP`; the first that fails
prints what it saw and ends the program. Every step has a time limit. The variable STEPS names the steps to take; without it all are.
"""

import asyncio
import json
import os
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue

STEP_S_MAX = 20


def report(line):
    """Writes a line in one piece. Libraries print from threads of their own (crewAI draws boxes) and would tear it apart."""
    sys.stdout.write(f"\n{line}\n")
    sys.stdout.flush()


def run(steps):
    """Runs `steps(url, transport)`, an async generator that yields (name, coroutine), for each transport asked for."""
    url, *transports = sys.argv[1:]
    asyncio.run(_run(steps, url, transports))


async def _run(steps, url, transports):
    wanted = os.environ.get("STEPS")
    for transport in transports:
        async for name, step in steps(url, transport):
            if wanted is not None and name not in wanted.split(","):
                step.close()
                continue
            try:
                await asyncio.wait_for(step, STEP_S_MAX)
            except BaseException:
                report(f"FAILED {transport} {name}")
                traceback.print_exc()
                sys.exit(1)
            report(f"ok {transport} {name}")


def under(name, url):
    """The same server under another name of this machine."""
    return url.replace("//127.0.0.1:", f"//{name}:")


def same(saw, expected):
    """An assertion that tells both sides."""
    if saw != expected:
        raise AssertionError(f"\n  saw      {saw!r}\n  expected {expected!r}")


async def refused(call, *signs):
    """Awaits a call that must be refused, with these words or numbers somewhere in what the SDK raises."""
    try:
        answer = await call
    except Exception as error:
        said = f"{type(error).__name__} {error!r} {error}"
        if not any(str(sign) in said for sign in signs):
            raise AssertionError(f"refused, but said {said}, with none of {signs}") from error
        return
    raise AssertionError(f"not refused: {answer!r}")


def chunks(count):
    """What the demo agent streams when asked for so many chunks."""
    return "".join(f"chunk {number} of {count}\n" for number in range(1, count + 1))


class Hooks:
    """A receiver of webhooks on a free port of this machine."""

    def __init__(self):
        self.received = received = Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.put((dict(self.headers), json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    async def until(self, wanted):
        """The headers and body of the first delivery whose body is wanted; tells what came if none does in time."""
        seen = []
        while True:
            try:
                headers, body = await asyncio.to_thread(self.received.get, True, STEP_S_MAX / 2)
            except Empty:
                raise AssertionError(f"no such delivery; received: {seen}") from None
            if wanted(body):
                return {name.lower(): value for name, value in headers.items()}, body
            seen.append(body)
