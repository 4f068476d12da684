record Flight(String carrier, Double dep_delay, Double arr_delay) {}
record Airline(String name) {}
record Delay(String name, Double dep_delay, Double arr_delay) {}
record Tally(long flights, long left, long landed, double minutes) {
    Tally with(Delay delay) {
        return new Tally(
            flights + 1,
            left + (delay.dep_delay() == null ? 0 : 1),
            landed + (delay.arr_delay() == null ? 0 : 1),
            minutes + (delay.arr_delay() == null ? 0 : delay.arr_delay()));
    }
}

Serde<String> text = Serdes.String();
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Flight> flights = builder.stream("nyc-flights", Consumed.with(text, serde(Flight.class)));
GlobalKTable<String, Airline> airlines =
    builder.globalTable("nyc-airlines", Consumed.with(text, serde(Airline.class)));
flights
    .join(airlines,
        (airport, flight) -> flight.carrier(),
        (flight, airline) -> new Delay(airline.name(), flight.dep_delay(), flight.arr_delay()))
    .groupBy((airport, delay) -> delay.name(), Grouped.with("by-airline", text, serde(Delay.class)))
    .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofHours(1), Duration.ofHours(36)))
    .aggregate(
        () -> new Tally(0, 0, 0, 0),
        (name, delay, tally) -> tally.with(delay),
        Materialized.<String, Tally, WindowStore<Bytes, byte[]>>as("delays")
            .withKeySerde(text)
            .withValueSerde(serde(Tally.class))
            .withRetention(Duration.ofDays(400)));

Topology topology = builder.build();
