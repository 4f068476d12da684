"""Drawings of a whole application: its brokers, driver, executors and instances, and the parts of a service."""

from streamskit.course.lessons.drawing import Drawing, refuse_beyond

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
    refuse_beyond(1, BOXES_AT_MOST, brokers=brokers, executors=executors)
    refuse_beyond(0, BOXES_AT_MOST, instances=instances)
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


def music_service() -> Drawing:
    """Draw Kafka Music as a service: two applications that share only topics, two instances, and the page.

    >>> music_service().alt.split(". ")[0]
    'Listeners write plays to the topic play-events'
    """
    alt = (
        "Listeners write plays to the topic play-events. The application music-service reads them and the topic "
        "song-feed, and keeps songs, counts and charts in stores. Plays that it cannot read go to the topic "
        "music-dead-letters. A second application, music-letters, reads that topic and counts the letters by error, "
        "in the topic music-dead-letter-counts, which music-service reads as a global table. Two instances hold the "
        "stores and answer calls. The page asks either of them, and each call runs at the instance that has its key."
    )
    drawing = Drawing("Kafka Music as a service", alt, 760, 300)
    drawing.box(20, 52, 120, 44, "listeners", "a Feed, without end", look="grey")
    drawing.box(190, 52, 130, 44, "play-events", "topic", look="blue")
    drawing.box(190, 112, 130, 44, "song-feed", "topic", look="blue")
    drawing.box(380, 52, 150, 104, "music-service", "joins, counts,", "keeps the charts", look="violet")
    drawing.arrow((140, 74), (188, 74)).arrow((320, 74), (378, 74)).arrow((320, 134), (378, 134))
    drawing.frame(612, 44, 136, 126, "instances")
    for place, name in enumerate(("first", "second")):
        drawing.drum(620, 66 + 50 * place, 120, 44, name, "stores and routes")
    drawing.arrow((530, 104), (610, 104), "changelogs")
    drawing.box(620, 226, 120, 50, "the page", "and other clients", look="green")
    drawing.arrow((680, 224), (680, 172)).write(688, 203, "calls", size=10, ink="quiet")
    drawing.box(380, 226, 150, 50, "music-dead-letters", "topic", look="red")
    drawing.arrow((455, 158), (455, 224), dashed=True, ink="warn")
    drawing.write(463, 195, "unreadable plays", size=10, ink="warn")
    drawing.box(218, 226, 130, 50, "music-letters", "counts them by error", look="violet")
    drawing.arrow((380, 251), (350, 251))
    drawing.box(14, 226, 174, 50, "music-dead-letter-counts", "topic", look="blue")
    drawing.arrow((218, 251), (190, 251)).arrow((101, 224), (378, 152), bend=22)
    return drawing.write(150, 198, "as a global table", size=10, anchor="end", ink="quiet")


def _row(drawing: Drawing, y: float, count: int, height: float, words: list[str], look: str, ends: list[float]) -> None:
    left, right = ends
    width = (right - left - 16 * (count - 1)) / count
    for place in range(count):
        name = f"{words[0]} {place + 1}" if count > 1 else words[0]
        drawing.box(left + place * (width + 16), y, width, height, name, *words[1:], look=look)


def _many(count: int, one: str, several: str) -> str:
    return f"1 {one}" if count == 1 else f"{count} {several}"
