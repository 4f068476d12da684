record Basket(String customer, String city, Integer total, List<String> goods) {}

Set<String> customers = new HashSet<>();
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Basket> seen = builder.stream("baskets", Consumed.with(Serdes.String(), serde(Basket.class)))
    .peek((id, b) -> customers.add(b.customer()));
seen.filter((id, b) -> b.total() != null && b.total() > 100)
    .mapValues(Basket::total)
    .print(Printed.<String, Integer>toSysOut().withLabel("big"));
seen.foreach((id, b) -> {
    if (b.goods().isEmpty()) {
        System.out.println(id + " went by");
    }
});

Topology topology = builder.build();
