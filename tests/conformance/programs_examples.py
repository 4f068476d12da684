"""The programs of the vectors `examples-*` that use the DSL alone."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamskit import Serdes, StreamsBuilder
from tests.conformance.registry import program

Song = dict[str, Any]

TOP_FIVE = Serdes.json("array<struct<id: string, plays: long>>")


def without(key: str, song: Song, top: list[Song]) -> list[Song]:
    """Take a song out of the charts."""
    return [other for other in top if other["id"] != song["id"]]


def with_song(key: str, song: Song, top: list[Song]) -> list[Song]:
    """Put a song into the charts of the five that were played most; of two alike the smaller id comes first."""
    songs = [*without(key, song, top), song]
    return sorted(songs, key=lambda song: (-song["plays"], song["id"]))[:5]


@program
def examples_music_charts(builder: StreamsBuilder) -> None:
    songs = builder.table("songs", value=Serdes.json("id string, name string, genre string"))
    counts = (
        builder.stream("plays", value=Serdes.json("song_id string, duration long"))
        .filter(lambda play: play.duration >= 30000)
        .select_key(lambda play: play.song_id)
        .join(songs, lambda play, song: song)
        .group_by(lambda song_id, song: F.concat(F.lower(song.genre), F.lit("/"), song_id), name="played-songs")
        .count("play-counts")
    )

    def entry(song: Column, plays: Column) -> Column:
        return F.struct(F.split(song, "/")[1].alias("id"), plays.alias("plays"))

    for name, store, topic, group in (
        ("by-genre", "top5-by-genre", "charts-by-genre", lambda song: F.split(song, "/")[0]),
        ("overall", "top5", "charts", lambda song: F.lit("all")),
    ):
        (
            counts.group_by(lambda song, plays, group=group: (group(song), entry(song, plays)), name=name)
            .aggregate(list, with_song, without, store, value=TOP_FIVE)
            .to_stream()
            .to(topic)
        )


INVOICE = Serdes.json(
    "InvoiceNumber string, CreatedTime long, StoreID string, CustomerType string, CustomerCardNo string, "
    "TotalAmount double, DeliveryType string, "
    "DeliveryAddress struct<AddressLine: string, City: string, PinCode: string, ContactNumber: string>, "
    "InvoiceLineItems array<struct<ItemCode: string, ItemPrice: double, ItemQty: long>>"
)


def is_home_delivery(invoice: Any) -> Column:
    return F.upper(invoice.DeliveryType) == "HOME-DELIVERY"


def notification(invoice: Any) -> Column:
    points = (invoice.TotalAmount * 0.02).alias("EarnedLoyaltyPoints")
    return F.struct(invoice.InvoiceNumber, invoice.CustomerCardNo, invoice.TotalAmount, points)


def masked(invoice: Any) -> Column:
    """Hide who bought, and where a delivery went to."""
    nothing = F.lit(None).cast("string")
    address = invoice.DeliveryAddress
    hidden = address.withField("AddressLine", nothing).withField("ContactNumber", nothing)
    shown = F.when(is_home_delivery(invoice), hidden).otherwise(address)
    return invoice.withField("CustomerCardNo", nothing).withField("DeliveryAddress", shown)


def line_items(invoice: Any) -> Column:
    """Make one record of each line item, as JSON text: only a delivery has a city, where a struct would have a null."""

    def line(item: Column) -> Column:
        invoiced = [invoice[name] for name in (
            "InvoiceNumber", "CreatedTime", "StoreID", "CustomerType", "CustomerCardNo", "DeliveryType")]  # fmt: skip
        place = [invoice.DeliveryAddress.City.alias("City"), invoice.DeliveryAddress.PinCode.alias("PinCode")]
        bought = [item[name].alias(name) for name in ("ItemCode", "ItemPrice", "ItemQty")]
        total = (item["ItemPrice"] * item["ItemQty"]).alias("TotalValue")
        here, delivered = (F.struct(*invoiced, *more, *bought, total) for more in ([], place))
        return F.when(is_home_delivery(invoice), text(delivered)).otherwise(text(here))

    def text(value: Column) -> Column:
        return F.to_json(value, {"ignoreNullFields": "false"})

    return F.transform(invoice.InvoiceLineItems, line)


@program
def examples_pos_fanout(builder: StreamsBuilder) -> None:
    invoices = builder.stream("pos", value=INVOICE)
    invoices.filter(is_home_delivery).to("shipment")
    invoices.filter(lambda v: F.upper(v.CustomerType) == "PRIME").map_values(notification).to("loyalty")
    invoices.map_values(masked).flat_map_values(line_items).to("trends")
