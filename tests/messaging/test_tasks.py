"""Tasks end, also those that swallow a cancellation."""

import asyncio

import pytest

from ascar.messaging import end_tasks


def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same():
    swallowed = []

    async def stubborn():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            swallowed.append(True)
        await asyncio.sleep(60)

    async def failing():
        await asyncio.sleep(0)
        raise ValueError("its own")

    async def work():
        tasks = [asyncio.create_task(one()) for one in (stubborn, failing)]
        await asyncio.sleep(0.01)
        await end_tasks(tasks)
        return tasks

    stubborn_task, failed = asyncio.run(work())
    assert swallowed and stubborn_task.cancelled()
    with pytest.raises(ValueError, match="its own"):
        failed.result()
