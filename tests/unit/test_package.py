import subprocess
import sys

import streamskit


def test_every_public_name_can_be_imported() -> None:
    for names in streamskit.WHERE.values():
        for name in names:
            assert getattr(streamskit, name).__name__ == name
            assert name in dir(streamskit)
            assert name in streamskit.__all__


def test_importing_the_package_alone_loads_neither_spark_nor_pandas() -> None:
    code = "import sys, streamskit; print({'pyspark', 'pandas', 'kafka'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
