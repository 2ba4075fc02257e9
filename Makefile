# `make` prints this help. Everything a target needs is set up by it, once.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
MVN := mvn -q -B -ntp -C
VENV := .venv
BIN := $(VENV)/bin
JAR := streams_app/target/onceproof-streams-app.jar
RESOLVER := resolver/target/onceproof-resolver.jar
AGENT := streams_agent/target/onceproof-streams-agent.jar
JARS := .onceproof/artifacts/.installed
WORKERS := -n 2 --no-loadscope-reorder --durations=15
UNIT := not spark and not gx and not broker and not system and not browser and not docker and not postgresql \
  and not toxiproxy
PAGES := $(wildcard *.md changes/*.md docs/*.md docs/*/*.md streams_app/*.md)
CODE = $(shell find src spark_jobs expectations dags plugins -name "*.py")
ARGS ?=
REPEAT ?=
SECRETS ?= secrets
RELEASE := dist
PYTHONS ?= 3.11
PLAIN_PYTHON ?= 3.13
PLAIN := .venv-plain
CYCLONEDX_PYTHON := cyclonedx-bom==7.5.0
CYCLONEDX_MAVEN := org.cyclonedx:cyclonedx-maven-plugin:2.9.3:makeBom
export UV_COMPILE_BYTECODE = 1
# A Maven that ends within seconds: to compile its classes better takes longer than that saves.
export MAVEN_OPTS ?= -XX:TieredStopAtLevel=1
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help run test test-night test-repeat up down secrets setup lint lint-github lint-prose format reference test-unit test-plain coverage test-mutants test-java benchmarks lock release clean prerequisites findings docs docs-serve pictures

help: ## Print this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  ARGS="..."        passes options on, for example: make run ARGS="--streams 3.3.1 --streams 3.4.1"'

run: setup ## Run the regression matrix under Airflow and print its verdicts
	@$(BIN)/onceproof run $(ARGS)

test: setup ## Lint, types, and the tests of each change: real brokers, Spark and Airflow included
	@$(BIN)/python -m tests.tools
	@$(MAKE) --no-print-directory -j2 -O lint test-java
	@$(BIN)/pytest $(WORKERS) -m "not night" $(ARGS)

test-night: setup ## All that takes long, step by step; called again, it goes on where it was
	@$(BIN)/python -m tests.tools --night
	@$(BIN)/python -m tests.night $(ARGS)

test-repeat: setup ## `make test` five times beside a load of 4: what failed how often; REPEAT="--times 2 --load 8"
	@$(BIN)/python -m tests.repeat $(REPEAT) -- $(BIN)/pytest $(WORKERS) -m "not night" $(ARGS)

up: setup ## Start Airflow with its pages, to browse, trigger and schedule
	@$(BIN)/onceproof system up $(ARGS)

secrets: ## Generate the secrets of docker-compose.yml; those that exist stay
	@deploy/make-secrets $(SECRETS)

down: ## Stop what `make up` started
	@if [ -x $(BIN)/onceproof ]; then $(BIN)/onceproof system down; else echo "Nothing is set up, so nothing is up."; fi

setup: prerequisites $(VENV)/.installed $(JAR) $(AGENT) $(RESOLVER) $(JARS) ## Set everything up; afterwards the command is .venv/bin/onceproof

lint: $(VENV)/.installed lint-github lint-prose ## Lint, format, types, direction of imports, prose, workflows and forms of GitHub
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo --no-cache > .lint-imports.log || { cat .lint-imports.log; exit 1; }

SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema
lint-github: $(VENV)/.installed
	@$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	@$(SCHEMA) vendor.github-actions action.yml
	@$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))

lint-prose: $(VENV)/.installed
	@$(MAKE) --no-print-directory docs > .lint-docs.log 2>&1 || { cat .lint-docs.log; exit 1; }
	@$(BIN)/mdformat --check $(PAGES)
	@$(BIN)/python docs/prose.py $(filter-out docs/adr/%,$(PAGES)) $(CODE)
	@$(BIN)/codespell $(PAGES) src spark_jobs expectations dags plugins
	@$(BIN)/towncrier build --draft --version next > .lint-changes.log 2>&1 || { cat .lint-changes.log; exit 1; }

format: $(VENV)/.installed ## Format the Python code and the pages
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .
	@$(BIN)/mdformat $(PAGES)

findings: setup ## Check the tests and patches of docs/findings; KAFKA=/path/to/kafka for the columns that need Kafka's sources
	@$(BIN)/python -m docs.check_findings $(ARGS)

reference: $(VENV)/.installed ## Write the pages of docs/ that follow from the code
	@$(BIN)/python docs/generate.py

docs: $(VENV)/.installed ## Build the documentation as a site; warnings and dead links fail
	@$(BIN)/python docs/site.py
	@$(BIN)/zensical build --strict --clean
	@echo "The documentation is in .onceproof/html/index.html."

docs-serve: $(VENV)/.installed ## Serve the documentation on loopback
	@$(BIN)/python docs/site.py
	@$(BIN)/zensical serve $(ARGS)

pictures: $(VENV)/.installed ## Take the documentation's pictures of the run RUN, which has a red cell, or with RUN=atlas of the atlas
	@$(BIN)/python docs/pictures.py $(RUN) $(NAME)

test-unit: $(VENV)/.installed ## The tests that need no JVM and take less than a second each: one to two minutes
	@$(BIN)/pytest -n 2 -m "$(UNIT)" --quick $(ARGS)

test-plain: $(VENV)/.installed ## Tests that need no Airflow and Spark, with a plain install on PLAIN_PYTHON
	@$(BIN)/uv venv --quiet --clear --python $(PLAIN_PYTHON) $(PLAIN)
	@$(BIN)/uv pip install --quiet --python $(PLAIN)/bin/python '.[postgres,parquet]' --group plain
	@$(PLAIN)/bin/python -m pytest -n 2 -m "$(UNIT)" tests/model tests/faults tests/readers tests/advice --ignore tests/advice/test_advise_command.py $(ARGS)

coverage: setup ## The tests that need no broker, in Python and Java, and which lines they do not reach, the least covered first
	@$(BIN)/pytest -n 2 -m "$(UNIT)" --cov --cov-report=term $(ARGS)
	@$(BIN)/python -m tests.java_coverage

test-mutants: $(VENV)/.installed ## Alter the code of verdicts, mutant by mutant, and see that a test fails; goes on where it was
	@$(BIN)/python -m tests.mutants --survivors $(ARGS)

test-java: prerequisites $(VENV)/.installed ## The application's topology tests, on its oldest and newest Kafka Streams
	@for release in 3.0.0 $$($(BIN)/python -m tests.published); do rm -rf streams_app/target/surefire-reports; \
	  $(MVN) -f streams_app/pom.xml test -Dkafka.version=$$release && $(BIN)/python -m tests.skips $$release || exit $$?; done

benchmarks: setup ## Measure the figures of docs/figures.md, each beside its peer
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file $(ARGS) || exit $$?; done

lock: $(VENV)/.installed ## Resolve the Python environment anew from pyproject.toml
	@$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --generate-hashes --no-header --all-extras --group dev \
	  pyproject.toml --output-file requirements.lock
	@$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --all-extras --group deploy \
	  --constraint requirements.lock pyproject.toml --output-file requirements-image.lock
	@$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header \
	  --constraint requirements.lock pyproject.toml --output-file requirements-plain.lock

release: setup ## Build sdist, wheel, SBOMs and checksums into dist/, and test the installed wheel outside of here
	@rm -rf $(RELEASE)
	@echo "Building the sdist, and the wheel from it"
	@$(BIN)/uv build --quiet --out-dir $(RELEASE)
	@$(BIN)/uv tool run --quiet --from $(CYCLONEDX_PYTHON) cyclonedx-py requirements requirements-image.lock \
	  --pyproject pyproject.toml --output-reproducible --output-file $(RELEASE)/onceproof.cdx.json
	@for part in streams_app streams_agent resolver; do \
	  $(MVN) -f $$part/pom.xml $(CYCLONEDX_MAVEN) -DoutputFormat=json -DoutputName=$$part.cdx \
	    -DoutputDirectory=$(CURDIR)/$(RELEASE) || exit $$?; done
	@rm -f $(RELEASE)/.gitignore
	@cd $(RELEASE) && sha256sum * > SHA256SUMS
	@ONCEPROOF_TEST_WHEEL=$$(ls $(CURDIR)/$(RELEASE)/*.whl) ONCEPROOF_TEST_PYTHONS=$(PYTHONS) \
	  $(BIN)/pytest -q tests/test_installed.py
	@cat $(RELEASE)/SHA256SUMS

clean: down ## Remove what was set up and built; the runs stay
	@rm -rf $(VENV) .onceproof/artifacts .onceproof/airflow streams_app/target streams_agent/target resolver/target

prerequisites:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 is missing: install it, or name it with make PYTHON=/path/to/python3.11." >&2; exit 2; }
	@javac -version 2>/dev/null | awk '{ split($$2, v, "."); ok = (v[1] + 0 >= 17) } END { exit !ok }' \
	  || { echo "A JDK 17 or later is missing: install one and put its bin folder on the PATH." >&2; exit 2; }
	@command -v mvn >/dev/null \
	  || { echo "Maven is missing: install Maven 3.8 or later and put its bin folder on the PATH." >&2; exit 2; }

$(VENV)/.installed: requirements.lock requirements-uv.lock
	@echo "Setting up the Python environment: 2 GB of packages, minutes on the first time"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-uv.lock
	@$(BIN)/uv pip sync --quiet --require-hashes requirements.lock requirements-uv.lock
	@$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(JAR): streams_app/pom.xml $(shell find streams_app/src/main -type f)
	@echo "Building the application under test"
	@$(MVN) -f streams_app/pom.xml package -DskipTests
	@touch $@

$(AGENT): streams_agent/pom.xml $(shell find streams_agent/src/main -type f)
	@echo "Building the agent that plants bugs"
	@$(MVN) -f streams_agent/pom.xml package
	@touch $@

$(RESOLVER): resolver/pom.xml $(shell find resolver/src/main -type f)
	@echo "Building the resolver for machines without Maven"
	@$(MVN) -f resolver/pom.xml package
	@touch $@

$(JARS): $(VENV)/.installed $(wildcard spark_jobs/connector.* expectations/vendor.*)
	@echo "Resolving Kafka releases and Spark's connector"
	@$(BIN)/onceproof system setup
	@echo "Set up. Try it: $(BIN)/onceproof demo"
	@touch $@
