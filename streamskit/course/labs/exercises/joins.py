"""The exercises of lab 06: which records find each other, by which key, and what becomes of those that do not."""

from streamskit.course.labs.exercise import Exercise, Lab, Runs
from streamskit.course.labs.exercises.joins_judging import (
    INNER_FOR_LEFT,
    LEFT_FOR_INNER,
    NO_WINDOW,
    SIDES_TURNED,
    TOO_NARROW,
    TOO_WIDE,
    bounds_turned,
    deliveries,
    never_met,
    orders_with_names,
    parcels_with_routes,
    right_unmatched_missing,
    right_unmatched_not_asked,
    table_for_stream,
    two_streams,
    unmatched_too_early,
    unmatched_too_late,
)
from streamskit.course.labs.misconceptions import (
    Misconception,
    results_after,
    silent_after,
    wrong_keys,
)

LAB = Lab(
    "06-joins",
    "Joins",
    (
        Exercise(
            "bundle_deals",
            "Join appliances with the electronics bought soon after: a window that reaches further to one side.",
            Runs(
                lambda: two_streams(
                    "joins-stream-stream-asymmetric", "appliance-orders", "electronic-orders", "bundles"
                ),
                (
                    SIDES_TURNED,
                    table_for_stream("electronic-orders"),
                    Misconception(
                        "before and after swapped",
                        "Pairs came whose electronic order is the earlier one by more than six minutes, and some whose "
                        "electronic order is later are missing. before and after are told from the left stream: after "
                        "says how much later the right record may be.",
                        bounds_turned,
                    ),
                    TOO_NARROW,
                    TOO_WIDE,
                    LEFT_FOR_INNER,
                ),
                NO_WINDOW,
            ),
            (
                "A JoinWindows has three durations: how far back it reaches, how far ahead, and its grace.",
                "of_time_difference_with_no_grace reaches as far back as ahead. Which method shortens one of them?",
                'JoinWindows.of_time_difference_with_no_grace("30 minutes").before(...) with the shorter time.',
            ),
        ),
        Exercise(
            "advice_calls",
            "Join each appliance order with the electronics within half an hour, or with nothing.",
            Runs(
                lambda: two_streams(
                    "joins-stream-stream-left", "appliance-orders", "electronic-orders", "advice-calls", 12
                ),
                (
                    SIDES_TURNED,
                    table_for_stream("electronic-orders"),
                    INNER_FOR_LEFT,
                    Misconception(
                        "outer instead of left",
                        "Electronic orders without an appliance came, too. The task asks for every appliance order: "
                        "for those of one side.",
                        right_unmatched_not_asked,
                    ),
                    TOO_NARROW,
                    TOO_WIDE,
                    Misconception(
                        "a grace that was not asked for",
                        "The pairs are right, and what has no partner comes too late, or not at all. A result with "
                        "null waits until the window and its grace are over.",
                        unmatched_too_late,
                    ),
                ),
                NO_WINDOW,
            ),
            (
                "Three joins of two streams differ in what becomes of a record without a partner. Which keeps those of "
                "one side?",
                "left_join is called on the side that is kept whole. pair writes the missing side already.",
                'appliances.left_join(electronics, pair, JoinWindows.of_time_difference_with_no_grace("30 minutes"))',
            ),
        ),
        Exercise(
            "settled_accounts",
            "Match checkouts and payments, tell what is missing on either side, and wait for what is late.",
            Runs(
                lambda: two_streams("joins-stream-stream-outer-grace", "checkouts", "payments", "accounts"),
                (
                    SIDES_TURNED,
                    table_for_stream("payments"),
                    INNER_FOR_LEFT,
                    Misconception(
                        "left instead of outer",
                        "Payments without a checkout are missing. A left join keeps what is unmatched on one side; "
                        "the task asks for both.",
                        right_unmatched_missing,
                    ),
                    TOO_NARROW,
                    TOO_WIDE,
                    Misconception(
                        "grace forgotten",
                        "A record was given up too early, and went out without a partner before its window and its "
                        "grace were over. The task allows 45 minutes of grace.",
                        unmatched_too_early,
                    ),
                    Misconception(
                        "a longer grace than asked for",
                        "What has no partner comes too late, or not at all: it waits for the window and the grace.",
                        unmatched_too_late,
                    ),
                ),
                NO_WINDOW,
            ),
            (
                "Who is kept without a partner: the left side, the right one, or both? And for how long does it wait?",
                "outer_join, and a JoinWindows that is told two durations: the time difference and the grace.",
                'checkouts.outer_join(payments, pair, JoinWindows.of_time_difference_and_grace("30 minutes", ...))',
            ),
        ),
        Exercise(
            "named_orders",
            "Join orders with the table of users, which has another key.",
            Runs(
                orders_with_names,
                (
                    Misconception(
                        "wrong key before the join",
                        "No order found its user. A stream meets a table by the stream's key, which is the order's id "
                        "here, and the table's key is the user. Which step changes the key, and does it come before "
                        "the join?",
                        never_met,
                    ),
                    Misconception(
                        "a table where a stream is asked for",
                        "A user's row made a result. Orders are a stream here: each looks its user up once, when it "
                        "arrives, and what changes in the table later is for later orders.",
                        results_after("users"),
                    ),
                    Misconception(
                        "left instead of inner",
                        "An order without a known user came out. The task asks for orders whose user is there.",
                        results_after("orders"),
                    ),
                    Misconception(
                        "GlobalKTable instead of a re-keyed stream",
                        "The values are right, and stand under the orders' ids. A join with a global table leaves the "
                        "stream's key as it is; the task asks for the user as the key.",
                        wrong_keys,
                    ),
                ),
                {"a table can be joined with": "sides swapped"},
            ),
            (
                "By which key do a stream and a table meet? By which is the topic of the orders written?",
                "select_key makes the key of a part of the value. The join comes after it.",
                "orders.select_key(lambda v: v.user).join(users, lambda order, name: F.concat(order.order, ...))",
            ),
        ),
        Exercise(
            "parcel_routes",
            "Find each parcel's way in a global table, by the city in its value.",
            Runs(
                parcels_with_routes,
                (
                    Misconception(
                        "looked up by the record's own key",
                        "No parcel found its way: the keys of the parcels are people, and those of the routes are "
                        "cities. The key selector says which key to look up.",
                        never_met,
                    ),
                    Misconception(
                        "re-keyed for a global table",
                        "The values are right, and stand under cities. A global table is looked up by a key of your "
                        "choice, so a parcel keeps the key it has.",
                        wrong_keys,
                    ),
                    Misconception(
                        "left instead of inner",
                        "A parcel without a known way came out. The task leaves those out: an inner join.",
                        results_after("parcels"),
                    ),
                ),
                {"say which key to look up": "key selector forgotten"},
            ),
            (
                "A global table does not ask for the stream's own key. Something else has to say what to look up.",
                "builder.global_table(...), and join with a third argument, key_selector=, a function of the parcel.",
                "parcels.join(routes, lambda parcel, way: F.concat(...), key_selector=lambda v: v.city)",
            ),
        ),
        Exercise(
            "open_deliveries",
            "Keep a table of deliveries up to date that follows both its orders and its users.",
            Runs(
                deliveries,
                (
                    Misconception(
                        "joined by the orders' own keys",
                        "No order found its user: the orders' keys are ids, and the users' are names. Two tables meet "
                        "by the same key, unless foreign_key= says which row of the other table a row belongs to.",
                        never_met,
                    ),
                    Misconception(
                        "a stream where a table is asked for",
                        "When a user moves, nothing comes out. A stream looks its partner up once and forgets it; a "
                        "table remembers its rows, so that the other side's update reaches them.",
                        silent_after("users"),
                    ),
                    Misconception(
                        "left instead of inner",
                        "An order came out whose user is not there. The task leaves those out: an inner join.",
                        results_after("open-orders"),
                    ),
                ),
                {"a table can be joined with": "a stream where a table is asked for"},
            ),
            (
                "When a user moves, the deliveries of all their orders change. So which of the two sides is a table?",
                "Both are. Their keys differ: the order's value names the user, and join has an argument for that.",
                'orders.join(users, joiner, foreign_key=lambda v: v.user).to_stream().to("deliveries")',
            ),
        ),
    ),
)
