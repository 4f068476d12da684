record Play(String song_id, long duration) {}
record Song(String id, String name, String artist, String album, String genre) {}
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

KStream<String, Play> heard = builder.stream("play-events", Consumed.with(text, serde(Play.class)))
    .filter((listener, play) -> play.duration() >= 30_000);
GlobalKTable<String, Song> songs =
    builder.globalTable("song-feed", Consumed.with(text, song), Materialized.as("songs"));
KTable<String, Long> counts = heard
    .join(songs, (listener, play) -> play.song_id(), (play, found) -> found)
    .groupBy((listener, found) -> found.genre() + "/" + found.id(), Grouped.with("plays-by-genre", text, song))
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
        Materialized.<String, Chart, KeyValueStore<Bytes, byte[]>>as("top-five").withValueSerde(chart));

Topology topology = builder.build();
