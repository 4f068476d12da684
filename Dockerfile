# The course in a container; docs/workshop.md says how to build it, run it, and hand it to a class.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

# Where packages come from, if not from where pip and streamskit look by themselves. They hold for the build only.
ARG PIP_INDEX_URL
ARG PIP_CERT
ARG SSL_CERT_FILE
ARG STREAMSKIT_MAVEN_URL
# More packages for pip, such as jupyterhub for a hub's users.
ARG EXTRA_PACKAGES=""

RUN useradd --create-home --uid 1000 learner && install -d -o learner -g learner /home/learner/streamskit
USER learner
WORKDIR /home/learner/streamskit
ENV PATH=/home/learner/venv/bin:$PATH

COPY --chown=learner:learner pyproject.toml constraints.txt README.md LICENSE ./
COPY --chown=learner:learner streamskit streamskit
RUN python3 -m venv /home/learner/venv \
    && pip install --no-cache-dir --disable-pip-version-check -c constraints.txt -e '.[course]' $EXTRA_PACKAGES \
    && python -m compileall -q streamskit

# The jars, and Java's classes: every start of Spark in the container takes half the work.
RUN python -m streamskit class-sharing

COPY --chown=learner:learner CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md ./
COPY --chown=learner:learner data data
COPY --chown=learner:learner docs docs
COPY --chown=learner:learner examples examples
COPY --chown=learner:learner labs labs
COPY --chown=learner:learner notebooks notebooks

EXPOSE 8888
# Inside a container every address is the container's own: who may come in is decided by what `docker run` publishes.
CMD ["python", "-m", "streamskit", "lab", "--no-browser", "--ip=0.0.0.0"]
