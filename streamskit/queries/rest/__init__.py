"""The REST layer of an instance. It loads FastAPI, so only what serves imports `server`."""
