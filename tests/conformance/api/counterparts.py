"""Which name of streamskit stands for which of Kafka Streams: by its spelling, or as a person says in a TOML file."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import streamskit
from tests.conformance.api import names
from tests.conformance.api.names import NoSuchNameError, exists, find, home_of, snake_case, without_keyword

FOLDER = Path(__file__).parent
ONLY_HERE = "only_here"
AREAS = (
    "programs",
    "streams",
    "windows",
    "parts",
    "processors",
    "stores",
    "applications",
    "queries",
    "errors",
    "testing",
)
"""The files of the page's tables, in its order."""

AS_ITS_CLASS = "see the class"


class Entry(NamedTuple):
    """What a person says of a name: where it is here, in words where no name stands for it, or why it is absent."""

    here: tuple[str, ...] = ()
    words: str = ""
    absent: str = ""
    note: str = ""

    @classmethod
    def of(cls, said: Any) -> "Entry":
        """Return the entry for a value of a TOML file: a path, several of them, or a table of the four."""
        if not isinstance(said, dict):
            said = {"here": said}
        here = said.get("here", ())
        return cls(**{**said, "here": (here,) if isinstance(here, str) else tuple(here)})

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences."""
        return self.words, self.absent, self.note


class Row(NamedTuple):
    """A row of the page: a name of Kafka Streams, and what is here instead."""

    java: str
    is_class: bool
    is_deprecated: bool
    status: str
    entry: Entry


@dataclass(frozen=True)
class JavaClass:
    """A class as it was recorded; `name` is its path below `org.apache.kafka.streams`."""

    name: str
    kind: str
    methods: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    deprecated: bool = False
    deprecated_methods: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, facts: Mapping[str, Any]) -> "JavaClass":
        """Return the class that the listing has under a name."""
        fields: dict[str, Any] = {key: tuple(fact) if isinstance(fact, list) else fact for key, fact in facts.items()}
        return cls(name, **fields)

    @property
    def simple_name(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]

    @property
    def without_package(self) -> str:
        """Its name with that of the class around it, and without the package."""
        return ".".join(part for part in self.name.split(".") if part[0].isupper())


@dataclass(frozen=True)
class Area:
    """One table of the page: a title, an introduction, and for each of its classes what a person says of it."""

    title: str
    text: str
    classes: Mapping[str, Mapping[str, Any]]


def recorded() -> dict[str, Any]:
    """Return the recorded listing of Kafka Streams' API."""
    listing: dict[str, Any] = json.loads((FOLDER / "kafka_streams.json").read_text())
    return listing


def areas() -> list[Area]:
    """Return the areas as their files have them."""
    read = (tomllib.loads((FOLDER / f"{name}.toml").read_text()) for name in AREAS)
    return [Area(each.pop("title"), each.pop("text", ""), each) for each in read]


@dataclass
class Comparison:
    """The two APIs side by side.

    Args:
        classes: of Kafka Streams, as recorded.
        areas: what a person says of them.
        only_here: names of streamskit without a counterpart, each with the reason for it.
    """

    classes: Mapping[str, JavaClass]
    areas: list[Area]
    only_here: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of_the_files(cls) -> "Comparison":
        """Return the comparison that the files of this folder make."""
        classes = {name: JavaClass.of(name, facts) for name, facts in recorded()["classes"].items()}
        return cls(classes, areas(), tomllib.loads((FOLDER / f"{ONLY_HERE}.toml").read_text())["names"])

    def findings(self) -> list[str]:
        """Return what is wrong, a sentence each: what is missing, leads nowhere, or is not needed."""
        self.problems.clear()
        self.__dict__.pop("rows", None)
        told = Counter(name for area in self.areas for name in area.classes)
        self.problems += [f"{name} is in {count} files." for name, count in told.items() if count > 1]
        self.problems += [f"{name} is not in the listing." for name in told if name not in self.classes]
        self.problems += [
            f"{name} is in no area: add it to one of the TOML files." for name in self.classes if name not in told
        ]
        rows = [row for rows in self.rows.values() for row in rows]
        for row in rows:
            self._check_row(row)
        self._check_our_side()
        return self.problems

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        """The rows of each area, by its title."""
        return {
            area.title: [
                row for name, said in area.classes.items() if name in self.classes for row in self._of_class(name, said)
            ]
            for area in self.areas
        }

    def title(self, java: JavaClass) -> str:
        """Return what the page calls a class: with its package where another class has the same name."""
        twins = [each for each in self.classes.values() if each.without_package == java.without_package]
        return java.without_package if len(twins) == 1 else java.name

    # ---- Kafka Streams' side -----------------------------------------------------------------------------------------

    def _of_class(self, name: str, said: Mapping[str, Any]) -> Iterator[Row]:
        java, own = self.classes[name], {key: said[key] for key in Entry._fields if key in said}
        home, title = home_of(java.simple_name), self.title(java)
        entry = Entry.of(own)
        if not (entry.here or entry.words or entry.absent):
            if home is None:
                self.problems.append(
                    f"{name}: no public name of streamskit is called so; say where it is, or why it is absent."
                )
            entry = entry._replace(here=(home or java.simple_name,))
        elif home is not None and own.get("here") == home:
            self.problems.append(f"{name}: 'here' says what its name says; leave it out.")
        elif entry.absent and home is not None and not self._is_home_of_another(name, home):
            self.problems.append(f"{title}: it is not absent, {home} exists; take that out.")
        homes = [path for path in entry.here if exists(path) and isinstance(find(path), type)]
        is_same = any(path.rpartition(".")[2] == java.simple_name for path in homes)
        status = "absent" if entry.absent else "here" if is_same else "renamed"
        yield Row(title, True, java.deprecated, status, entry)
        if said.get("whole"):
            return
        rest = Entry.of(said["rest"]) if "rest" in said else Entry(absent=AS_ITS_CLASS) if entry.absent else None
        members = [*java.methods, *java.constants]
        for unknown in set(said) - set(members) - {*Entry._fields, "whole", "rest"}:
            self.problems.append(f"{name}: there is no method or constant '{unknown}'.")
        used_rest = False
        for member in members:
            row, by_rest = self._of_member(java, member, homes, said.get(member), rest)
            used_rest |= by_rest
            yield row
        if "rest" in said and not used_rest:
            self.problems.append(f"{name}: 'rest' is for members that nothing is said of, and there are none.")

    def _is_home_of_another(self, name: str, home: str) -> bool:
        """Return whether another class of the same simple name is the one that a public name stands for."""
        simple_name = self.classes[name].simple_name
        others = (other for area in self.areas for other, said in area.classes.items() if "absent" not in said)
        return (
            any(other != name and other.rpartition(".")[2] == simple_name for other in others)
            and home_of(simple_name) == home
        )

    def _of_member(
        self, java: JavaClass, member: str, homes: list[str], said: Any, rest: Entry | None
    ) -> tuple[Row, bool]:
        spelled = member if member in java.constants else snake_case(member)
        found = tuple(f"{home}.{spelled}" for home in homes if exists(f"{home}.{spelled}"))
        what, by_rest = f"{self.title(java)}{'.' if member in java.constants else '#'}{member}", False
        entry = Entry.of({} if said is None else said)
        if entry.here and entry.here == found[:1] and not entry.note:
            self.problems.append(f"{what}: 'here' says what its name says; leave it out.")
        if entry.absent and found:
            self.problems.append(f"{what}: it is not absent, {found[0]} exists; take that out.")
        if not (entry.here or entry.words or entry.absent):
            if found:
                entry = entry._replace(here=found[:1])
            elif rest is not None:
                entry, by_rest = rest._replace(note=entry.note or rest.note), True
            else:
                self.problems.append(
                    f"{what}: no {spelled} in {', '.join(homes) or 'streamskit'}; say where it is, or why not."
                )
        is_same = any(path in found for path in entry.here)
        status = "absent" if entry.absent else "here" if is_same else "renamed"
        return Row(what, False, member in java.deprecated_methods, status, entry), by_rest

    def _check_row(self, row: Row) -> None:
        for path in row.entry.here:
            self._check_path(path, row.java)
        for text in row.entry.texts:
            self._check_text(text, row.java)

    def _check_path(self, path: str, where: str) -> None:
        try:
            find(path)
        except NoSuchNameError as missing:
            self.problems.append(f"{where}: {missing}.")

    def _check_text(self, text: str, where: str) -> None:
        """Check that what stands in backticks exists: here, in Kafka Streams, or among the settings."""
        for span in re.findall(r"`([^`]+)`", text):
            if not (
                exists(span)
                or span in self._java_names
                or span in self._settings
                or re.fullmatch(r"\w+=|None|-?\d+", span)
            ):
                self.problems.append(f"{where}: `{span}` is a name of neither side.")

    @cached_property
    def _java_names(self) -> set[str]:
        found = {name for java in self.classes.values() for name in (java.simple_name, java.without_package, java.name)}
        return found | {
            f"{java.simple_name}#{each}" for java in self.classes.values() for each in (*java.methods, *java.constants)
        }

    @cached_property
    def _settings(self) -> set[str]:
        return {key.kafka_name for key in streamskit.StreamsConfig.settings()}

    # ---- streamskit's side -------------------------------------------------------------------------------------------

    def _check_our_side(self) -> None:
        for path, why in self.only_here.items():
            self._check_path(path, "only_here.toml")
            self._check_text(why, f"only_here.toml, {path}")
        told, told_classes = self._told()
        only, only_classes = self._defined(path for path in self.only_here if exists(path))
        self.problems += [
            f"only_here.toml: {path} has a counterpart in Kafka Streams, as another file says; take it out."
            for path in self.only_here
            if exists(path) and self._is_told_whole(path, told, told_classes)
        ]
        for path in self._public():
            if not (self._is_told(path, told, told_classes) or self._is_told(path, only, only_classes)):
                self.problems.append(f"{path} is missing: give it a row, or name it in only_here.toml with the reason.")

    def _public(self) -> Iterator[str]:
        """Yield what the page has to name: public names, and the members of those with a counterpart."""
        yield from (face.removeprefix("streamskit.") for face in streamskit.FACES if face not in names.LISTED)
        paths = [path for face in names.LISTED for path in names.public_names(face)]
        for path in paths:
            yield path
            if exists(path) and isinstance(cls := find(path), type) and path not in self.only_here:
                yield from (f"{path}.{member}" for member in names.members(cls))

    def _told(self) -> tuple[set[tuple[type, str]], set[int]]:
        """Return the members that rows name, and the classes and functions."""
        paths = [path for rows in self.rows.values() for row in rows for path in row.entry.here if exists(path)]
        return self._defined(without_keyword(path) for path in paths)

    @staticmethod
    def _defined(paths: Any) -> tuple[set[tuple[type, str]], set[int]]:
        members, others = set[tuple[type, str]](), set[int]()
        for path in paths:
            owner, _, name = path.rpartition(".")
            if owner and exists(owner) and isinstance(cls := find(owner), type):
                members |= names.definers(cls, name)
            else:
                others.add(id(find(path)))
        return members, others

    def _is_told_whole(self, path: str, members: set[tuple[type, str]], others: set[int]) -> bool:
        """Return whether rows name a path, and if it is a class all members of it."""
        of_class = names.members(cls) if isinstance(cls := find(path), type) else []
        return all(self._is_told(each, members, others) for each in (path, *(f"{path}.{name}" for name in of_class)))

    @staticmethod
    def _is_told(path: str, members: set[tuple[type, str]], others: set[int]) -> bool:
        owner, _, name = path.rpartition(".")
        if owner and exists(owner) and isinstance(cls := find(owner), type):
            return bool(names.definers(cls, name) & members)
        return id(find(path)) in others
