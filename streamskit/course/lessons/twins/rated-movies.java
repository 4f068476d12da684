record Movie(String id, String title, int year) {}
record CountAndSum(long count, double sum) {}
record RatedMovie(String title, int year, double rating) {}

Serde<String> text = Serdes.String();
Serde<Movie> movie = serde(Movie.class);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("raw-movies", Consumed.with(text, text))
    .map((none, line) -> {
        String[] part = line.split("::");
        return KeyValue.pair(part[0], new Movie(part[0], part[1], Integer.parseInt(part[2])));
    })
    .to("movies", Produced.with(text, movie));
KTable<String, Movie> movies = builder.table("movies", Consumed.with(text, movie));

KTable<String, CountAndSum> totals = builder.stream("raw-ratings", Consumed.with(text, text))
    .map((none, line) -> KeyValue.pair(line.split("::")[0], Double.parseDouble(line.split("::")[1])))
    .groupByKey(Grouped.with(text, Serdes.Double()))
    .aggregate(
        () -> new CountAndSum(0, 0),
        (id, rating, kept) -> new CountAndSum(kept.count() + 1, kept.sum() + rating),
        Materialized.<String, CountAndSum, KeyValueStore<Bytes, byte[]>>as("count-and-sum")
            .withKeySerde(text)
            .withValueSerde(serde(CountAndSum.class)));
KTable<String, Double> averages = totals.mapValues(
    kept -> kept.sum() / kept.count(),
    Materialized.<String, Double, KeyValueStore<Bytes, byte[]>>as("average-ratings")
        .withKeySerde(text)
        .withValueSerde(Serdes.Double()));
averages.toStream().to("average-ratings", Produced.with(text, Serdes.Double()));
averages
    .join(
        movies,
        (rating, rated) -> new RatedMovie(rated.title(), rated.year(), rating),
        Materialized.<String, RatedMovie, KeyValueStore<Bytes, byte[]>>as("rated")
            .withKeySerde(text)
            .withValueSerde(serde(RatedMovie.class)))
    .toStream()
    .to("rated-movies", Produced.with(text, serde(RatedMovie.class)));

Topology topology = builder.build();
