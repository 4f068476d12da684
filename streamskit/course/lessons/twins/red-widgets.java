record Widget(int id, String colour, int grams) {}

Serde<Widget> widget = serde(Widget.class);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Widget> widgets = builder.stream("widgets", Consumed.with(Serdes.String(), widget));
widgets.filter((name, w) -> w.colour().equals("red")).to("red-widgets", Produced.with(Serdes.String(), widget));

Topology topology = builder.build();
