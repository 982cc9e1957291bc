# Everything here needs Go and nothing else; `make help` lists it.

GO       ?= go
BIN      ?= bin/chorus
PKG      ?= ./...
FUZZTIME ?= 30s
# A test that hangs is a failure with a stack, and its name is printed last. The longest package takes four minutes on two cores.
TIMEOUT  ?= 10m
# SQLite was C once and keeps its own memory: instrumenting it finds nothing of ours and took more than half of all the time; so do the checks of its
# pointers. What only computes was a fifth of the rest. JSON and YAML read and write our values: without inlining (-l) they do so by functions of
# reflect, which are watched, so that a value that is changed while it is turned into JSON is found (internal/testrun tries it).
UNRACED   = github.com/yuin/goldmark/... mvdan.cc/sh/... golang.org/x/text/... golang.org/x/net/html/... regexp/... compress/... image/... go/...
REFLECTS  = encoding/json github.com/go-json-experiment/... github.com/goccy/go-yaml/... github.com/google/jsonschema-go/...
RACE      = -race -gcflags='modernc.org/...=-race=false -d=checkptr=0' $(foreach library,$(UNRACED),-gcflags='$(library)=-race=false') \
            $(foreach library,$(REFLECTS),-gcflags='$(library)=-race=false -l')
# Where the test that kills the process at random lives, and how many kills.
CHAOS     ?= ./internal/chaos
KILLS     ?= 10000
SOAK      ?= 300
CLUSTER   ?= 2000
# How long generated commands are compared with what bash does with them.
SHELL_FUZZ ?= 10m
# Which of its stories on Discord is played; each number is another one.
SEED      ?= 1
# grpcnotrace leaves out gRPC's trace page, which would come with the OpenTelemetry exporter. Its text/template calls methods by
# name, so that the linker has to keep every exported method of the program: 30 MB. As a variable it also reaches the tests that build.
export GOFLAGS := $(GOFLAGS) -tags=grpcnotrace
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS   = -s -w -X main.version=$(VERSION)
SOURCES   = $(shell git ls-files --cached --others --exclude-standard '*.go')

.DEFAULT_GOAL := help
.PHONY: help run chat build install uninstall release site test race need-rg need-bwrap need-chromium need-postgres check openapi screens fmt bench fuzz fuzz-shell chaos chaos-cluster faults soak workers demo demo-work clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## the server and its web page on 127.0.0.1:8420; opens it in your browser, or prints the link that signs you in (ARGS="--addr 127.0.0.1:9000")
	@$(BIN) serve $(ARGS)

chat: build ## talk to an agent in this repository (ARGS="-m anthropic/claude-sonnet-4-5" for more)
	@$(BIN) chat $(ARGS)

# Process 1 of a sandbox, which becomes a part of bin/chorus: small, because every sandbox that waits for a command has one.
INIT = internal/sandbox/bwrap/built/init-linux-$(shell $(GO) env GOARCH)
.PHONY: sandbox-init
sandbox-init:
	@CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -ldflags '-s -w' -o $(INIT) ./internal/sandbox/bwrap/inside/program

build: sandbox-init ## bin/chorus, one static file
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/chorus

PREFIX ?= $(HOME)/.local
install: build ## into ~/.local (PREFIX=/usr/local for elsewhere): the program, its manual page, completion for bash, zsh and fish
	@mkdir -p $(PREFIX)/bin $(PREFIX)/share/man/man1 $(PREFIX)/share/bash-completion/completions $(PREFIX)/share/zsh/site-functions $(PREFIX)/share/fish/vendor_completions.d
	@cp $(BIN) $(PREFIX)/bin/.chorus.new && mv $(PREFIX)/bin/.chorus.new $(PREFIX)/bin/chorus
	@$(BIN) man >$(PREFIX)/share/man/man1/chorus.1
	@$(BIN) completion bash >$(PREFIX)/share/bash-completion/completions/chorus
	@$(BIN) completion zsh >$(PREFIX)/share/zsh/site-functions/_chorus
	@$(BIN) completion fish >$(PREFIX)/share/fish/vendor_completions.d/chorus.fish
	@echo "Installed $(PREFIX)/bin/chorus."
	@case ":$$PATH:" in *:"$(PREFIX)/bin":*) ;; *) echo 'It is not in your PATH yet. Add it, for this shell and in ~/.profile: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

uninstall: ## take away what make install put there; your home ~/.chorus stays
	@rm -f $(PREFIX)/bin/chorus $(PREFIX)/share/man/man1/chorus.1 $(PREFIX)/share/bash-completion/completions/chorus $(PREFIX)/share/zsh/site-functions/_chorus $(PREFIX)/share/fish/vendor_completions.d/chorus.fish

# The archives of a release, in build/release with their checksums. TARGETS="linux/amd64" makes one of them.
TARGETS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
RELEASE ?= build/release
release: build ## archives for linux and darwin on amd64 and arm64, with checksums.txt, in build/release
	@rm -rf $(RELEASE) && mkdir -p $(RELEASE)
	@$(GO) build -o build/licenses ./internal/licenses
	@set -e; for target in $(TARGETS); do os=$${target%/*}; arch=$${target#*/}; dir=$(RELEASE)/chorus; mkdir -p $$dir; \
		if [ $$os = linux ]; then CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '-s -w' -o internal/sandbox/bwrap/built/init-linux-$$arch ./internal/sandbox/bwrap/inside/program; fi; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$dir/chorus ./cmd/chorus; \
		$(BIN) man >$$dir/chorus.1; for shell in bash zsh fish; do $(BIN) completion $$shell >$$dir/chorus.$$shell; done; \
		cp README.md LICENSE $$dir/; \
		GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 build/licenses ./cmd/chorus >$$dir/THIRD_PARTY_LICENSES; \
		tar -C $(RELEASE) --owner=0 --group=0 -czf $(RELEASE)/chorus-$(VERSION)-$$os-$$arch.tar.gz chorus; rm -rf $$dir; \
		echo "$(RELEASE)/chorus-$(VERSION)-$$os-$$arch.tar.gz"; done
	@cd $(RELEASE) && { sha256sum *.tar.gz 2>/dev/null || shasum -a 256 *.tar.gz; } >checksums.txt && cp $(CURDIR)/install.sh .

site: build ## the guides as web pages, in build/site
	@$(BIN) docs --out build/site

# The race detector needs cgo, also where it is off by default.
test race: export CGO_ENABLED = 1
# What one clone has compiled, another need not: without it the folder of the sources is a part of everything.
test race: export GOFLAGS += -trimpath
# Each process that it watches would sleep for a second at its end, in case a race is still being written: a minute and a half of all the test
# programs alone, and more for the servers that tests start. What was found is written before.
test race: export GORACE := atexit_sleep_ms=0 $(GORACE)
# Most tests wait for others (processes, sockets, timers) for longer than they compute.
PARALLEL ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
# What fails is run once more; what passes then is FLAKY, fails nothing and is listed in build/flaky.txt. go test would vet each package
# again with a part of what make check has vetted.
test: sandbox-init need-rg need-bwrap need-chromium need-postgres ## every test, with the race detector and in random order, and a summary (PKG=./internal/permit for one)
	$(GO) run ./internal/testrun -first internal/testrun/slow.txt $(PKG) -- $(RACE) -vet=off -shuffle=on -parallel $(PARALLEL) -timeout $(TIMEOUT)

race: sandbox-init need-rg need-bwrap ## every story with the race detector in the program too (make test does it with a few of them)
	STORIES_RACE=1 $(GO) test $(RACE) -count=1 -timeout 30m ./cmd/chorus

# What tests need beside Go: a program, its package, and what is skipped without it. Root installs it by apt; with CI=true
# a missing one is a failure. (A kernel that forbids namespaces cannot be installed: those tests skip and say so.)
define need
	@if command -v $(1) >/dev/null; then exit 0; fi; \
	if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "installing $(2)"; \
		(apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q $(2)) >/dev/null </dev/null || true; \
	fi; \
	if command -v $(1) >/dev/null; then exit 0; fi; \
	if [ "$${CI:-}" = true ]; then echo "$(2) is missing and could not be installed; with CI=true nothing is skipped" >&2; exit 1; fi; \
	echo "!!! $(2) ($(1)) is missing: $(3) are SKIPPED. Install it to run them." >&2
endef

need-rg: # search is tested with ripgrep and without; the first half needs it
	$(call need,rg,ripgrep,tests of search with ripgrep)

need-bwrap: # the sandbox is tested by trying to get out of it
ifeq ($(shell uname),Linux)
	$(call need,bwrap,bubblewrap,tests of the sandbox bwrap)
endif

need-postgres: # the store is tested on PostgreSQL too
	$(call need,pg_ctlcluster,postgresql,tests of the store on PostgreSQL)

need-chromium: # the pages are tested in a browser
	$(call need,chromium,chromium,tests of the web pages)
	@# Without windows it takes half of the processor's time; where it cannot be had, the other one does.
	@if [ -x /usr/lib/chromium/chromium-headless-shell ] || command -v chrome-headless-shell >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && apt-cache show chromium-headless-shell >/dev/null 2>&1; then \
		echo "installing chromium-headless-shell"; \
		DEBIAN_FRONTEND=noninteractive timeout 120 apt-get install -y -q chromium-headless-shell >/dev/null 2>&1 </dev/null || true; \
	fi

# As `make build` does it, so that what one has compiled the other need not.
check: export CGO_ENABLED = 0
check: export GOFLAGS += -trimpath
check: ## formatting, vet, staticcheck, go.mod tidy
	@bad=$$(gofmt -l $(SOURCES)); if [ -n "$$bad" ]; then echo "not formatted (make fmt):"; echo "$$bad"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) mod tidy -diff

openapi: ## write docs/openapi.json anew from the code
	@$(GO) test -count=1 -run TestDocumentIsCheckedIn ./internal/transport/http/api -update

screens: build need-chromium ## take the pictures of the pages under testdata/screens anew
	@$(GO) test -count=1 -run 'TestScreens|TestDemoScreens|TestDiscordScreen' ./internal/transport/http/webtest -screens

fmt: ## format every Go file
	@gofmt -w $(SOURCES)

bench: sandbox-init ## measure against the least program that does the same; writes bench/RESULTS.md
	$(GO) run ./bench $(ARGS)

# Go's fuzzing can fail with "context deadline exceeded" when its time is over while a worker is busy, without any input that fails: such a
# target gets one more turn. What fails does not keep the others from running.
fuzz: ## every fuzz target, 30 seconds each (FUZZTIME=5m for longer)
	@mkdir -p build; failed=; for found in $$(git grep -o '^func Fuzz[A-Za-z0-9]*' -- '*_test.go' | sed 's/:func /:/'); do \
		pkg=./$${found%/*}; target=$${found##*:}; echo "--- $$pkg $$target"; \
		again=once; while :; do \
			if $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg >build/fuzz.txt 2>&1; then tail -n 1 build/fuzz.txt; break; fi; \
			if [ $$again = once ] && grep -q 'context deadline exceeded' build/fuzz.txt && ! grep -q 'Failing input' build/fuzz.txt; then again=never; continue; fi; \
			cat build/fuzz.txt; failed="$$failed $$pkg/$$target"; break; \
		done; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

fuzz-shell: ## run generated commands that were allowed, and look whether one does what is denied (SHELL_FUZZ=10m)
	SHELL_FUZZ=$(SHELL_FUZZ) $(GO) test -run 'TestJudgeAndBashAgree|TestJudgeAndProgramsAgree' -count=1 -v -timeout 2h ./internal/permit

chaos: sandbox-init ## kill the program ten thousand times at random moments, and a hundred times while people talk to it on Discord (KILLS=n SEED=n)
	CHORUS_CHAOS=$(KILLS) CHORUS_CHAOS_SEED=$(SEED) $(GO) test -run Chaos -count=1 -v -timeout 12h $(CHAOS)

faults: sandbox-init ## full disks, deleted, cut and flipped database files, lost blobs, a jumping clock and 200 kills, against the real server; ten thousand schedules and event files at once
	CHORUS_FAULTS=1 $(GO) test -run Fault -count=1 -v -timeout 2h $(CHAOS)
	CHORUS_FAULTS=1 $(GO) test -run Many -count=1 -v ./internal/schedule/clock ./internal/eventfile

chaos-cluster: sandbox-init need-postgres ## 2,000 messages to three servers that are killed, frozen, unplugged and cut off, with PostgreSQL and NATS restarted; tells take-over times (CLUSTER=n SEED=n)
	CHORUS_CLUSTER=$(CLUSTER) CHORUS_CHAOS_SEED=$(SEED) $(GO) test -run ChaosCluster -count=1 -v -timeout 3h $(CHAOS)

soak: sandbox-init ## 300 tasks of three projects on six workers, with kills, stops, conflicts and failures (SOAK=n SEED=n)
	CHORUS_SOAK=$(SOAK) CHORUS_CHAOS_SEED=$(SEED) $(GO) test -run SoakWork -count=1 -v -timeout 3h $(CHAOS)

workers: ## the real claude and codex, from npm, against a model that follows a script
	npm install --silent --no-fund --no-audit --prefix build/workers @anthropic-ai/claude-code@2.1.197 @openai/codex@0.169.0
	cd build/workers/node_modules/@anthropic-ai/claude-code && node install.cjs
	CHORUS_REAL_WORKERS=$(CURDIR)/build/workers/node_modules/.bin $(GO) test -run RealPrograms -count=1 -v ./internal/worker/workertest

demo: build ## watch it work for a minute, without a key
	@CHORUS=$(abspath $(BIN)) sh docs/demo.sh

demo-work: build ## three sentences become four tasks that two workers do, without a key; watch it on the page (KEEP=1 leaves the server on)
	@CHORUS=$(abspath $(BIN)) sh docs/demo-work.sh

clean: ## remove what was built
	@rm -rf bin build
