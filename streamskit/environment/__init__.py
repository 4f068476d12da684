"""What a machine must have before a stream can flow: folders, Java, jars; and a doctor that checks them."""
