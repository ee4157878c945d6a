"""Tests that the kit of A2A 1.0 lacks: waiting, not waiting, and a task that stops until somebody allows it.

This file belongs to Switchboard. `xtask conformance` puts it into its copy of the kit, beside the kit's own tests of
core operations. The agent acts by the beginning of a message's id, as it does for the other tests.
"""

from __future__ import annotations

import time

import pytest

from tck.requirements.base import (
    TASK_STATE_AUTH_REQUIRED,
    TASK_STATE_COMPLETED,
    TASK_STATE_SUBMITTED,
    TASK_STATE_WORKING,
    tck_id,
)
from tck.requirements.registry import get_requirement_by_id
from tck.transport import ALL_TRANSPORTS
from tests.compatibility._test_helpers import assert_and_record, get_client
from tests.compatibility.markers import must

# The agent takes 2 s over a task with a delay.
AT_ONCE_S_MAX = 1.5
COMPLETED_S_MAX = 5.0
POLL_S = 0.25

IN_PROGRESS = (TASK_STATE_SUBMITTED, TASK_STATE_WORKING)


def _send(client, prefix, configuration=None):
    message = {"role": "ROLE_USER", "parts": [{"text": "Please"}], "messageId": tck_id(prefix)}
    return client.send_message(message=message, configuration=configuration)


def _state(response, transport):
    """The state of the task in an answer to SendMessage, which wraps the task, or to GetTask, which does not."""
    raw = response.raw_response
    if transport == "grpc":
        return (raw.task if raw.DESCRIPTOR.name == "SendMessageResponse" else raw).status.state
    result = raw.get("result", raw)
    return result.get("task", result).get("status", {}).get("state")


def _wrong_state(response, transport, *allowed):
    """What is wrong with the state of the answer: nothing if it is one of those allowed."""
    if not response.success:
        return [f"the call failed: {response.error}"]
    state = _state(response, transport)
    if any(state == (one.grpc_value if transport == "grpc" else one.json_value) for one in allowed):
        return []
    return [f"the state is {state}, not {' or '.join(one.json_value for one in allowed)}"]


@must
@pytest.mark.parametrize("transport", ALL_TRANSPORTS)
class TestExecutionAndAuth:
    def test_a_task_stops_at_auth_required(self, transport, transport_clients, compatibility_collector):
        req = get_requirement_by_id("AUTH-INTASK-002")
        client = get_client(transport_clients, transport, compatibility_collector=compatibility_collector, req=req)
        sent = _send(client, "auth-required")
        errors = _wrong_state(sent, transport, TASK_STATE_AUTH_REQUIRED)
        if not errors:
            errors = _wrong_state(client.get_task(id=sent.task_id), transport, TASK_STATE_AUTH_REQUIRED)
        assert_and_record(compatibility_collector, req, transport, errors)

    def test_a_blocking_send_waits_for_the_end(self, transport, transport_clients, compatibility_collector):
        req = get_requirement_by_id("CORE-EXECUTION-MODE-001")
        client = get_client(transport_clients, transport, compatibility_collector=compatibility_collector, req=req)
        errors = _wrong_state(_send(client, "delayed-complete"), transport, TASK_STATE_COMPLETED)
        assert_and_record(compatibility_collector, req, transport, errors)

    def test_return_immediately_does_not_wait(self, transport, transport_clients, compatibility_collector):
        req = get_requirement_by_id("CORE-EXECUTION-MODE-002")
        client = get_client(transport_clients, transport, compatibility_collector=compatibility_collector, req=req)
        begun = time.monotonic()
        sent = _send(client, "delayed-complete", {"returnImmediately": True})
        took = time.monotonic() - begun
        errors = _wrong_state(sent, transport, *IN_PROGRESS)
        if took > AT_ONCE_S_MAX:
            errors.append(f"the answer took {took:.1f} s, more than {AT_ONCE_S_MAX} s")
        while not errors and _wrong_state(client.get_task(id=sent.task_id), transport, TASK_STATE_COMPLETED):
            if time.monotonic() - begun > COMPLETED_S_MAX:
                errors.append(f"the task was not completed within {COMPLETED_S_MAX} s")
            time.sleep(POLL_S)
        assert_and_record(compatibility_collector, req, transport, errors)
