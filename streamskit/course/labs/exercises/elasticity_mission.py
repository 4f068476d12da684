"""The mission of lab 14: an instance is relieved by a new one, while everybody goes on asking."""

from typing import Any

from streamskit.course.labs.exercise import Verdict, mistaken, right, wrong
from streamskit.course.labs.exercises.elasticity_application import COUNTS, PARTITIONS, count_trades
from streamskit.course.labs.missions import Site
from streamskit.environment.processes import wait_until
from streamskit.queries.client.query_client import QueryClient
from streamskit.queries.instances import Instances
from streamskit.queries.metadata import HostInfo


class Watched(Instances):
    """Instances that note who could have answered at the moment when one of them was stopped."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.covered: dict[HostInfo, bool] = {}

    def stop(self, server: HostInfo | None = None) -> None:
        """Stop one instance, or all."""
        if server is not None:
            self.note(HostInfo.of(str(server)))
        super().stop(server)

    def kill(self, server: HostInfo | str) -> None:
        """Kill an instance."""
        self.note(HostInfo.of(str(server)))
        super().kill(server)

    def note(self, server: HostInfo) -> None:
        """Note whether every partition is whole at another instance than this one."""
        self.covered[server] = whole(self, without=server) == set(range(PARTITIONS))


def whole(instances: Instances, without: HostInfo | None = None) -> set[int]:
    """Return the partitions of which an instance that runs has all rows, as the owner's or as a standby's copy."""
    return {
        task.partition
        for each in instances.instances()
        if each.alive and str(each.server) != str(without)
        for task in each.tasks
        if not task.is_restoring
    }


def rows_at(site: Site, server: HostInfo) -> dict[str, int]:
    """Return the rows of the whole store as an instance tells them, as soon as every partition is whole."""
    wait_until(lambda: len(whole(site.instances)) == PARTITIONS, "every partition at the new instance")
    return dict(QueryClient(server.url).store("totals").all())


def an_old_instance(site: Site) -> None:
    """Let one instance have the whole store."""
    site.create_topics(trades=PARTITIONS)
    count_trades(site.application_id, site.topic("trades"), site.folder)
    instances = Watched(site.application_id, site.bootstrap_servers, standby_replicas=1, applications=site.folder)
    site.on_close(instances.stop)
    site.props |= {"instances": instances, "old": instances.start()}
    wait_until(lambda: len(whole(instances)) == PARTITIONS, "the whole store at the old instance")


def judge_relieve(site: Site, returned: Any) -> Verdict:
    """Judge by who was there when the old instance went, and by what the new one knows."""
    instances, old = site.instances, site.old
    running = list(instances)
    if old in running:
        return mistaken("not relieved")
    if not running:
        return mistaken("nobody left")
    if not instances.covered.get(old):
        return mistaken("gone before the other was ready")
    if len(running) > 1:
        return wrong(f"One instance is to be left; {len(running)} run.")
    knows = rows_at(site, running[0])
    if knows != COUNTS:
        return wrong(f"The new instance knows {len(knows)} of {len(COUNTS)} stocks.")
    if not isinstance(returned, dict) or dict(returned) != COUNTS:
        return mistaken("no proof", kind=type(returned).__name__)
    return right(
        f"At the moment when the old instance went, the new one had all {PARTITIONS} partitions; no key is lost."
    )


# ---- wrong answers ---------------------------------------------------------------------------------------------------


def relieved(waits: bool = True, starts: bool = True, stops: bool = True, proof: bool = True) -> Any:
    """Return an answer that starts an instance, waits for it, stops the old one, and proves it, or leaves some out."""

    def answer(site: Site) -> Any:
        instances, old = site.instances, site.old
        new = instances.start() if starts else old
        if waits and starts:
            wait_until(
                lambda: whole(instances, without=old) == set(range(PARTITIONS)), "every partition at the new one"
            )
        if stops:
            instances.stop(old)
        return rows_at(site, new) if proof and starts else None

    return answer


def killed_first(site: Site) -> Any:
    """Stop the old instance, and start a new one then."""
    site.instances.stop(site.old)
    return rows_at(site, site.instances.start())


WRONG = {
    "not relieved": relieved(stops=False),
    "nobody left": relieved(starts=False),
    "gone before the other was ready": [relieved(waits=False), killed_first],
    "no proof": relieved(proof=False),
}
