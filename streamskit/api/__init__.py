"""Values of the public API that know nothing of the rest: windows, processors, handlers, extractors."""
