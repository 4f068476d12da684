"""Checkpoints that an earlier Spark has made: an application goes on with them."""

from pathlib import Path

import pytest

from streamskit.broker import Broker
from tests.integration.older_checkpoints import ALL, APPLICATION, BEFORE, put_back
from tests.integration.program_of_everything import check_everything, run_in, write

pytestmark = [pytest.mark.spark, pytest.mark.broker]

CHECKPOINTS = sorted((Path(__file__).parent / "checkpoints").glob("*.zip"))


@pytest.mark.parametrize("archive", CHECKPOINTS, ids=lambda archive: archive.stem)
def test_an_application_of_an_earlier_spark_goes_on_where_it_stopped(
    archive: Path, broker: Broker, state_dir: Path
) -> None:
    put_back(archive, broker, state_dir)
    write(broker, APPLICATION, range(BEFORE, ALL))
    streams = run_in(state_dir, broker, APPLICATION)
    check_everything(broker, APPLICATION, streams, range(ALL), named=range(1, ALL))
    streams.close()
