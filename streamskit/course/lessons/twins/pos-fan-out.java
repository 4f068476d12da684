record Address(String AddressLine, String City, String PinCode, String ContactNumber) {}
record Item(String ItemCode, double ItemPrice, int ItemQty, double TotalValue) {}
record Line(String InvoiceNumber, String StoreID, String City, String ItemCode, int ItemQty, double TotalValue) {}
record Message(String InvoiceNumber, String CustomerCardNo, double TotalAmount, double EarnedLoyaltyPoints) {}
record Invoice(String InvoiceNumber, String StoreID, String CustomerType, String CustomerCardNo, double TotalAmount,
        String DeliveryType, Address DeliveryAddress, List<Item> InvoiceLineItems) {
    Message message() {
        return new Message(InvoiceNumber, CustomerCardNo, TotalAmount, TotalAmount * 0.02);
    }

    Invoice masked() {
        Address seen = DeliveryAddress == null
            ? null : new Address(null, DeliveryAddress.City(), DeliveryAddress.PinCode(), null);
        return new Invoice(
            InvoiceNumber, StoreID, CustomerType, null, TotalAmount, DeliveryType, seen, InvoiceLineItems);
    }

    List<Line> lines() {
        String city = DeliveryAddress == null ? null : DeliveryAddress.City();
        return InvoiceLineItems.stream()
            .map(i -> new Line(InvoiceNumber, StoreID, city, i.ItemCode(), i.ItemQty(), i.TotalValue()))
            .toList();
    }
}

Serde<Invoice> invoice = serde(Invoice.class);
StreamsBuilder builder = new StreamsBuilder();

KStream<String, Invoice> pos = builder.stream("pos-invoices", Consumed.with(Serdes.String(), invoice));
pos.filter((store, i) -> "HOME-DELIVERY".equalsIgnoreCase(i.DeliveryType()))
    .to("pos-shipment", Produced.with(Serdes.String(), invoice));
pos.filter((store, i) -> "PRIME".equalsIgnoreCase(i.CustomerType()))
    .mapValues(Invoice::message)
    .to("pos-loyalty", Produced.with(Serdes.String(), serde(Message.class)));
pos.mapValues(Invoice::masked)
    .flatMapValues(Invoice::lines)
    .to("pos-trends", Produced.with(Serdes.String(), serde(Line.class)));

Topology topology = builder.build();
