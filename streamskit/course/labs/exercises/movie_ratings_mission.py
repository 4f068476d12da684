"""The mission of lab 20: a wrong average is recomputed from the first rating, while a page keeps showing it."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import functions as F

from streamskit.common.errors import StreamsError
from streamskit.course.datasets.movies import RATING_SCHEMA, ratings
from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.missions import Site, is_up
from streamskit.dsl.builder import StreamsBuilder
from streamskit.environment.processes import wait_until
from streamskit.queries.client.query_client import QueryClient
from streamskit.runtime.states import State
from streamskit.runtime.streams import KafkaStreams
from streamskit.serdes import Serdes
from streamskit.topology import Topology

RATING = Serdes.json(RATING_SCHEMA)
TOTALS = "ratings-by-movie"
SHOWN = "movie-01"
"""The movie whose ratings the page shows."""
SECONDS_BETWEEN_LOOKS = 0.1
ANY_PORT = "127.0.0.1:0"
"""Where the applications answer."""

Totals = dict[str, dict[str, int]]


def _of_televisions(movie: str) -> list[dict[str, Any]]:
    """Return ratings that nobody gave: some televisions send 0 where a viewer only looks, and 99 for a broken key."""
    values = [{"viewer": f"tv-{n}", "movie_id": movie, "rating": 0 if n % 3 else 99} for n in range(40)]
    return [{"key": value["viewer"], "value": value} for value in values]


PAST = [*ratings(600), *_of_televisions(SHOWN), *_of_televisions("movie-09")]
TODAY = [*ratings(120, seed=8), *_of_televisions(SHOWN)]


class Page:
    """A page that looks up a movie's ratings again and again, at the address in `url`.

    Args:
        url: the address to query; it may be changed while the page runs.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.shown: list[int] = []
        self.dark = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_again_and_again, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<Page that asks {self.url}: shown {len(self.shown)} times, dark {self.dark} times>"

    @property
    def url(self) -> str:
        """The address that is queried."""
        return self._url

    @url.setter
    def url(self, url: str) -> None:
        QueryClient(url).close()  # refuses what is no address: the page goes on with the one that it has
        self._url = url
        self._look()  # at once, so that a switch that is a moment too early is always seen

    @property
    def is_open(self) -> bool:
        """Whether it still looks."""
        return not self._over.is_set()

    def close(self) -> None:
        """Stop looking."""
        self._over.set()
        self._thread.join(10)

    def _look_again_and_again(self) -> None:
        while not self._over.wait(SECONDS_BETWEEN_LOOKS):
            self._look()

    def _look(self) -> None:
        url = self.url
        try:
            with QueryClient(url, retry=0) as client:
                row = client.store(TOTALS).get(SHOWN)
        except StreamsError:
            self.dark += url == self.url  # unless somebody has switched it meanwhile
        else:
            self.shown.append(row["count"] if row else 0)


def averages(site: Site, corrected: bool = False) -> Topology:
    """Keep count and sum of each movie's ratings: of all that come, or only of those that viewers give."""
    builder = StreamsBuilder()
    given = builder.stream(site.topic("ratings"), value=RATING)
    given = given.filter(lambda v: v.rating.between(1, 10)) if corrected else given
    by_movie = given.group_by(lambda v: v.movie_id, name="movies")
    by_movie.aggregate(lambda v: F.struct(F.count("*").alias("count"), F.sum(v.rating).alias("sum")), TOTALS)
    return builder.build()


def a_page_that_is_wrong(site: Site) -> None:
    """Start the application with the mistake, and a page that queries it."""
    site.create_topics(ratings=2)
    site.broker.produce(site.topic("ratings"), PAST)
    old = site.application(averages(site), application_server=ANY_PORT)
    old.start()
    old.await_processed("60 seconds")
    page = Page(f"http://{old.application_server}")
    site.on_close(page.close)
    site.props |= {"old": old, "page": page}
    wait_until(lambda: len(page.shown) > 0, "the first look of the page")


def judge_rated_anew(site: Site, returned: KafkaStreams) -> Verdict:
    """Judge by what the page has shown throughout, and by the totals that it can query now."""
    if returned is site.old:
        return mistaken("nothing was corrected")
    if not is_up(returned):
        return wrong(f"The application that you returned does not run: it is {returned.state.name}.")
    if not returned.application_server:
        return wrong("Nobody can query your application: give it an application_server, and the page its address.")
    if not site.page.is_open:
        return wrong("You closed the page. Somebody looks at it all the time: let it run, and set site.page.url.")
    if _server(site.page.url) != _server(f"http://{returned.application_server}"):
        return mistaken("the page asks the old one")
    if site.old.state is not State.NOT_RUNNING:
        return mistaken("the old one goes on")
    site.page.close()
    site.broker.produce(site.topic("ratings"), TODAY)
    returned.await_processed("60 seconds")
    with QueryClient(site.page.url) as client:
        found = {movie: dict(total) for movie, total in client.store(TOTALS).all()}
    for mistake, made in OTHER_TOTALS.items():
        if found == made():
            return mistaken(mistake)
    if found != totals([*PAST, *TODAY]):
        return wrong("The totals are not those of all ratings from 1 to 10.")
    return _by_page(site.page, len(found))


def _server(url: str) -> str:
    """Return an address in one of the ways to write it."""
    address = url.rstrip("/").removeprefix("http://")
    return address.replace("localhost:", "127.0.0.1:")


def _by_page(page: Page, movies: int) -> Verdict:
    if page.dark:
        return mistaken("the page went dark", dark=page.dark)
    whole = totals(PAST)[SHOWN]["count"]
    if min(page.shown) < whole:
        return mistaken("half a page", least=min(page.shown), whole=whole)
    return right(
        f"The page was read {len(page.shown)} times, and was never dark or incomplete; now it shows "
        f"{movies} movies with {len(PAST) + len(TODAY)} ratings, without those that no viewer gave."
    )


def totals(some: Iterable[dict[str, Any]], least: int = 1, most: int = 10) -> Totals:
    """Return count and sum of each movie's ratings that are in a range."""
    found: Totals = {}
    for record in some:
        movie, rating = record["value"]["movie_id"], record["value"]["rating"]
        if least <= rating <= most:
            before = found.get(movie, {"count": 0, "sum": 0})
            found[movie] = {"count": before["count"] + 1, "sum": before["sum"] + rating}
    return found


def _together(one: Totals, other: Totals) -> Totals:
    both = {movie: [each[movie] for each in (one, other) if movie in each] for movie in one.keys() | other.keys()}
    return {
        movie: {"count": sum(each["count"] for each in some), "sum": sum(each["sum"] for each in some)}
        for movie, some in both.items()
    }


OTHER_TOTALS: dict[str, Callable[[], Totals]] = {
    "nothing was corrected": lambda: totals([*PAST, *TODAY], 0, 99),
    "the old totals stayed": lambda: _together(totals(PAST, 0, 99), totals(TODAY)),
    "the past is lost": lambda: totals(TODAY),
}
"""Totals that result from a mistake."""


# ---- wrong answers ---------------------------------------------------------------------------------------------------
