"""Makes up programs, as data that `random_programs` builds, and records for them."""

import random

from tests.conformance.random_programs import KEPT_BY, Program, Step, topics_read


class Inventor:
    """Makes up programs, each with records for it.

    Args:
        seed: a number that always gives the same programs.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._steps: list[Step] = []
        self._kinds: list[str] = []
        self._windows: dict[int, Step] = {}
        self._unit = 1

    def programs(self, count: int) -> list[Program]:
        """Return the next programs."""
        return [self.program() for _ in range(count)]

    def program(self) -> Program:
        """Return the next program."""
        self._steps, self._kinds, self._windows = [], [], {}
        self._unit = self._random.choice([1, 1, 1, 1000])
        self._continues = self._random.random() < 0.2
        for number, op in enumerate(self._sources()):
            kept = getattr(self, f"_{op}")()
            self._add(op, {"op": op, "topic": f"t{number}"} | kept)
        for _ in range(self._random.randint(1, 8)):
            self._step()
        self._write()
        records, is_cached = self._records(), self._random.random() < 0.25
        # A cache still shows windows that its store has given up.
        queries = [] if is_cached else self._queries(max(each.get("timestamp", 0) for each in records))
        made = {"steps": self._steps, "records": records, "queries": queries, "cache": is_cached}
        return made | ({"continue": True} if self._continues else {})

    def _sources(self) -> list[str]:
        kinds = ["stream", "table", "global", "global_store"]
        others = self._random.choices(kinds, [6, 6, 2, 1], k=self._random.randint(0, 2))
        return [self._random.choice(["stream", "stream", "table"]), *others]

    def _stream(self) -> Step:
        more = {"topics": [f"more-{len(self._steps)}"]} if self._random.random() < 0.1 else {}
        return more | self._timestamps()

    def _table(self) -> Step:
        if self._random.random() < 0.2:
            return {"store": self._store(), "history": self._random.choice([30, 1000]) * self._unit}
        return self._kept() | self._timestamps()

    def _global(self) -> Step:
        return self._kept()

    def _global_store(self) -> Step:
        return {"store": self._store()}

    def _timestamps(self) -> Step:
        """Say where a source's times come from: mostly from the records, else from their values."""
        extractor = self._random.choice(["skip", "partition time"] + [None] * 14)
        return {} if extractor is None else {"extractor": extractor, "unit": self._unit}

    def _kept(self) -> Step:
        return {"store": self._store() if self._random.random() < 0.5 else None}

    def _kept_as(self, step: Step, made: str) -> Step:
        """Say how the table that a step makes is kept."""
        kept = self._kept()
        if kept["store"] is None:
            return kept
        draw = self._random.random()
        if draw < 0.15:
            return kept | {"caching": False}
        return kept | (
            {"history": self._random.choice([30, 1000]) * self._unit} if draw < 0.3 and made == "table" else {}
        )

    def _store(self) -> str:
        return f"s-{len(self._steps)}"

    def _add(self, kind: str, step: Step) -> None:
        self._steps.append(step)
        self._kinds.append(kind)

    def _of(self, *kinds: str) -> list[int]:
        return [index for index, kind in enumerate(self._kinds) if kind in kinds]

    def _one(self, *kinds: str) -> int | None:
        """Return a node of some kind; rather one of the last."""
        found = self._of(*kinds)
        return self._random.choice(found[-3:]) if found else None

    def _number(self) -> int:
        return self._random.randint(0, 3)

    def _window(self, *kinds: str) -> Step:
        kind = self._random.choice(kinds)
        if kind == "unlimited":
            return {"kind": kind, "start": self._random.choice([0, 0, 1, 10, 40]) * self._unit}
        least = 3 if kind == "time" else 0  # which only windows of other kinds may have
        size = self._random.choice([1, least, 5, 7, 10, 20, 50]) * self._unit
        grace = self._random.choice([0, 0, 1, 5, 20, 100]) * self._unit
        advance = self._random.choice([size, size, max(1, size // 2), max(1, size // 5), max(1, size - self._unit)])
        return {"kind": kind, "size": size, "grace": grace} | ({"advance": advance} if kind == "time" else {})

    def _step(self) -> None:
        kind = self._random.choice([kind for kind in self._kinds if kind in STEPS_OF])
        op = self._random.choice(STEPS_OF[kind])
        step: Step = {"op": op, "of": self._one(kind), "n": self._number()}
        if op == "look_up":
            step["reads"] = self._readable()
            if step["reads"] is None:
                return
        if op == "split":
            self._add("stream", step | {"name": f"b{len(self._steps)}-"})
            self._add("stream", {"op": "skip"})
            return
        if op in WITH:
            step["with"] = self._other(op, step)
            if step["with"] is None:
                return
        getattr(self, f"_fill_{op}", lambda step: None)(step)
        has_windows = op in ("aggregate", "cogroup") and step.get("windows")
        made = "windowed" if has_windows else MAKES.get(op, kind)
        if op in MAY_BE_KEPT:
            step |= self._kept_as(step, made)
        if op in PROCESSORS:
            step["store"] = self._store()
        if made == "windowed":
            self._windows[len(self._steps)] = step.get("windows") or self._windows[step["of"]]
        self._add(made, step)

    def _other(self, op: str, step: Step) -> int | None:
        """Return the second node of a step that has two; None if there is none yet."""
        if op != "windowed_join":
            return self._one(WITH[op])
        alike = [each for each, windows in self._windows.items() if windows == self._windows[step["of"]]]
        return self._random.choice(alike)

    def _readable(self) -> str | None:
        """Return the store of a table that has one with a name and without versions."""
        made = [self._steps[index] for index in self._of("table")]
        names = [step["store"] for step in made if step.get("store") and "history" not in step]
        return self._random.choice(names) if names else None

    def _fill_aggregate(self, step: Step) -> None:
        step["group"] = self._random.choice([None, None, 0, 2])
        step["windows"] = self._window(*WINDOWS) if self._random.random() < 0.5 else None
        kind = (step["windows"] or {"kind": "none"})["kind"]
        only = {"session": [], "sliding": ["none"], "unlimited": ["none"]}.get(kind, ["none", "column sum"])
        step["fold"] = self._random.choice(["count", "reduce", "sum", *only, *["failing"] * 3 * self._continues])
        is_python = step["fold"] != "column sum"
        step["emit"] = is_python and kind not in ("none", "unlimited") and self._random.random() < 0.25
        if kind not in ("none", "unlimited") and self._random.random() < 0.2:
            windows = step["windows"]
            least = windows["size"] * (2 if windows["kind"] == "sliding" else 1) + windows["grace"]
            step["retention"] = least + self._random.choice([0, 10, 100]) * self._unit

    def _fill_cogroup(self, step: Step) -> None:
        step["windows"] = self._window(*WINDOWS) if self._random.random() < 0.4 else None

    def _fill_stream_stream(self, step: Step) -> None:
        step["kind"] = self._random.choice(["inner", "left", "outer"])
        step["windows"] = self._window("join")
        if self._random.random() < 0.3:
            least = -min(5 * self._unit, step["windows"]["size"])
            step["windows"][self._random.choice(["before", "after"])] = self._random.choice([0, 5 * self._unit, least])
        self._fill_joiner(step)

    def _fill_joiner(self, step: Step) -> None:
        if self._random.random() < 0.3:
            step["keyed"] = True

    def _fill_stream_table(self, step: Step) -> None:
        step["kind"] = self._random.choice(["inner", "left"])
        if self._steps[step["with"]].get("history") and self._random.random() < 0.6:
            step["grace"] = self._random.choice([0, 10, 30]) * self._unit
        self._fill_joiner(step)

    def _fill_stream_global(self, step: Step) -> None:
        step["kind"] = self._random.choice(["inner", "left"])
        self._fill_joiner(step)

    def _fill_table_table(self, step: Step) -> None:
        step["kind"] = self._random.choice(["inner", "left", "outer"])

    _fill_windowed_join = _fill_table_table

    _fill_foreign_key = _fill_stream_global

    def _fill_table_aggregate(self, step: Step) -> None:
        step["fold"] = self._random.choice(["count", "reduce", "aggregate"])

    def _fill_process(self, step: Step) -> None:
        step["kind"] = self._random.choice(
            ["each", "each", "stream time", "wall clock", *["failing"] * 3 * self._continues]
        )

    def _fill_process_windows(self, step: Step) -> None:
        step["kind"] = self._random.choice(["fetch", "backward", "range", "all", "everything"])
        step["size"] = self._random.choice([5, 10, 30]) * self._unit
        self._keep_for_a_while(step, step["size"])

    def _fill_process_sessions(self, step: Step) -> None:
        step["kind"] = self._random.choice(["each", "all", "range"])
        step["gap"] = self._random.choice([1, 5, 20]) * self._unit
        self._keep_for_a_while(step, step["gap"])

    def _keep_for_a_while(self, step: Step, least: int) -> None:
        step["memory"] = self._random.random() < 0.3
        step["retention"] = least * self._random.choice([1, 2, 5, 1000])

    def _fill_process_versions(self, step: Step) -> None:
        step["history"] = self._random.choice([10, 50, 1000]) * self._unit

    def _fill_transform_values(self, step: Step) -> None:
        step["kept"] = f"{self._store()}-kept" if self._random.random() < 0.5 else None

    def _fill_suppress(self, step: Step) -> None:
        step["limit"] = self._random.choice([0, 10, 40]) * self._unit
        step["records"] = self._random.choice([None, 1, 2])

    _fill_windowed_limit = _fill_suppress

    def _write(self) -> None:
        """Write what nothing reads, and some of the rest, to topics."""
        read = {step[name] for step in self._steps for name in ("of", "with") if step.get(name) is not None}
        for index, kind in enumerate(list(self._kinds)):
            if kind in ("stream", "table", "windowed") and (index not in read or self._random.random() < 0.3):
                sink: Step = {"op": "to", "of": index, "topic": f"out-{index}"}
                if kind != "windowed" and self._random.random() < 0.1:
                    sink["topics"] = [f"out-{index}-odd", f"out-{index}-even"]
                self._add("sink", sink)

    def _records(self) -> list[Step]:
        read = [step for step in self._steps if step["op"] in ("stream", "table", "global", "global_store")]
        topics = [topic for step in read for topic in topics_read(step)]
        with_headers = self._random.choice([0, 0.7])
        records, time = list[Step](), 0
        for _ in range(self._random.randint(6, 16)):
            if self._random.random() < 0.05:
                records.append({"advance": self._random.choice([5, 25, 100])})
                continue
            time += self._random.choice([0, 1, 1, 5, 10, 20, 60]) * self._unit
            late = self._random.choice([0, 0, 0, 1, 10, 25, 80]) * self._unit
            records.append(
                {
                    "topic": self._random.choice(topics),
                    "key": self._random.choice(["a", "a", "b", "c", None]),
                    "value": self._random.choice([None, *range(10), *range(10)]),
                    "timestamp": max(0, time - late),
                }
                | ({"headers": {"h": str(len(records))}} if self._random.random() < with_headers else {})
                | ({"bad": True} if self._continues and self._random.random() < 0.1 else {})
            )
        return records

    def _queries(self, latest: int) -> list[Step]:
        """Return what the stores are asked at the end; `latest` is the latest time of a record."""
        asked = list[Step]()
        for step in self._steps:
            kind = _store_kind(step)
            if step.get("store") is None or kind is None:
                continue
            for op in self._random.sample(sorted(QUERIES[kind]), 3):
                asked.append(
                    {"store": step["store"], "kind": kind, "op": op}
                    | {"args": [self._argument(kind, latest) for kind in QUERIES[kind][op]]}
                )
        return asked

    def _argument(self, kind: str, latest: int) -> str | int | None:
        match kind:
            case "key":
                return self._random.choice(["a", "a", "b", "c", "g0", "g1", "t0"])
            case "bound":
                return self._random.choice([None, "a", "b", "c", "g", "t1"])
            case "prefix":
                return self._random.choice(["a", "g", "t", "w1"])
        return self._random.choice([0, latest // 3, latest // 2, latest, latest + 50 * self._unit])


def _store_kind(step: Step) -> str | None:
    """Return what kind of store a step's is; None if its keys have windows and its rows have no times."""
    match step["op"]:
        case "process_versions":
            return "versioned"
        case "windowed_filter" | "windowed_map_values" | "windowed_join":
            return None
    if step.get("history"):
        return "versioned"
    if step["op"] in ("aggregate", "cogroup") and step.get("windows"):
        return "session" if step["windows"]["kind"] == "session" else "window"
    return KEPT_BY.get(step["op"], "key-value")


QUERIES = {
    "key-value": {
        "get": ["key"],
        "range": ["bound", "bound"],
        "reverse_range": ["bound", "bound"],
        "prefix_scan": ["prefix"],
        "all": [],
        "reverse_all": [],
    },
    "window": {
        "fetch": ["key", "time", "time"],
        "backward_fetch": ["key", "time", "time"],
        "backward_all": [],
        "fetch_range": ["bound", "bound", "time", "time"],
        "fetch_all": ["time", "time"],
        "all": [],
        "backward_fetch_range": ["bound", "bound", "time", "time"],
        "backward_fetch_all": ["time", "time"],
    },
    "session": {
        "fetch": ["key"],
        "backward_fetch": ["key"],
        "fetch_session": ["key", "time", "time"],
        "fetch_range": ["bound", "bound"],
        "backward_fetch_range": ["bound", "bound"],
        "find_sessions": ["key", "time", "time"],
        "backward_find_sessions": ["key", "time", "time"],
        "find_sessions_range": ["bound", "bound", "time", "time"],
        "backward_find_sessions_range": ["bound", "bound", "time", "time"],
    },
    "versioned": {"get": ["key"], "get at": ["key", "time"], "get again": ["key", "time"]},
}
"""What stores can be asked, by their kind, and the arguments of each question."""


WINDOWS = ("time", "time", "sliding", "sliding", "session", "session", "unlimited")
"""The kinds of windows that an aggregation may have; what is named twice comes twice as often."""

STEPS_OF = {
    "stream": [
        *("filter", "filter_not", "map_values", "nullify", "with_key", "select_key", "map", "flat_map_values"),
        *("flat_map", "merge", "repartition", "split", "process", "to_table", "to_table", "stream_stream"),
        *("aggregate", "aggregate", "aggregate", "cogroup", "stream_stream", "stream_table", "stream_table"),
        *("stream_global", "stream_global", "process_windows", "process_sessions", "process_versions"),
        *("process_values", "look_up", "look_up", "ask", "ask"),
    ],
    "table": [
        *("table_filter", "table_filter_not", "table_map_values", "table_nullify", "to_stream", "to_stream_keyed"),
        *("table_aggregate", "table_aggregate", "table_table", "table_table", "foreign_key", "foreign_key", "suppress"),
        "transform_values",
    ],
    "windowed": [
        *("windowed_filter", "windowed_map_values", "windowed_suppress", "windowed_join", "windowed_to_stream"),
        *("windowed_group", "windowed_limit"),
    ],
}
"""What can be done with a node of each kind; what is named twice comes twice as often."""

WITH = {
    **dict.fromkeys(("merge", "cogroup", "stream_stream"), "stream"),
    **dict.fromkeys(("table_table", "foreign_key", "stream_table"), "table"),
    "stream_global": "global",
    "ask": "global_store",
    "windowed_join": "windowed",
}
"""The kind of the second node of the steps that have two."""

PROCESSORS = {
    *("process", "process_windows", "process_sessions", "process_versions", "process_values", "transform_values")
}
"""The steps with a store of their own."""

MAKES = {
    **dict.fromkeys(("to_table", "aggregate", "cogroup", "windowed_group"), "table"),
    **dict.fromkeys(("to_stream", "to_stream_keyed", "windowed_to_stream"), "stream"),
}
"""The kind of node that a step makes, if it is not that of the node before."""

MAY_BE_KEPT = {
    *("to_table", "aggregate", "cogroup", "table_filter", "table_filter_not", "table_map_values", "table_nullify"),
    *("table_aggregate", "table_table", "foreign_key", "windowed_group"),
    *("windowed_filter", "windowed_map_values", "windowed_join"),
}
