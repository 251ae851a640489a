# Berth: build, demonstrate, test, check. `make help` lists the targets.

# Our own version; Kubernetes' comes from go.mod, so that a binary can never claim another one than it was built from.
VERSION := 0.1.0
KUBE_VERSION := $(shell sed -n 's,^\tk8s.io/kubernetes \(v[0-9.]*\)$$,\1,p' go.mod)
KUBE_MAJOR := $(word 1,$(subst ., ,$(KUBE_VERSION:v%=%)))
KUBE_MINOR := $(word 2,$(subst ., ,$(KUBE_VERSION:v%=%)))

# Date and commit come from git, not from the clock: the same commit gives the same binary.
GIT_COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
GIT_TREE_STATE := $(shell test -z "$$(git status --porcelain 2>/dev/null)" && echo clean || echo dirty)
BUILD_DATE := $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo 1970-01-01T00:00:00Z)

# component-base is what --version, the metrics and NodeDeclaredFeatures read; client-go is the user agent.
STAMP = -X $(1).gitVersion=$(KUBE_VERSION)-berth.$(VERSION) -X $(1).gitMajor=$(KUBE_MAJOR) -X $(1).gitMinor=$(KUBE_MINOR) \
	-X $(1).gitCommit=$(GIT_COMMIT) -X $(1).gitTreeState=$(GIT_TREE_STATE) -X $(1).buildDate=$(BUILD_DATE)
LDFLAGS := -s -w $(call STAMP,k8s.io/component-base/version) $(call STAMP,k8s.io/client-go/pkg/version)

# Everything but the race detector is built without cgo, for static binaries and so that build, vet and lint share one
# build cache. The stamp above replaces the toolchain's own record of the commit.
export CGO_ENABLED := 0
GOFLAGS ?=
export GOFLAGS := $(filter-out -buildvcs=%,$(GOFLAGS)) -buildvcs=false

GOLANGCI_LINT := go tool -modfile=hack/tools/golangci-lint/go.mod golangci-lint

# The rooms of the tests that need more than Go: control planes of their own, tools, a browser.
REAL := ./test/integration/... ./test/release
# The packages that make test tests, and further flags, for example: make test PKG=./pkg/gpu/... TESTFLAGS='-run Fuzz -v'. Those without
# tests are left out: go test would compile them all the same. The slow ones come first, or the others would be done long before them.
SLOW := ./test/scenarios ./test/plugins ./pkg/plugins/coscheduling ./pkg/plugins/gpuaware
PKG ?= $(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(SLOW) ./... | grep -v -E '/test/(integration|release)')
TESTFLAGS ?=

.DEFAULT_GOAL := build
.PHONY: help build demo run install uninstall test test-real lint generate verify histories bench-guard fuzz mutants chaos image dist clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

# Where the binaries go.
BIN ?= bin

# For example: make build COMMANDS=scheduler
COMMANDS ?= scheduler node-agent extender berth
build: $(COMMANDS:%=build-%) ## berth-scheduler, berth, berth-node-agent and berth-extender in bin, static and stripped; COMMANDS for some

# A third of the CPU time of compiling is the compiler's garbage collection. Without it the largest package takes 0.8 GB
# instead of 0.5, and the binaries are the same.
GO_BUILD = GOGC=off GOMEMLIMIT=1GiB go build -ldflags '$(LDFLAGS)'

# go build shows nothing while it compiles. So $(call first_build,BINARY,PACKAGE,CPU SECONDS) says how long that takes if the
# module cache or the build cache lacks the package, which is one of the last. A binary newer than go.mod was built before.
first_build = test $(BIN)/$(1) -nt go.mod || ! go build -n $(2) 2>&1 | grep -qE '^go: downloading|/compile ' || \
	echo "  the first build compiles Kubernetes: about $$(( ($(3) / $$(nproc) + 59) / 60 )) min on $$(nproc) cores"

build-berth: FIRST_BUILD = $(call first_build,berth,k8s.io/kubernetes/cmd/kube-controller-manager/app,260)
build-scheduler: FIRST_BUILD = $(call first_build,berth-scheduler,k8s.io/kubernetes/cmd/kube-scheduler/app,420)
build-%: BINARY = $(BIN)/$(if $(filter berth,$*),berth,berth-$*)
build-%:
	@echo building $(BINARY) $(KUBE_VERSION)-berth.$(VERSION)
	@$(FIRST_BUILD)
	@$(GO_BUILD) -o $(BINARY) ./cmd/$*

# What tests run besides our own commands. The kubectl is that of the Kubernetes that we build against, and helm the pinned one.
FORCE:
$(BIN)/tools/kubectl: FORCE
	@go build -ldflags '-s -w' -o $@ k8s.io/kubernetes/cmd/kubectl
$(BIN)/tools/helm: FORCE
	@go build -ldflags '-s -w' -modfile=hack/tools/helm/go.mod -o $@ helm.sh/helm/v4/cmd/helm

# The texts of the licenses of what COMMAND links: MIT, BSD and Apache ask for them beside a binary.
$(BIN)/THIRD_PARTY_LICENSES: FORCE
	@hack/licenses.sh $(COMMAND) >$@

# For example: make image COMMAND=extender IMAGE=you/berth-extender BUILDER=podman GO_IMAGE=you/golang:1.26 IMAGE_FLAGS='--platform linux/arm64'
COMMAND ?= scheduler
IMAGE ?=
BUILDER ?=
IMAGE_FLAGS ?=
image: ## the image of the scheduler, or of another COMMAND: extender, node-agent; with docker, podman or buildah
	VERSION=$(VERSION) COMMIT=$(GIT_COMMIT) TREE_STATE=$(GIT_TREE_STATE) BUILD_DATE=$(BUILD_DATE) BUILDER=$(BUILDER) GO_IMAGE=$(GO_IMAGE) \
		GLIBC_IMAGE=$(GLIBC_IMAGE) hack/image.sh $(or $(IMAGE),berth-$(COMMAND):$(VERSION)) --target $(COMMAND) --build-arg COMMAND=$(COMMAND) $(IMAGE_FLAGS)

# For example: make dist ARCHITECTURES=amd64 REGISTRY=ghcr.io/you IMAGE=ghcr.io/you/berth-scheduler@sha256:...
# RELEASE_URL is where the files will be, REGISTRY where the images are, IMAGE the one of the scheduler that install.yaml names.
ARCHITECTURES ?= amd64 arm64
REGISTRY ?=
RELEASE_URL ?= https://berth.dev/releases/v$(VERSION)
DIST = VERSION=$(VERSION) COMMIT=$(GIT_COMMIT) TREE_STATE=$(GIT_TREE_STATE) BUILD_DATE=$(BUILD_DATE) LDFLAGS='$(LDFLAGS)' ARCHITECTURES='$(ARCHITECTURES)' \
	REGISTRY=$(REGISTRY) RELEASE_URL=$(RELEASE_URL) IMAGE=$(or $(IMAGE),$(if $(REGISTRY),$(REGISTRY)/)berth-scheduler:$(VERSION)) hack/dist.sh
dist: ## what a release consists of besides images, in dist/: archives, chart, installers, checksums; VERIFY=1 builds all twice
	@$(DIST) dist
ifneq ($(VERIFY),)
	@# The second build has an empty cache of its own, so it compiles everything again.
	rm -rf .berth/verify-dist
	git clone -q . .berth/verify-dist
	GOCACHE=$(CURDIR)/.berth/verify-cache $(MAKE) -C .berth/verify-dist dist VERIFY=
	diff -r dist .berth/verify-dist/dist
endif

# The demo runs these two only, so that a fresh clone gets to it sooner.
demo: build-scheduler build-berth ## a local cluster of 40 GPU nodes and workloads on it; KEEP=1 leaves it up
	bin/berth demo $(if $(filter-out 0,$(KEEP)),--keep)

# It leads by the lease of an installed one, so that the two take turns and never schedule at once.
run: build-scheduler ## the scheduler on this machine, for the cluster of your kubeconfig
	@mkdir -p .berth
	@kubectl config view --raw --minify --flatten >.berth/run-kubeconfig && chmod 600 .berth/run-kubeconfig
	@sed 's,^clientConnection:$$,&\n  kubeconfig: .berth/run-kubeconfig,' manifests/base/scheduler-config.yaml >.berth/run.yaml
	$(BIN)/berth-scheduler --config .berth/run.yaml --authentication-kubeconfig .berth/run-kubeconfig --authorization-kubeconfig .berth/run-kubeconfig

install: ## the CRDs, the rights and the scheduler in the cluster of your kubeconfig; IMAGE is that of the scheduler
	kubectl apply --server-side -k manifests/crd
	kubectl kustomize manifests/base | sed 's,image: berth-scheduler:.*,image: $(or $(IMAGE),berth-scheduler:$(VERSION)),' | kubectl apply -f -

# Deleting the CRDs would delete every PodGroup of the cluster.
uninstall: ## what install made, but for the CRDs
	kubectl delete --ignore-not-found -k manifests/base

# RACE=1 needs a C compiler, because the race detector is a C library. go vet is part of `make lint`: here it would look at all of
# Kubernetes again for the race detector. Debugging information would take four tenths of the time to link. A heap that may grow to
# five times what is in use, within limits, saves a tenth of what the tests compute; the race detector needs that memory itself.
RACE ?=
GO_TEST = CGO_ENABLED=$(if $(RACE),1,0) $(if $(RACE),,GOGC=400 GOMEMLIMIT=2GiB) go test $(if $(RACE),-race) -vet=off -ldflags='-s -w' -shuffle=on -timeout 30m
test: build-berth build-scheduler ## all tests that need nothing but Go, and the demo on a real control plane; RACE=1 adds the race detector
	@echo testing
	@$(GO_TEST) $(TESTFLAGS) $(PKG)

test-real: build $(BIN)/tools/kubectl $(BIN)/tools/helm ## the tests on real control planes, with Prometheus, a browser, images, the chart, kubectl and helm
	@hack/test-real-needs.sh
	@$(GO_TEST) $(TESTFLAGS) $(REAL)
	@$(GO_TEST) $(TESTFLAGS) ./test/scenarios -world=real

lint: ## golangci-lint with the rules of .golangci.yml
	$(GOLANGCI_LINT) run ./...

generate: ## deepcopy functions, the CRDs, the static pod's configuration, the chart's copies, the reference of arguments, the list of licenses
	hack/generate.sh

verify: build ## modules, generated files, and what the binaries say of themselves
	EXPECTED_VERSION=$(KUBE_VERSION)-berth.$(VERSION) hack/verify.sh

# For example: make histories SEEDS=1-2000
SEEDS ?= 1-500
histories: ## random histories of a cluster, in which the scheduler has to keep its promises
	go run ./test/histories --seeds $(SEEDS)

# For example: make bench-guard GUARDFLAGS='gangs start --update', or GUARDFLAGS=--help
GUARDFLAGS ?=
bench-guard: ## what scheduling costs against stock, and packing; fails if a figure is worse than hack/bench/guard/figures.yaml allows
	go run -ldflags='-s -w' ./hack/bench run --guard $(GUARDFLAGS)

# For example: make fuzz FUZZTIME=5m FUZZ=gpuview. Inputs that reach new code stay in the build cache and are where the next run goes on;
# one that fails is written to testdata/fuzz, and is a test from then on.
FUZZTIME ?= 10s
FUZZ ?=
fuzz: ## each fuzz target for FUZZTIME, in turn; FUZZ is a part of a package or name for some
	hack/fuzz.sh $(FUZZTIME) $(FUZZ)

# For example: make mutants MUTANTS=tests, or make mutants SEEDS=1-200 MUTANTS="gpuaware sticky-leader". Without MUTANTS it takes hours.
MUTANTS ?=
mutants: ## put defects into the code one by one, and see whether tests and histories find them
	hack/mutants.sh --seeds $(SEEDS) $(MUTANTS)

# For example: make chaos CHAOSFLAGS='--only "etcd killed" --times 3'. The full run takes half an hour.
CHAOSFLAGS ?=
chaos: build ## kill, cut, freeze, slow and fill a local cluster under load, and check what is left
	go run ./hack/chaos $(CHAOSFLAGS)

clean: ## remove what make and berth made here
	rm -rf bin dist .berth
