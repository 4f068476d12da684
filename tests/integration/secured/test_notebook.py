"""A notebook on a cluster that asks for a password: whatever its cells show, save or raise, it is not in there."""

import json
from pathlib import Path

import javaproperties
import nbformat
import pytest
from nbclient import NotebookClient

from tests.integration.secured.broker import SecuredBroker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]

PASSWORD, WRONG, IN_BOTH = "swordfish-1", "not-the-swordfish", "swordfish"

CELLS = """
from streamskit import KafkaStreams, StreamsBuilder, StreamsConfig
from streamskit.broker import ExternalBroker
from streamskit.widgets import StoreView, TopicView, TopologyView

broker = ExternalBroker("ADDRESS", "client.properties")
broker.connection
---
config = StreamsConfig("NAME", "ADDRESS", client_settings="client.properties", state_dir="state")
config
---
builder = StreamsBuilder()
builder.stream("NAME-in").group_by_key().count("counts")
streams = KafkaStreams(builder.build(), config)
streams.start()
streams.await_processed("120 seconds")
streams
---
print(streams.explain())
---
streams.metrics()
---
TopologyView(streams)
---
StoreView(streams.store("counts"))
---
TopicView(broker, "NAME-in")
---
vars(config), vars(broker), config.client_settings
---
ExternalBroker("ADDRESS", "wrong.properties").topics()
---
KafkaStreams(builder.build(), "NAME-2", "ADDRESS", client_settings="wrong.properties").start()
---
streams.close()
"""


def test_no_password_is_in_the_outputs_of_a_notebook(secured: SecuredBroker, name: str, tmp_path: Path) -> None:
    settings = secured.user("alice", PASSWORD)
    secured.allow_application("User:alice", name)
    secured.open.create_topics(f"{name}-in", partitions=1)
    secured.open.produce(f"{name}-in", [("x", "1"), ("y", "2"), ("x", "3")])
    folder = tmp_path / "notebook"
    folder.mkdir()
    (folder / "client.properties").write_text(javaproperties.dumps(settings))
    (folder / "wrong.properties").write_text(javaproperties.dumps(settings | {"sasl.password": WRONG}))
    sources = CELLS.replace("ADDRESS", secured.sasl_ssl).replace("NAME", name).split("---\n")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source.strip()) for source in sources])
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=180, kernel_name="python3", allow_errors=True, resources=resources).execute()
    outputs = [cell.outputs for cell in notebook.cells]
    errors = [output.evalue for some in outputs for output in some if output.output_type == "error"]
    assert len(errors) == 2, errors  # those that the wrong password makes
    assert all("alice" in error for error in errors)
    assert all(outputs[:-3])  # each of the others shows something
    assert IN_BOTH not in json.dumps([notebook.cells, notebook.metadata])
