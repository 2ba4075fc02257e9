# One image for all services of docker-compose.yml: Airflow with the DAGs and the page, Spark, Great Expectations, the lab.
# Nothing is resolved when a container starts: Python comes from a lock with hashes, Kafka and the jars lie in the image.

# By digest, if the same base is wanted for ever: --build-arg BASE=debian:bookworm-slim@sha256:...
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates maven openjdk-17-jre-headless python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --home-dir /var/lib/onceproof --shell /usr/sbin/nologin onceproof
# What Maven resolves lies beside what was resolved with it, in a volume.
ENV PATH=/opt/onceproof/.venv/bin:$PATH \
    ONCEPROOF_HOME=/var/lib/onceproof \
    MAVEN_OPTS=-Dmaven.repo.local=/var/lib/onceproof/artifacts/maven
WORKDIR /opt/onceproof

# Changes with the locks alone.
FROM base AS dependencies
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jdk-headless python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY requirements-uv.lock requirements-image.lock ./
RUN python3 -m venv /opt/uv \
    && /opt/uv/bin/pip install --quiet --no-cache-dir --require-hashes -r requirements-uv.lock \
    && python3 -m venv .venv \
    && VIRTUAL_ENV=/opt/onceproof/.venv /opt/uv/bin/uv pip sync --quiet --no-cache --compile-bytecode --require-hashes \
       requirements-image.lock

# The application under test, and the agent that plants bugs in it.
FROM dependencies AS jars
COPY streams_app streams_app
COPY streams_agent streams_agent
RUN export MAVEN_OPTS='' \
    && mvn -q -B -ntp -f streams_app/pom.xml package -DskipTests \
    && mvn -q -B -ntp -f streams_agent/pom.xml package -DskipTests

# What the default matrix needs of Kafka, Spark's connector, the scripts of the Data Docs.
FROM dependencies AS artifacts
COPY expectations/vendor.pom.xml expectations/
COPY spark_jobs/connector.pom.xml spark_jobs/
COPY src src
RUN PYTHONPATH=src python -m onceproof.cli setup

FROM base
COPY --from=dependencies /opt/onceproof/.venv .venv
COPY --from=artifacts --chown=onceproof:onceproof /var/lib/onceproof/artifacts /var/lib/onceproof/artifacts
COPY --from=jars /opt/onceproof/streams_app/target/onceproof-*.jar streams_app/target/
COPY --from=jars /opt/onceproof/streams_agent/target/onceproof-*.jar streams_agent/target/
COPY . .
# The folders on which volumes are mounted: a new volume takes over content and owner.
RUN pip install --quiet --no-cache-dir --no-index --no-deps --no-build-isolation --editable . \
    && python -m compileall -q src spark_jobs expectations dags plugins \
    && install -d -o onceproof -g onceproof /var/lib/onceproof/airflow /var/lib/onceproof/applications \
       /var/lib/onceproof/explorations /var/lib/onceproof/runs
USER 10001:10001
