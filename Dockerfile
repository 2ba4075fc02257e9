# Two images:
#
#   docker build --tag onceproof:0.2.0-slim .                 the plain install: docker run --rm onceproof:0.2.0-slim demo
#   docker build --target pipeline --tag onceproof:0.2.0 .    all services of docker-compose.yml: Airflow with the DAGs
#                                                             and the page, Spark, Great Expectations, the lab
#
# Both install the wheel. Nothing is resolved when a container of the pipeline starts: Python comes from a lock with
# hashes, Kafka and the jars lie in the image. The slim one resolves the Kafka releases that it is asked for.

# By digest, if the same base is wanted for ever: --build-arg BASE=debian:bookworm-slim@sha256:...
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates openjdk-17-jre-headless python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --home-dir /var/lib/onceproof --shell /usr/sbin/nologin onceproof
ENV PATH=/opt/onceproof/.venv/bin:$PATH \
    ONCEPROOF_HOME=/var/lib/onceproof
WORKDIR /opt/onceproof

# What builds: a JDK, Maven, uv.
FROM base AS tools
RUN apt-get update \
    && apt-get install -y --no-install-recommends maven openjdk-17-jdk-headless python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY requirements-uv.lock ./
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --quiet --no-cache-dir --require-hashes -r requirements-uv.lock \
    && python3 -m venv .venv
ENV VIRTUAL_ENV=/opt/onceproof/.venv

# Each changes with its lock alone.
FROM tools AS plain-dependencies
COPY requirements-plain.lock ./
RUN /opt/uv/bin/uv pip sync --quiet --no-cache --compile-bytecode --require-hashes requirements-plain.lock

FROM tools AS pipeline-dependencies
COPY requirements-image.lock ./
RUN /opt/uv/bin/uv pip sync --quiet --no-cache --compile-bytecode --require-hashes requirements-image.lock

# The wheel, installed into a folder that both images lay over their environment.
FROM pipeline-dependencies AS wheel
COPY streams_app streams_app
COPY streams_agent streams_agent
COPY resolver resolver
RUN for part in streams_app streams_agent resolver; do mvn -q -B -ntp -C -f $part/pom.xml package -DskipTests || exit; done
COPY . .
RUN hatchling build --target wheel --directory /wheel \
    && /opt/uv/bin/uv pip install --quiet --no-cache --offline --no-deps --compile-bytecode --prefix /installed \
       /wheel/*.whl

# What the default matrix needs of Kafka, Spark's connector, the scripts of the Data Docs. What Maven resolves lies beside
# what was resolved with it, in a volume.
FROM pipeline-dependencies AS artifacts
COPY --from=wheel /installed .venv
RUN MAVEN_OPTS=-Dmaven.repo.local=/var/lib/onceproof/artifacts/maven onceproof system setup

FROM base AS pipeline
RUN apt-get update \
    && apt-get install -y --no-install-recommends maven \
    && rm -rf /var/lib/apt/lists/*
ENV MAVEN_OPTS=-Dmaven.repo.local=/var/lib/onceproof/artifacts/maven
COPY --from=pipeline-dependencies /opt/onceproof/.venv .venv
COPY --from=artifacts --chown=onceproof:onceproof /var/lib/onceproof/artifacts /var/lib/onceproof/artifacts
COPY --from=wheel /installed .venv
# Health checks run every few seconds, by a file that needs no import of the package.
COPY src/onceproof/pipeline/health.py ./
# An Airflow that is configured elsewhere finds the DAGs in a folder whose name no version of Python changes. And the
# folders on which volumes are mounted: a new volume takes over content and owner.
RUN ln -s .venv/lib/python3.*/site-packages/onceproof/_project/dags dags \
    && install -d -o onceproof -g onceproof /var/lib/onceproof/airflow /var/lib/onceproof/applications \
       /var/lib/onceproof/door /var/lib/onceproof/explorations /var/lib/onceproof/runs
USER 10001:10001

FROM base AS slim
COPY --from=plain-dependencies /opt/onceproof/.venv .venv
COPY --from=wheel /installed .venv
RUN install -d -o onceproof -g onceproof /var/lib/onceproof /work
WORKDIR /work
USER 10001:10001
ENTRYPOINT ["onceproof"]
CMD ["--help"]
