record Basket(String customer, String city, Integer total, List<String> goods) {}

Serde<String> text = Serdes.String();
Produced<String, Integer> asNumber = Produced.with(text, Serdes.Integer());
Produced<String, String> asText = Produced.with(text, text);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Basket> baskets = builder.stream("baskets", Consumed.with(text, serde(Basket.class)));
KStream<String, Integer> totals = baskets.mapValues(Basket::total);
totals.to("map_values", asNumber);
totals.filter((id, total) -> total != null && total > 100).to("filter", asNumber);
totals.filterNot((id, total) -> total != null && total > 100).to("filter_not", asNumber);

totals.selectKey((id, total) -> id + "!").to("select_key", asNumber);
baskets.map((id, b) -> KeyValue.pair(b.city(), id + " of " + b.customer())).to("map", asText);

baskets.flatMapValues(Basket::goods).to("flat_map_values", asText);
baskets
    .flatMap((id, b) -> b.goods().stream().map(good -> KeyValue.pair(good, id)).toList())
    .to("flat_map", asText);

Map<String, KStream<String, Integer>> sizes = totals.split(Named.as("size-"))
    .branch((id, total) -> total != null && total > 100, Branched.as("big"))
    .branch((id, total) -> total != null && total > 10, Branched.as("middle"))
    .defaultBranch(Branched.as("small"));
sizes.get("size-big").to("big", asNumber);
sizes.get("size-middle").merge(sizes.get("size-small")).to("others", asNumber);

Topology topology = builder.build();
