record Play(String song_id, long duration) {}
record Song(String id, String genre) {}
record Entry(String id, long plays) {}
record Chart(List<Entry> entries) {
    Chart without(Entry entry) {
        return new Chart(entries.stream().filter(other -> !other.id().equals(entry.id())).toList());
    }

    Chart with(Entry entry) {
        Comparator<Entry> mostPlayed = Comparator.comparingLong(Entry::plays).reversed().thenComparing(Entry::id);
        Stream<Entry> all = Stream.concat(without(entry).entries().stream(), Stream.of(entry));
        return new Chart(all.sorted(mostPlayed).limit(5).toList());
    }
}

Serde<String> text = Serdes.String();
Serde<Song> song = serde(Song.class);
Serde<Chart> chart = serde(Chart.class);
Grouped<String, Entry> entries = Grouped.with(text, serde(Entry.class));
StreamsBuilder builder = new StreamsBuilder();

GlobalKTable<String, Song> songs =
    builder.globalTable("music-songs", Consumed.with(text, song), Materialized.as("songs"));
KTable<String, Long> counts = builder.stream("music-plays", Consumed.with(text, serde(Play.class)))
    .filter((listener, play) -> play.duration() >= 30_000)
    .join(songs, (listener, play) -> play.song_id(), (play, played) -> played)
    .groupBy((listener, played) -> played.genre() + "/" + played.id(), Grouped.with("played-songs", text, song))
    .count(Materialized.as("play-counts"));

counts
    .groupBy((key, plays) -> KeyValue.pair(key.split("/")[0], new Entry(key.split("/")[1], plays)), entries)
    .aggregate(
        () -> new Chart(List.of()),
        (genre, entry, top) -> top.with(entry),
        (genre, entry, top) -> top.without(entry),
        Materialized.<String, Chart, KeyValueStore<Bytes, byte[]>>as("top-five-by-genre").withValueSerde(chart));
counts
    .groupBy((key, plays) -> KeyValue.pair("all", new Entry(key.split("/")[1], plays)), entries)
    .aggregate(
        () -> new Chart(List.of()),
        (all, entry, top) -> top.with(entry),
        (all, entry, top) -> top.without(entry),
        Materialized.<String, Chart, KeyValueStore<Bytes, byte[]>>as("top-five").withValueSerde(chart))
    .toStream()
    .to("music-charts", Produced.with(text, chart));

Topology topology = builder.build();
