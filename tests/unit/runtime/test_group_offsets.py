"""What several queries have processed, as one consumer group shows it."""

from streamskit.runtime.group_offsets import least


def test_a_topic_that_two_queries_read_is_processed_as_far_as_the_slower_one_has_come() -> None:
    ahead, behind = {"sales": {0: 9, 1: 4}, "prices": {0: 2}}, {"sales": {0: 3, 1: 5}}
    for positions in ([ahead, behind], [behind, ahead]):
        assert least((position, position) for position in positions) == {"sales": {0: 3, 1: 4}, "prices": {0: 2}}


def test_a_topic_of_which_one_query_has_read_nothing_yet_is_not_known() -> None:
    assert least([(["sales"], {"sales": {0: 9}}), (["sales", "prices"], {"prices": {0: 2}})]) == {"prices": {0: 2}}
