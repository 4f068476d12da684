record Rating(String viewer, String movie_id, int rating) {}
record Total(long count, long sum) {}

Serde<String> text = Serdes.String();
Serde<Rating> rating = serde(Rating.class);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("viewer-ratings", Consumed.with(text, rating))
    .selectKey((none, r) -> r.viewer() + "/" + r.movie_id())
    .toTable(Materialized.with(text, rating))
    .groupBy((key, r) -> KeyValue.pair(r.movie_id(), r.rating()), Grouped.with(text, Serdes.Integer()))
    .aggregate(
        () -> new Total(0, 0),
        (movie, points, total) -> new Total(total.count() + 1, total.sum() + points),
        (movie, points, total) -> new Total(total.count() - 1, total.sum() - points),
        Materialized.<String, Total, KeyValueStore<Bytes, byte[]>>as("last-words-by-movie")
            .withValueSerde(serde(Total.class)));

Topology topology = builder.build();
