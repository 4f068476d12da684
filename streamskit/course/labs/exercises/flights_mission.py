"""The mission of lab 22: the feed of one airport is silent, and its windows have to close without it."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from streamskit.api.windows import TimeWindows
from streamskit.course.datasets.event_time import HOUR
from streamskit.course.datasets.flights import flights
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site
from streamskit.dsl.builder import StreamsBuilder
from streamskit.dsl.materialized import Suppressed
from streamskit.serdes import Serdes
from streamskit.topology import Topology

AIRPORTS = ("JFK", "EWR", "LGA")
"""The airports, each in the partition of its number."""
SILENT = "EWR"
GRACE = 4 * HOUR
OPENS = 1_369_386_000_000
"""2013-05-24 05:00 in New York, in milliseconds: no flight leaves before that."""
NOON = OPENS + 7 * HOUR

FlightRecord = dict[str, Any]
Counts = dict[tuple[str, int], int]


@cache
def day(date: str) -> tuple[FlightRecord, ...]:
    """Return the flights of a day in the order in which they came in, each for its airport's partition."""
    return tuple(
        {"key": r["key"], "value": r["value"], "timestamp": r["timestamp"], "partition": AIRPORTS.index(r["key"])}
        for r in flights(date, date)
    )


def come_in() -> list[FlightRecord]:
    """Return a day of all airports, and the next morning of those whose feed is not silent."""
    morning = (r for r in day("2013-05-24") if r["key"] != SILENT and r["value"]["came_in"] <= NOON)
    return [*day("2013-05-23"), *morning]


def comes_later() -> list[FlightRecord]:
    """Return the next day of the airport that was silent."""
    return [record for record in day("2013-05-24") if record["key"] == SILENT]


def hours_of_airports(site: Site) -> Topology:
    """Count the flights of each airport and hour, and send each count once, when its window has closed."""
    builder = StreamsBuilder()
    counted = (
        builder.stream(site.topic("flights"))
        .group_by_key()
        .windowed_by(TimeWindows.of_size_and_grace("1 hour", "4 hours"))
        .count()
    )
    counted.suppress(Suppressed.until_window_closes()).to_stream().to(site.topic("finals"))
    return builder.build()


def a_silent_feed(site: Site) -> None:
    """Let the counts run, on a topic in which one airport stopped at midnight."""
    site.create_topics(flights=3, finals=1)
    site.broker.produce(site.topic("flights"), come_in())
    streams = site.application(hours_of_airports(site))
    site.props |= {"streams": streams, "opens": OPENS, "known": len(come_in())}
    streams.start()
    streams.await_processed("60 seconds")


def judge_silent_airport(site: Site, returned: Any) -> Verdict:
    """Judge by what was sent, by the resulting counts, and by the counts after the feed is back."""
    sent = _sent(site)
    if returned != SILENT:
        return mistaken("another airport", named=returned)
    if sent.empty:
        return mistaken("still silent")
    if not (sent["partition"] == AIRPORTS.index(SILENT)).any():
        return mistaken("another partition")
    if sent["key"].isin(AIRPORTS).any():
        return mistaken("counted as a flight")
    site.streams.await_processed("60 seconds")
    evening = {each for each in closed([*come_in(), heartbeat(OPENS)]) if each[0] == SILENT}
    if missing := evening - finals(site).keys():
        return mistaken("not far enough", missing=len(missing), windows=len(evening))
    site.broker.produce(site.topic("flights"), comes_later())
    site.streams.await_processed("60 seconds")
    return _by_counts(finals(site), int(sent["timestamp"].max()))


def _sent(site: Site) -> Any:
    records = site.broker.consume(site.topic("flights"))
    known = {number: sum(r["partition"] == number for r in come_in()) for number in range(len(AIRPORTS))}
    return records[records["offset"] >= records["partition"].map(known)]


def _by_counts(found: Counts, time: int) -> Verdict:
    due = closed([*come_in(), heartbeat(OPENS), *comes_later()])
    if found == due:
        return right(
            f"The windows of {SILENT} closed without its feed, which came back later with {len(comes_later())} "
            f"flights: all {len(due)} counts are right."
        )
    if found == closed([*come_in(), heartbeat(time), *comes_later()]):
        lost = sum(due.values()) - sum(found.values())
        return mistaken("too far ahead", lost=lost)
    return wrong("The counts are not those of the flights that arrived in time.")


def finals(site: Site) -> Counts:
    """Return the counts that were sent, by airport and start of the window."""
    window = Serdes.time_windowed(Serdes.string(), HOUR)
    sent = site.broker.consume(site.topic("finals"), key=window, value=Serdes.long())
    rows = zip(sent["key"], sent["value"], strict=True)
    return {(window.key, window.start): count for window, count in rows if window.key in AIRPORTS}


def heartbeat(time: int) -> FlightRecord:
    """Return a record that says only how late it is at the silent airport."""
    return {"key": "heartbeat", "value": "", "timestamp": time, "partition": AIRPORTS.index(SILENT)}


def closed(some: Iterable[FlightRecord]) -> Counts:
    """Return the counts of the airports' windows that close, each by the stream time of its partition."""
    times: dict[int, int] = {}
    counts: dict[int, Counts] = {}
    for record in some:
        partition, time = record["partition"], record["timestamp"]
        times[partition] = max(times.get(partition, 0), time)
        start = time // HOUR * HOUR
        if start + HOUR + GRACE > times[partition]:
            window = (record["key"], start)
            of_partition = counts.setdefault(partition, {})
            of_partition[window] = of_partition.get(window, 0) + 1
    return {
        (key, start): count
        for partition, each in counts.items()
        for (key, start), count in each.items()
        if start + HOUR + GRACE <= times[partition] and key in AIRPORTS
    }


# ---- wrong answers ---------------------------------------------------------------------------------------------------
