record Login(boolean ok, String address) {}

Duration size = Duration.ofMinutes(1);
StreamsBuilder builder = new StreamsBuilder();

builder.stream("testing-logins", Consumed.with(Serdes.String(), serde(Login.class)))
    .filter((user, login) -> !login.ok())
    .groupByKey()
    .windowedBy(TimeWindows.ofSizeAndGrace(size, Duration.ofSeconds(10)))
    .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("failures").withRetention(Duration.ofHours(1)))
    .toStream()
    .filter((user, failures) -> failures >= 3)
    .to("testing-alarms", Produced.with(
        WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), Serdes.Long()));

Topology topology = builder.build();
