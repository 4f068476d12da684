"""`ViewsPage`: live views as a page outside of the notebook shows them."""

from collections.abc import Callable, Iterable, Sequence

from streamskit.common.errors import StreamsError
from streamskit.queries.client import QueryClient
from streamskit.queries.instances import task_states
from streamskit.queries.metadata import InstanceState
from streamskit.views.cluster_view import ClusterView
from streamskit.views.html import STYLE
from streamskit.views.live_view import LiveView
from streamskit.views.store_view import StoreView

ROWS, PACE = 10, "1 second"
"""How many rows a page of all stores shows of each, and how often it looks."""


class ViewsPage:
    """Views as a page outside of the notebook shows them, without their controls.

    Args:
        title: what stands over them.
        views: the views.
    """

    style = STYLE.removeprefix("<style>").removesuffix("</style>")

    def __init__(self, title: str, views: Iterable[LiveView]) -> None:
        self.title, self._views = title, tuple(views)

    def follow(self) -> Callable[[], None]:
        """Keep the views up to date until the returned function is called."""
        followed = [view.follow() for view in self._views]

        def leave() -> None:
            for each in followed:
                each()

        return leave

    def seen(self) -> list[dict[str, str]]:
        """Return what each view shows now, part by part."""
        return [view.seen() for view in self._views]


def page_of_stores(application_id: str, client: QueryClient) -> ViewsPage:
    """Return a page of all stores of an application, read from all of its instances, and of the instances themselves.

    Args:
        application_id: the application.
        client: queries the application.

    Raises:
        StreamsError: no instance answers.
    """
    stores = [StoreView(client.store(name), PACE, ROWS) for name in client.stores()]
    return ViewsPage(application_id, [*stores, ClusterView(ToldInstances(client), application_id, PACE)])


class ToldInstances:
    """The instances of an application as one of them reports them; they are started and killed elsewhere.

    Args:
        client: queries that instance.
    """

    def __init__(self, client: QueryClient) -> None:
        self._client = client

    def instances(self) -> Sequence[InstanceState]:
        """Return the instances as they are now."""
        found = self._client.instances()
        return [InstanceState(each["server"], each["reachable"], task_states(each["stores"])) for each in found]

    def start(self) -> object:
        """Start none.

        Raises:
            StreamsError: always.
        """
        raise StreamsError("A page only looks: start another instance with python -m streamskit serve.")

    def kill(self, server: str) -> object:
        """Kill none.

        Raises:
            StreamsError: always.
        """
        raise StreamsError(f"A page only looks: end the process of {server} where it runs.")
