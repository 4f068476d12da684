"""Whether a setting has changed, and not the program: the same steps may keep their state in another way then.

Spark's own operators and Python each keep what only they can read. Which of them runs a step follows from the record
cache and from the mode. So the program is planned once more as with other settings: if that fits what was kept, these
are the settings that it had.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from streamskit.common.errors import StreamsError, TopologyError
from streamskit.planning.plan import Plan
from streamskit.planning.planner import plan
from streamskit.runtime.recovery.checkpoint import Checkpoint
from streamskit.runtime.recovery.evolution import changes
from streamskit.runtime.recovery.fingerprint import QueryPrint


def other_settings(
    plans: Sequence[Plan], folder: Path, before: Mapping[str, QueryPrint], mode: str
) -> StreamsError | None:
    """Return the refusal to go on with other settings, if the program fits what was kept with those that it had.

    Args:
        plans: the queries of this start.
        folder: the application's folder.
        before: the queries as they were noted at the last start.
        mode: the mode that was chosen for this start, and why, in words; "" if it was configured.

    Raises:
        StreamsError: a checkpoint cannot be read.
    """
    begun = [name for name in before if Checkpoint(folder / name).has_begun]
    if not plans or not begun or fits(plans, before, begun):
        return None
    options, application_id = plans[0].options, plans[0].application_id
    cache, real_time = options.cache_bytes > 0, options.real_time
    of_real_time = any(Checkpoint(folder / name).has_state_ids for name in begun)
    had = [(not cache, real_time), (cache, not real_time), (not cache, not real_time)]
    # State of real-time mode was kept in that mode most likely, and other state certainly was not.
    for had_cache, in_real_time in sorted(had, key=lambda each: each[1] != of_real_time):
        if in_real_time and not of_real_time:
            continue
        options = replace(options, cache=had_cache, real_time=in_real_time)
        try:
            planned = plan(plans[0].topology, application_id, options)
        except TopologyError:
            continue
        if fits(planned, before, begun):
            told = [_of_cache(cache)] if had_cache != cache else []
            told += [_of_mode(real_time, mode)] if in_real_time != real_time else []
            return StreamsError(
                f"A setting of '{application_id}' has changed, and what is kept in {folder} fits its program only with "
                f"the one that it had: {'; and '.join(told)}. Or begin anew as it is now: clean_up() forgets what was "
                "kept, and the next start reads the topics from their first records; another application_id leaves "
                "the old one as it is."
            )
    return None


def fits(plans: Sequence[Plan], before: Mapping[str, QueryPrint], begun: Collection[str]) -> bool:
    """Return whether queries can go on with what others have kept, whatever the partitions of their topics.

    Args:
        plans: the queries.
        before: those that ran, by name.
        begun: which of them have kept something.
    """
    numbers = {name.partition(".")[0] for name in begun}
    now = {each.name: each for each in plans if str(each.number) in numbers}
    known = {str(each.number) for each in plans}
    if any(name not in now for name in begun if name.partition(".")[0] in known) or not now.keys() <= before.keys():
        return False
    prints = {name: QueryPrint.of(each, before[name].tasks) for name, each in now.items()}
    read = {topic for each in prints.values() for topic in each.reads}
    return not any(any(changes(before[name], print_, read)) for name, print_ in prints.items() if name in begun)


def _of_cache(has_cache: bool) -> str:
    if has_cache:
        return (
            "it had no record cache, and has one now. Set statestore_cache_max_bytes=0 again, as it was when the "
            "application began"
        )
    return (
        "it had a record cache, and has none now. Leave statestore_cache_max_bytes=0 out, or give it more than 0 bytes"
    )


def _of_mode(in_real_time: bool, mode: str) -> str:
    if in_real_time:
        return "it ran in micro-batches, and would run in real-time mode now. Choose real_time='off'"
    why = mode or "in micro-batches, as real_time='off' says"
    return f"it ran in real-time mode, and would run {why}. Start it with the settings that it had"
