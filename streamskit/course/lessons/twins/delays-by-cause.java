record Flight(String tailnum, Double dep_delay, Double arr_delay) {}
record Weather(double visib) {}
record Plane(Integer year) {}
record Seen(double visib, Double dep_delay, Double arr_delay) {}
record Aged(long age, Double dep_delay, Double arr_delay) {
    static Aged of(Flight flight, Plane plane) {
        long age = plane == null || plane.year() == null ? -1 : 2013 - plane.year();
        return new Aged(age, flight.dep_delay(), flight.arr_delay());
    }
}
record Tally(long flights, long left, long landed, double minutes) {
    Tally with(Double departure, Double arrival) {
        return new Tally(
            flights + 1,
            left + (departure == null ? 0 : 1),
            landed + (arrival == null ? 0 : 1),
            minutes + (arrival == null ? 0 : arrival));
    }
}

Serde<String> text = Serdes.String();
Serde<Flight> flight = serde(Flight.class);
Serde<Weather> weather = serde(Weather.class);
Serde<Plane> plane = serde(Plane.class);
JoinWindows sameHour =
    JoinWindows.ofTimeDifferenceAndGrace(Duration.ZERO, Duration.ofHours(36)).before(Duration.ofMinutes(59));
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Flight> flights = builder.stream("nyc-flights", Consumed.with(text, flight));
KStream<String, Weather> observed = builder.stream("nyc-weather", Consumed.with(text, weather));
KTable<String, Plane> planes = builder.table("nyc-planes", Consumed.with(text, plane));

flights
    .join(observed,
        (f, w) -> new Seen(w.visib(), f.dep_delay(), f.arr_delay()),
        sameHour,
        StreamJoined.with(text, flight, weather))
    .groupBy((airport, s) -> (long) Math.floor(s.visib()),
        Grouped.with("by-sight", Serdes.Long(), serde(Seen.class)))
    .aggregate(
        () -> new Tally(0, 0, 0, 0),
        (miles, s, tally) -> tally.with(s.dep_delay(), s.arr_delay()),
        Materialized.<Long, Tally, KeyValueStore<Bytes, byte[]>>as("delays-by-sight")
            .withValueSerde(serde(Tally.class)));
flights.selectKey((airport, f) -> f.tailnum(), Named.as("by-tailnum"))
    .leftJoin(planes, Aged::of, Joined.with(text, flight, plane))
    .groupBy((tailnum, a) -> a.age(), Grouped.with("by-age", Serdes.Long(), serde(Aged.class)))
    .aggregate(
        () -> new Tally(0, 0, 0, 0),
        (age, a, tally) -> tally.with(a.dep_delay(), a.arr_delay()),
        Materialized.<Long, Tally, KeyValueStore<Bytes, byte[]>>as("delays-by-age")
            .withValueSerde(serde(Tally.class)));

Topology topology = builder.build();
