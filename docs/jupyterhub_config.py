"""A JupyterHub for a class: each learner has a container of the course. docs/workshop.md says how to start it.

The password of the workshop comes from the environment, JUPYTERHUB_PASSWORD, and is written nowhere.
"""

import os

GATEWAY = "172.30.0.1"
"""This machine's address on Docker's network `streamskit`: there the containers reach the hub, and nobody else does."""

c = get_config()  # noqa: F821 -- JupyterHub gives it to this file

c.JupyterHub.bind_url = "http://127.0.0.1:8000"  # a proxy with TLS stands before it
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["JUPYTERHUB_PASSWORD"]
c.Authenticator.allow_all = True

c.JupyterHub.spawner_class = "docker"
c.JupyterHub.hub_ip = GATEWAY
c.JupyterHub.hub_connect_ip = GATEWAY
c.DockerSpawner.image = "streamskit:hub"
c.DockerSpawner.network_name = "streamskit"
c.DockerSpawner.use_internal_ip = True
c.DockerSpawner.cmd = ["jupyterhub-singleuser"]
c.DockerSpawner.remove = True
# What a learner has written is on a volume, and there again tomorrow.
c.DockerSpawner.volumes = {"streamskit-{username}": "/home/learner/streamskit"}
c.DockerSpawner.extra_host_config = {"init": True}

c.Spawner.default_url = "/lab/tree/notebooks/00-start-here.ipynb"
c.Spawner.environment = {  # as `make lab` sets it: Java with half the memory
    "STREAMSKIT_SPARK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
}
c.Spawner.mem_limit = "3G"
c.Spawner.cpu_limit = 2
c.Spawner.start_timeout = 120
c.JupyterHub.active_server_limit = 10  # as many as memory allows: ten learners with up to 3 GB each need 30 GB
