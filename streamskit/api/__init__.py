"""Values of the public API that depend on nothing else: windows, processors, handlers, extractors."""
