# `make` prints what there is. `make check` is what CI runs.

GO      ?= go
BIN     := $(CURDIR)/bin
JS      := internal/testkit/js
NODES   := rooms/testdata/node
WEB     := web

GOLANGCI_VERSION    := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
GOLANGCI    := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
GOVULNCHECK := $(BIN)/govulncheck-$(GOVULNCHECK_VERSION)
HELM_VERSION        := v3.22.0
CYCLONEDX_VERSION   := v1.10.0
HELM        := $(BIN)/helm-$(HELM_VERSION)
KUBECTL_VALIDATE_VERSION := v0.0.4
KUBECTL_VALIDATE := $(BIN)/kubectl-validate-$(KUBECTL_VALIDATE_VERSION)
CYCLONEDX   := $(BIN)/cyclonedx-gomod-$(CYCLONEDX_VERSION)
CENTRIFUGO_VERSION  := v6.9.1
CENTRIFUGO  := $(BIN)/centrifugo-$(CENTRIFUGO_VERSION)

# Packages to test, and more flags for go test.
PKG   ?= ./...
FLAGS ?=

.DEFAULT_GOAL := help

help: ## Print this
	@echo "Xabar. Quick start: make run"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Run the gateway in demo mode on http://127.0.0.1:3000
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory page; \
	else echo "Without npm the binary has no chat page; everything else works"; fi
	@echo "Building Xabar (the first time takes a minute or two)"
	@$(GO) build -o $(BIN)/xabar ./cmd/xabar && exec $(BIN)/xabar serve

build: ## Build bin/xabar
	$(GO) build -trimpath -o $(BIN)/xabar ./cmd/xabar

test: test-deps test-web ## Run all tests with the race detector (PKG=./chat/... FLAGS='-run X' narrow it)
	$(GO) test -race $(FLAGS) $(PKG)

test-web: $(WEB)/node_modules/.package-lock.json ## Check and test the TypeScript: client library and page
	npm run --silent --prefix $(WEB) check
	npm test --silent --prefix $(WEB)

check: format vet lint generated test vuln ## Everything that CI checks

format: ## Fail if gofmt would change a file
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); \
	if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

lint: $(GOLANGCI) ## golangci-lint, pinned
	$(GOLANGCI) run ./...

generated: ## Fail if generated code or go.mod is not up to date
	$(GO) generate ./...
	$(GO) mod tidy -diff
	@changed=$$(git status --porcelain -- '*_gen.go' '*.gen.go'); \
	if [ -n "$$changed" ]; then echo "go generate changed:"; echo "$$changed"; exit 1; fi

attack: ## Attack the Socket.IO engine for a minute, with the race detector
	ATTACK_TIME=1m $(GO) test -race -count=1 -timeout 5m -v -run '^TestAttack$$' ./gateway/engineio ./gateway/socketio

bench-engine: bench/peers/node-engine/node_modules/.package-lock.json ## Measure the engine beside Node, zishang520's and the bare floor (FLAGS='-rounds 5 -only echo')
	$(GO) run ./bench/engine $(FLAGS)

validate-api: ## Drive every operation and status of the HTTP API against its description
	$(GO) test -count=1 -v -run TestTheServerDoesWhatItsDescriptionSays ./gateway/httpapi/validate

alerts: ## Check the Prometheus alerts and run their tests (needs promtool: Debian's package prometheus)
	@command -v promtool >/dev/null || { echo "promtool is missing: apt-get install prometheus"; exit 1; }
	cd deploy/prometheus && promtool check config prometheus.yml && promtool test rules alerts_test.yml

bench-store: ## Measure the PostgreSQL store against pgbench (starts its own PostgreSQL; ROUNDS=3)
	$(GO) run ./bench/store -rounds $(or $(ROUNDS),3)

bench-nodes: ## Measure what several nodes cost, write docs/benchmarks/nodes.md (FLAGS='-rounds 3 -only cost')
	@mkdir -p docs/benchmarks
	$(GO) run ./bench/nodes -write docs/benchmarks/nodes.md $(FLAGS)

bench: bench/peer-node/node_modules/.package-lock.json $(CENTRIFUGO) ## Measure the gateway beside its peers, write docs/benchmarks.md (BENCH='-rounds 1' and more)
	$(GO) run ./bench/gateway -centrifugo $(CENTRIFUGO) $(BENCH)

soak: ## Break three nodes at random for ten minutes, check what is left (SOAK=1h SEED=N FLAGS='-users 60')
	@mkdir -p $(BIN)
	$(GO) run ./bench/soak -duration $(or $(SOAK),10m) $(if $(SEED),-seed $(SEED)) -report $(BIN)/soak.json $(FLAGS)

validate-deploy: $(if $(QUICK),,$(HELM) $(KUBECTL_VALIDATE)) ## Check the image, compose and the Helm chart with the code that reads them in production (QUICK=1: no chart)
	cd deploy/validate && HELM=$(HELM) KUBECTL_VALIDATE=$(KUBECTL_VALIDATE) $(GO) test -count=1 $(if $(QUICK),,-tags chart) ./...

release: page $(CYCLONEDX) ## Build a release into dist/ (VERSION=v1.2.3; SNAPSHOT=1 for a try)
	@[ -n "$(VERSION)" ] || { echo "Say which: make release VERSION=v1.2.3"; exit 1; }
	$(GO) run ./deploy/release -version $(VERSION) -cyclonedx-gomod $(CYCLONEDX) $(if $(SNAPSHOT),-snapshot)

vuln: $(GOVULNCHECK) ## govulncheck, where its database can be reached
	@.ci/govulncheck $(GOVULNCHECK)

# The tools below bring hundreds of modules; they are kept out of go.mod.
$(GOLANGCI):
	@mkdir -p $(BIN)
	@echo "Building golangci-lint $(GOLANGCI_VERSION), once"
	@GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(BIN)/golangci-lint $@

$(GOVULNCHECK):
	@mkdir -p $(BIN)
	@GOBIN=$(BIN) GOFLAGS= $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@mv $(BIN)/govulncheck $@

$(HELM):
	@mkdir -p $(BIN)
	@echo "Building helm $(HELM_VERSION), once"
	@GOBIN=$(BIN) GOFLAGS= $(GO) install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	@mv $(BIN)/helm $@

$(KUBECTL_VALIDATE):
	@mkdir -p $(BIN)
	@echo "Building kubectl-validate $(KUBECTL_VALIDATE_VERSION), once"
	@GOBIN=$(BIN) GOFLAGS= $(GO) install sigs.k8s.io/kubectl-validate@$(KUBECTL_VALIDATE_VERSION)
	@mv $(BIN)/kubectl-validate $@

$(CYCLONEDX):
	@mkdir -p $(BIN)
	@GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)
	@mv $(BIN)/cyclonedx-gomod $@

# A peer that `make bench` can do without: where it cannot be had, the benchmark says so.
$(CENTRIFUGO):
	@mkdir -p $(BIN)
	@echo "Building Centrifugo $(CENTRIFUGO_VERSION), once"
	@if GOBIN=$(BIN) GOFLAGS= $(GO) install github.com/centrifugal/centrifugo/v6@$(CENTRIFUGO_VERSION); \
	then mv $(BIN)/centrifugo $@; \
	else echo "Centrifugo cannot be built here; going on without it"; fi

test-deps: js-clients page system-deps # what the tests start

js-clients: $(JS)/node_modules/.package-lock.json $(NODES)/node_modules/.package-lock.json ## Install the official Socket.IO clients (and Node servers) for tests

# npm writes this file last: it is there when everything is.
%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	@command -v npm >/dev/null || { echo "The tests need Node 20 or newer with npm."; exit 1; }
	@echo "Installing npm packages in $*"
	@npm ci --prefix $* --no-audit --no-fund --loglevel=error
	@touch $@

page: $(WEB)/dist/index.html ## Build the chat page into the binary's sources

$(WEB)/dist/index.html: $(WEB)/node_modules/.package-lock.json $(shell git ls-files '$(WEB)/app' '$(WEB)/client/src' '$(WEB)/public' '$(WEB)/*.ts' '$(WEB)/*.html' 2>/dev/null)
	@echo "Building the page"
	@npm run --silent --prefix $(WEB) build -- --logLevel warn
	@touch $@

system-deps:
	@.ci/system-deps

clean: ## Remove what was built or installed here
	rm -rf $(BIN) $(JS)/node_modules $(NODES)/node_modules $(WEB)/node_modules $(WEB)/dist bench/peers/*/node_modules

.PHONY: alerts soak bench-nodes bench-store help run build test check format vet lint generated validate-api bench vuln test-web test-deps js-clients page system-deps clean
