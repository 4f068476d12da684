record Basket(String customer, String city, Integer total, List<String> goods) {
    boolean costsMoreThan(int amount) {
        return total != null && total > amount;
    }
}

Serde<Basket> basket = serde(Basket.class);
Produced<String, Basket> asBasket = Produced.with(Serdes.String(), basket);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Basket> baskets = builder.stream("basic-baskets", Consumed.with(Serdes.String(), basket));
Map<String, KStream<String, Basket>> branches = baskets.split(Named.as("basic-"))
    .branch((id, b) -> b.costsMoreThan(100), Branched.as("big"))
    .branch((id, b) -> b.costsMoreThan(10), Branched.as("middle"))
    .defaultBranch(Branched.as("small"));
for (String name : List.of("basic-big", "basic-middle", "basic-small")) {
    branches.get(name).to(name, asBasket);
}
baskets.flatMapValues(Basket::goods).to("basic-goods", Produced.with(Serdes.String(), Serdes.String()));
baskets.selectKey((id, b) -> b.customer())
    .repartition(Repartitioned.with(Serdes.String(), basket).withName("customers"))
    .to("basic-customers", asBasket);

Topology topology = builder.build();
