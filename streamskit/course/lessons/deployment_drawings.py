"""A drawing of where an application runs: its brokers, its driver, its executors, and the instances that answer."""

from streamskit.course.lessons.drawing import Drawing

BOXES_AT_MOST = 5
ROW, LEFT, RIGHT = 172, 20, 740


def where_it_runs(brokers: int, executors: int, instances: int = 0) -> Drawing:
    """Draw the processes of one application and what each has: three rows, and what goes between them.

    Args:
        brokers: how many, 1 to 5.
        executors: how many, 1 to 5; each has tasks, their state, and Python for your functions.
        instances: how many answer queries, 0 to 5.

    Raises:
        ValueError: a number is out of these ranges.

    >>> where_it_runs(brokers=3, executors=2, instances=1).alt.split(". ")[0]
    '3 brokers keep the topics'
    """
    counts = {"brokers": (brokers, 1), "executors": (executors, 1), "instances": (instances, 0)}
    for name, (count, least) in counts.items():
        if not least <= count <= BOXES_AT_MOST:
            raise ValueError(f"{name}={count}: this drawing has room for {least} to {BOXES_AT_MOST} of them.")
    alt = (
        f"{_many(brokers, 'broker keeps', 'brokers keep')} the topics. One driver plans each micro-batch and notes "
        f"what is done in the checkpoint. {_many(executors, 'executor runs', 'executors run')} the tasks, each with "
        f"Python processes for your functions and with the state of its tasks. Executors read records from the "
        f"brokers and write results and changelogs to them."
    )
    if instances:
        alt += f" {_many(instances, 'instance answers', 'instances answer')} queries, from the changelogs."
    drawing = Drawing("Who does what", alt, 760, 380 if instances else 290)
    _row(drawing, 40, brokers, 46, ["broker", "topics"], "blue", [LEFT, RIGHT])
    drawing.box(LEFT, ROW, 150, 62, "driver", "your program:", "plans micro-batches", look="violet")
    drawing.drum(LEFT, 248, 150, 34, "checkpoint", look="grey")
    drawing.arrow((LEFT + 75, ROW + 62), (LEFT + 75, 248))
    drawing.arrow((320, ROW + 62), (LEFT + 150, 266), bend=-8).write(268, 270, "state", size=10, ink="quiet")
    _row(drawing, ROW, executors, 62, ["executor", "tasks and state,", "Python workers"], "green", [260, RIGHT])
    drawing.arrow((LEFT + 150, ROW + 31), (260, ROW + 31), "tasks")
    drawing.arrow((460, 86), (460, ROW))
    drawing.write(450, 133, "records", size=10, anchor="end", ink="quiet")
    drawing.arrow((540, ROW), (540, 86))
    drawing.write(550, 133, "results, changelogs", size=10, ink="quiet")
    if instances:
        _row(drawing, 314, instances, 46, ["instance", "answers queries"], "orange", [260, 690])
        drawing.line((RIGHT, 63), (752, 63)).line((752, 63), (752, 337))
        drawing.arrow((752, 337), (690, 337))
        drawing.write(744, 292, "changelogs", size=10, anchor="end", ink="quiet")
    return drawing


def _row(drawing: Drawing, y: float, count: int, height: float, words: list[str], look: str, ends: list[float]) -> None:
    left, right = ends
    width = (right - left - 16 * (count - 1)) / count
    for place in range(count):
        name = f"{words[0]} {place + 1}" if count > 1 else words[0]
        drawing.box(left + place * (width + 16), y, width, height, name, *words[1:], look=look)


def _many(count: int, one: str, several: str) -> str:
    return f"1 {one}" if count == 1 else f"{count} {several}"
