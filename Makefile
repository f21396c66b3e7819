# SPDX-License-Identifier: GPL-2.0-or-later
#
# virtio-rdma: "make help" lists the commands.

-include config.mk

BUILDDIR := $(or $(BUILDDIR),$(CURDIR)/build)
PREFIX := $(or $(PREFIX),/usr/local)
# Debian's Python, for which the packages of packages.list are installed
PYTHON ?= /usr/bin/python3
JOBS ?=
# PACKAGES=no: do not look for missing Debian packages
PACKAGES ?=

# QEMU_SRC, if set, selects its series.
DEFAULT_SERIES := 10.0
KNOWN_SERIES := $(shell cat qemu/series)
$(if $(QEMU_SRC),$(if $(wildcard $(QEMU_SRC)/VERSION),,$(error QEMU_SRC is \
	$(QEMU_SRC), which has no file VERSION: expected a source tree of QEMU)))
SRC_SERIES := $(if $(QEMU_SRC),$(shell cut -d. -f1,2 $(QEMU_SRC)/VERSION))
QEMU_SERIES := $(or $(QEMU_SERIES),$(SRC_SERIES),$(DEFAULT_SERIES))
ifeq ($(filter $(QEMU_SERIES),$(KNOWN_SERIES)),)
$(error QEMU $(QEMU_SERIES) is not a known series; \
	expected one of: $(KNOWN_SERIES))
endif
ifneq ($(QEMU_SERIES),$(or $(SRC_SERIES),$(QEMU_SERIES)))
$(error QEMU_SERIES is $(QEMU_SERIES), but $(QEMU_SRC) is QEMU $(SRC_SERIES): \
	set one of them only)
endif

# All variants of the build with one series share fetched sources and the tree
# laid over QEMU's. Each variant has its own directory of compiled files.
B := $(abspath $(BUILDDIR))
series_dir = $(B)$(patsubst %,-%,$(filter-out $(DEFAULT_SERIES),$(1)))
SERIES_DIRS := $(foreach series,$(KNOWN_SERIES),$(call series_dir,$(series)))
S_DIR := $(call series_dir,$(QEMU_SERIES))
V_DIR := $(S_DIR)$(if $(ASAN),-asan)
LOGS := $(V_DIR)/logs
SERIES_QEMUS := $(SERIES_DIRS:%=%$(if $(ASAN),-asan)/qemu/qemu-system-x86_64)
FETCHED_QEMU := $(S_DIR)/src/qemu
QEMU_TREE := $(or $(QEMU_SRC),$(FETCHED_QEMU))
QEMU := $(V_DIR)/qemu/qemu-system-x86_64
QEMU_AARCH64 := $(V_DIR)/qemu-aarch64/qemu-system-aarch64

STAGE := scripts/stage $(LOGS)
FETCH := $(PYTHON) scripts/fetch.py --work $(B)/download
SUMMARY := $(PYTHON) scripts/summary.py $(LOGS)
RUN_TESTS := $(PYTHON) scripts/run-tests.py --timeout 600 \
	$(if $(JOBS),--jobs $(JOBS))
# Treat warnings as errors only with the compiler of the developers, because a
# newer compiler may have more warnings.
WERROR ?= $(if $(filter 12,$(shell $(CC) -dumpversion 2>/dev/null)),1)
comma := ,
STANDALONE_OPTIONS := \
	$(if $(ASAN),-Db_sanitize=address$(comma)undefined -Db_lundef=false)
FUZZ_TIME ?= 60
# Names of fuzzers; empty: all
TARGETS ?=

# Suites of "make check" and parts of "make bench". A suite in REPORTS prints a
# table, and succeeds or fails; it counts no results.
DEFAULT_SUITES := unit qtest guest
REPORTS := interop pyverbs soak
KNOWN_SUITES := $(DEFAULT_SUITES) migration threads series newer-kernel \
	kernels arm64 kernel-users applications hosts libvirt vmm vmm-10.2 \
	vmm-testing faults images monitors providers pvrdma vrdma-lab \
	containers layouts verbs scale packages ci-jobs $(REPORTS)
KNOWN_BENCHES := engine instructions turns qps qp-memory query guests \
	applications pvrdma vmm migration verbs verbs-mr

# NAME LIST: stop if the variable NAME has a word that is not in LIST
only = $(if $(filter-out $(2),$($(1))),$(error $(1)="$($(1))": \
	"$(firstword $(filter-out $(2),$($(1))))" is unknown; \
	choose from: $(2)))
$(call only,SUITE,$(KNOWN_SUITES))
$(call only,BENCH,$(KNOWN_BENCHES))
ifeq ($(origin SUITES),command line)
$(error SUITES="$(SUITES)" is unknown: SUITE= names suites of tests, RELEASES= \
	releases of Debian)
endif

SUITES_TO_RUN := $(or $(SUITE),$(DEFAULT_SUITES))
NEEDS := $(KNOWN_SUITES:%=needs-%)
ALIASES := $(KNOWN_SUITES:%=check-%)

.DEFAULT_GOAL := all
.PHONY: all demo lab check bench check-fresh $(NEEDS) $(ALIASES) interop soak \
	$(KNOWN_BENCHES:%=bench-%) \
	tsan-qemu series-qemus stock-qemu stock-qemu-10.2 unit-tests qtests \
	qtest qemu qemu-arm64 guest uml standalone fuzz fuzz-engine \
	fuzz-device coverage mutate lint docs graph install packages \
	package-parts \
	packages-build packages-coverage packages-packages packages-guest \
	packages-test packages-lint packages-docs packages-arm64 \
	packages-images packages-monitors packages-bench \
	clean distclean help

all: qemu standalone

# Print words in indented lines of at most 80 columns.
fill = echo '$(1)' | fmt -w 75 | sed 's/^/     /'

help:
	@echo 'make              build QEMU with virtio-rdma, and the engine'
	@echo 'make demo         compare virtio-rdma, rxe and TCP in two guests'
	@echo 'make lab          build what tools/lab/vrdma-lab needs'
	@echo 'make check        test engine, device and guests; SUITE="...":'
	@$(call fill,$(KNOWN_SUITES))
	@echo 'make qtest        build and run one program of device tests, or a part:'
	@echo '     TEST=virtio-rdma-test/qp/'
	@echo 'make bench        measure the engine, as ratios; BENCH="...":'
	@$(call fill,$(KNOWN_BENCHES))
	@echo 'make fuzz         run all fuzzers (TARGETS="...", FUZZ_TIME=seconds)'
	@echo 'make lint         check style and direction of calls'
	@echo 'make packages     build Debian packages of all programs and drivers'
	@echo 'make install      install QEMU, server and exporter in $(PREFIX)'
	@echo 'make check-fresh  run demo and tests on fresh Debian 12, 13 (root)'
	@echo 'make clean        remove compiled files'
	@echo 'Other commands, and variables: docs/devel/virtio-rdma-make.rst'

# Packages ------------------------------------------------------------------

packages-build packages-coverage packages-guest packages-test \
		packages-lint packages-docs packages-packages packages-arm64 \
		packages-images packages-monitors packages-bench: packages-%:
ifneq ($(PACKAGES),no)
	@scripts/setup-packages.sh --check $* || \
		$(STAGE) packages-$* 'packages are installed' \
		scripts/setup-packages.sh $*
endif

# Sources and tools ---------------------------------------------------------

export B S_DIR V_DIR QEMU_TREE QEMU_SERIES
export SOURCE_CACHE PREFIX ASAN PYTHON JOBS WERROR QEMU QEMU_AARCH64 LEAVE_OUT
export RELEASES COMMANDS PACKAGES KEEP
export BUILD_DIR := $(B)

$(B)/tools/meson.py: | packages-build
	@$(STAGE) meson 'meson is ready' \
		scripts/setup-meson.sh $(B)/tools $(B)/download

$(FETCHED_QEMU)/VERSION: | packages-build
	@$(STAGE) source 'QEMU is unpacked' \
		$(FETCH) source qemu $(QEMU_SERIES) $(FETCHED_QEMU)

# Builds --------------------------------------------------------------------

qemu: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | packages-build packages-guest
	@$(STAGE) qemu 'QEMU is built' \
		scripts/build-qemu.sh qemu-system-x86_64

qemu-arm64: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-guest packages-arm64
	@TARGET=aarch64 $(STAGE) qemu-arm64 'QEMU for arm64 guests is built' \
		scripts/build-qemu.sh qemu-system-aarch64

qtests: qemu
	@$(STAGE) qtests 'device tests are built' scripts/build-qemu.sh \
		$$($(RUN_TESTS) $(V_DIR)/qemu $(QTESTS) --list)

standalone: $(B)/tools/meson.py | packages-build
	@$(STAGE) standalone 'engine, tests and benchmarks are built' \
		scripts/build-standalone.sh $(V_DIR)/standalone '' \
		$(STANDALONE_OPTIONS)

unit-tests: $(B)/tools/meson.py | packages-build packages-lint
	@$(STAGE) unit-tests 'engine and unit tests are built' \
		scripts/build-standalone.sh $(V_DIR)/standalone \
		meson-test-prereq $(STANDALONE_OPTIONS)

guest: | packages-build packages-guest
	@$(STAGE) guest-side 'guest side is built' tools/lab/setup-guest \
		$(if $(ADAPTER),--adapter $(ADAPTER)) $(SERIES)

uml: | packages-guest
	@$(STAGE) uml 'User-mode Linux is ready' tests/guest/run uml $(SERIES)

install: qemu
	@scripts/build-qemu.sh trace/trace-events-all > /dev/null
	@$(STAGE) install 'installed in $(PREFIX)' \
		$(PYTHON) $(B)/tools/meson.py install -C $(V_DIR)/qemu --no-rebuild \
		--skip-subprojects
	@install -D -t $(DESTDIR)$(PREFIX)/bin tools/server/virtio-rdma-server \
		tools/exporter/vrdma-exporter
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 \
		tools/server/virtio-rdma-server.1 tools/exporter/vrdma-exporter.1
	@install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/virtio-rdma \
		tools/exporter/dashboard.json

packages: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-guest packages-packages
	@$(STAGE) packages 'packages are in $(B)/packages' \
		scripts/build-packages.sh
	@ls $(B)/packages/*.deb $(B)/packages/*/*.deb 2> /dev/null; \
		cat $(B)/packages/left-out

# For debian/rules
package-parts: $(B)/tools/meson.py $(QEMU_TREE)/VERSION
	@PACKAGE=$$(cat VERSION) ASAN= V_DIR=$(B) PREFIX=/usr \
		scripts/build-qemu.sh qemu-system-x86_64
	@RDMA_CORE= PACKAGE=1 guest/rdma-core/build.sh $(B)/packages/provider \
		$(B)/packages/rdma-core
	@[ ! -d $(B)/packages/rdma-core-abi65/source ] || RDMA_CORE=65 \
		PACKAGE=1 guest/rdma-core/build.sh \
		$(B)/packages/provider-abi65 $(B)/packages/rdma-core-abi65

# Tests ---------------------------------------------------------------------

QTESTS := --select 'rdma|net-roce'
# A test and its QEMU wait for each other, so run two for each processor.
QTEST_SHARES := --share 20 $(if $(JOBS),,--jobs $$((2 * $$(nproc))))

run-unit:
	@$(STAGE) unit 'unit tests are done' \
		$(RUN_TESTS) $(V_DIR)/standalone

# LEAVE_OUT=... builds QEMU without these patches or kinds of patches. Without a
# patch, the tests that it names cannot pass.
TESTS_LEFT_OUT = $(if $(LEAVE_OUT),$(shell $(PYTHON) qemu/overlay.py \
	--list-tests --series $(QEMU_SERIES) --leave-out '$(LEAVE_OUT)'))

run-qtest:
	@$(STAGE) qtest 'device tests are done' \
		$(RUN_TESTS) $(V_DIR)/qemu $(QTESTS) $(QTEST_SHARES) \
		$(if $(TESTS_LEFT_OUT),--but '$(TESTS_LEFT_OUT)') \
		$(if $(SLOW),--slow)

# One program of tests/qtest, or its tests whose path has what follows the
# slash: TEST=virtio-rdma-test/ctrl/every-command
KNOWN_TESTS := $(patsubst tests/qtest/%.c,%,$(wildcard tests/qtest/*-test.c))
TEST_PROGRAM = $(firstword $(subst /, ,$(TEST)))
TEST_PATHS = $(patsubst $(TEST_PROGRAM)/%,%,$(filter $(TEST_PROGRAM)/%,$(TEST)))
ifneq ($(filter qtest,$(MAKECMDGOALS)),)
ifeq ($(filter $(KNOWN_TESTS),$(TEST_PROGRAM)),)
$(error TEST="$(TEST)" names no program of tests/qtest; choose from: \
	$(KNOWN_TESTS))
endif
endif

qtest: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-guest packages-test
	@$(STAGE) qtest-build 'QEMU and $(TEST_PROGRAM) are built' \
		scripts/build-qemu.sh qemu-system-x86_64 \
		tests/qtest/$(TEST_PROGRAM)
	@$(STAGE) one-qtest! '$(TEST) is done' \
		$(RUN_TESTS) $(V_DIR)/qemu --select '^$(TEST_PROGRAM)$$' \
		$(if $(TEST_PATHS),--paths '/$(TEST_PATHS)') $(QTEST_SHARES)

# Numbers of rounds of traffic, and of mutants of a snapshot. Without them,
# tests do a few.
LONG_MIGRATION := MIGRATE_POINTS=$${MIGRATE_POINTS:-300} \
	MIGRATE_PROCESSES=$${MIGRATE_PROCESSES:-40} \
	MIGRATE_MUTANTS=$${MIGRATE_MUTANTS:-1000} \
	MIGRATE_LOSSY=$${MIGRATE_LOSSY:-16}

run-migration:
	@$(LONG_MIGRATION) $(STAGE) migration 'migration tests are done' \
		$(RUN_TESTS) $(V_DIR)/qemu --select 'rdma.*migration' \
		--timeout 900

run-guest-migration:
	@MOVES=$${MOVES:-3} $(STAGE) guest-migration! 'guests have migrated' \
		tests/guest/run check 'guest/migration'

# The device's two other guest ABIs
run-qtest-layouts:
	@$(STAGE) qtest-layouts 'device tests are done' \
		$(RUN_TESTS) $(V_DIR)/qemu $(QTESTS) \
		--paths '/demo/|net-roce' --slow

run-guest:
	@$(STAGE) guest! 'guest tests are done' \
		tests/guest/run check $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(SERIES),--series $(SERIES)) $(if $(SLOW),--slow)

# Guest tests that take too long for CI
run-users run-newer run-applications run-hosts run-libvirt run-vmm run-arm64 \
		run-faults run-images run-monitors run-providers run-pvrdma \
		run-vrdma-lab run-verbs run-containers run-layouts: run-%:
	@$(STAGE) $*! 'guest tests are done' \
		tests/guest/run check --suite $*

# The same with the sources of a distribution's QEMU that has no packages here
STOCK_QEMU := $(call series_dir,10.2)/qemu-stock/qemu-system-x86_64

run-vmm-10.2:
	@STOCK_QEMU=$(STOCK_QEMU) $(STAGE) vmm-10.2! 'guest tests are done' \
		tests/guest/run check --suite vmm 'guest/(?!vhost_user)'

run-vmm-testing:
	@CLIENT_SUITES=testing $(STAGE) vmm-testing! 'guest tests are done' \
		tests/guest/run check --suite vmm 'guest/(?!vhost_user)'

run-scale:
	@FULL=1 $(STAGE) scale! 'guest tests are done' \
		tests/guest/run check 'guest/(scale|variants: writes)'

# Migrate between QEMUs of all series, oldest first.
run-series:
	@QEMUS='$(SERIES_QEMUS)' $(STAGE) series! 'guests have migrated' \
		tests/guest/run check --suite series

run-verbs-rxe:
	@$(STAGE) verbs-rxe! 'device tests on rxe are done' \
		tests/guest/run qtest --stack rxe

# Use the device itself as the host's device, on one link: each test takes a
# second.
run-verbs-own:
	@$(STAGE) verbs-own! 'device tests on virtio-rdma are done' \
		tests/guest/run qtest --stack virtio-rdma --paths /hub/

run-kernels:
	@$(STAGE) kernels! 'the driver is compiled' \
		tests/guest/run kernels '$(HEADERS)'

# Tests of verbs, RDMA CM, events and a kernel user
KERNEL_TESTS := guest/(programs: (ibv devinfo|ibv rc pingpong (val|with e)|ib \
	write bw four|rping)|features: (resize cq|each event of the port)|nvme)

run-kernels-6.1 run-kernels-6.12 run-kernels-newest: run-kernels-%:
	@$(STAGE) kernels-$*! 'guest tests are done' tests/guest/run check \
		'$(KERNEL_TESTS)' $(if $(JOBS),--jobs $(JOBS)) --series $*

# ThreadSanitizer needs more history to name both sides of a race. It does not
# see the locks with which GLib's slices pass memory between threads.
TSAN_RUN := die_after_fork=0:history_size=7

tsan-qemu: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-test
	@TSAN=1 $(STAGE) tsan-qemu 'QEMU with ThreadSanitizer is built' \
		scripts/build-qemu.sh qemu-system-x86_64 \
		tests/qtest/virtio-rdma-test

run-threads:
	@G_SLICE=always-malloc \
	TSAN_OPTIONS=$(TSAN_RUN):suppressions=$(CURDIR)/tests/qtest/tsan.supp \
		$(STAGE) threads 'tests of iothreads are done' \
		$(RUN_TESTS) $(S_DIR)/qemu-tsan --select '^virtio-rdma-test$$' \
		--paths iothread

# For QEMU_SERIES=10.2 and later, which have a client of vfio-user
stock-qemu: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | packages-build
	@STOCK=1 $(STAGE) stock-qemu 'QEMU without patches is built' \
		scripts/build-qemu.sh qemu-system-x86_64

stock-qemu-10.2:
	@$(MAKE) --no-print-directory stock-qemu QEMU_SERIES=10.2

series-qemus:
	@for series in $(KNOWN_SERIES); do \
		$(MAKE) --no-print-directory qemu QEMU_SERIES=$$series || exit; \
	done

run-check-packages:
	@$(STAGE) check-packages! 'packages have been used' scripts/check-packages.sh

run-ci-jobs:
	@$(STAGE) ci-jobs! 'jobs have run' scripts/check-ci-jobs.sh

run-interop: needs-interop
	@$(STAGE) interop! 'the two implementations work together' \
		tests/guest/run interop

run-soak: needs-soak
	@$(STAGE) soak! 'nothing broke and nothing grew' tests/guest/run soak \
		--seconds $${SOAK_TIME:-1200} --seed $${SOAK_SEED:-1}

# Most of these tests are for other devices. The run succeeds if no test fails,
# and each test that passes on rxe passes on the device.
run-pyverbs: needs-pyverbs
	@tests/guest/run pyverbs --stack both

# Targets that a suite needs
needs-unit: unit-tests
needs-qtest: qtests | packages-test
needs-guest needs-migration needs-layouts: qtests | packages-guest packages-test
needs-verbs: qtests uml | packages-guest packages-test
needs-threads: tsan-qemu
needs-series: series-qemus | packages-guest packages-test
needs-arm64: qemu-arm64
needs-vmm-10.2: stock-qemu-10.2
needs-images: | packages-images
needs-monitors: | packages-monitors
needs-packages: packages
needs-ci-jobs:
needs-arm64 needs-images needs-monitors needs-newer-kernel needs-kernels \
	needs-kernel-users needs-applications needs-hosts needs-libvirt \
	needs-vmm needs-vmm-10.2 needs-vmm-testing needs-faults \
	needs-providers needs-pvrdma needs-scale needs-vrdma-lab \
	needs-containers \
	$(REPORTS:%=needs-%): qemu | packages-guest packages-test

# The stages of a suite, if it has more than one or another name
stages_migration := migration guest-migration
stages_newer-kernel := newer
stages_kernels := kernels kernels-6.1 kernels-6.12 kernels-newest
stages_kernel-users := users
stages_verbs := verbs-rxe verbs-own verbs
stages_layouts := qtest-layouts layouts
stages_packages := check-packages
stages_of = $(foreach suite,$(1),$(or $(stages_$(suite)),$(suite)))
STAGES := $(call stages_of,$(filter-out $(REPORTS),$(SUITES_TO_RUN)))
ALL_STAGES := $(call stages_of,$(KNOWN_SUITES))
.PHONY: $(ALL_STAGES:%=run-%)

# A named suite runs in full. Without names, long tests run as samples.
check: $(SUITES_TO_RUN:%=needs-%) \
		$(patsubst %,run-%,$(filter $(REPORTS),$(SUITE)))
ifneq ($(strip $(STAGES)),)
	@rm -f $(STAGES:%=$(LOGS)/%.log)
	@for stage in $(STAGES); do \
		$(MAKE) -s --no-print-directory run-$$stage \
			$(if $(SUITE),SLOW=1) || :; \
	done
	@$(SUMMARY) $(STAGES)
endif

$(ALIASES): check-%:
	@$(MAKE) --no-print-directory check SUITE=$*

interop soak: %: check-%

check-fresh:
	@LOGS=$(LOGS) scripts/check-fresh.sh

demo: qemu | packages-guest
	@tests/guest/run demo $(if $(SERIES),--series $(SERIES))

lab: qemu guest
	@echo 'Next: $(if $(filter-out $(CURDIR)/build,$(V_DIR)),BUILD_DIR=$(B) \
		QEMU=$(QEMU) )tools/lab/vrdma-lab up 2'

bench: $(patsubst %,bench-%,$(or $(BENCH),engine))

bench-engine: standalone
	@$(STAGE) bench! 'measured' \
		$(PYTHON) $(B)/tools/meson.py test -C $(V_DIR)/standalone \
		--benchmark --verbose --no-rebuild

bench-migration: qemu | packages-guest
	@tests/guest/run bench-migration

bench-turns: standalone qtests
	@$(STAGE) bench-turns! 'measured' scripts/bench-turns.sh

bench-instructions: qtests | packages-bench
	@$(STAGE) bench-instructions! 'measured' scripts/bench-instructions.sh

bench-qps: qemu | packages-guest packages-test
	@tests/guest/run bench-qps

bench-qp-memory: standalone qtests
	@$(STAGE) bench-qp-memory! 'measured' scripts/bench-qp-memory.sh

bench-query: qemu | packages-guest packages-test
	@tests/guest/run bench-query

bench-guests: qemu | packages-guest packages-test
	@tests/guest/run bench-guests

bench-applications: qemu | packages-guest packages-test
	@tests/guest/run bench-applications

bench-pvrdma: qemu | packages-guest packages-test
	@tests/guest/run bench-pvrdma

bench-vmm: qemu | packages-guest packages-test
	@tests/guest/run bench-vmm

bench-verbs: qemu uml | packages-guest
	@tests/guest/run bench-verbs

bench-verbs-mr: standalone qtests | packages-guest
	@echo 'Over a double of libibverbs'
	@scripts/bench-verbs-mr.sh
	@echo 'Over rxe in User-mode Linux'
	@tests/guest/run bench-verbs-mr

# Fuzzers of the device begin with rdma-, all others are of the engine.
FUZZ_DEVICE := $(filter rdma-%,$(TARGETS))
FUZZ_ENGINE := $(filter-out rdma-%,$(TARGETS))
fuzz: $(if $(TARGETS),,fuzz-engine fuzz-device) \
	$(if $(FUZZ_ENGINE),fuzz-engine) $(if $(FUZZ_DEVICE),fuzz-device)

fuzz-engine: $(B)/tools/meson.py | packages-build packages-test
	@CC=clang $(STAGE) fuzzers 'fuzzers are built' \
		scripts/build-standalone.sh $(B)/fuzz '' -Dfuzzing=true \
		-Db_sanitize=address,undefined -Db_lundef=false
	@$(STAGE) fuzz! 'no fuzzer found anything' \
		scripts/run-fuzzers.sh $(B)/fuzz $(FUZZ_TIME) $(FUZZ_ENGINE)

fuzz-device: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-test
	@FUZZ=1 $(STAGE) fuzz-qemu 'fuzzers of the device are built' \
		scripts/build-qemu.sh qemu-fuzz-x86_64
	@$(STAGE) fuzz-device! 'no fuzzer of the device found anything' \
		scripts/run-device-fuzzers.sh $(S_DIR)/qemu-fuzz $(FUZZ_TIME) \
		$(FUZZ_DEVICE)

# Separate builds, in which only files of this project have counters
COV_UNIT := $(S_DIR)/coverage
COV_QEMU := $(V_DIR)/qemu-coverage

coverage: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | packages-build \
		packages-coverage packages-guest packages-test
	@CC=gcc $(STAGE) coverage-engine 'engine is built for gcov' \
		scripts/build-standalone.sh $(COV_UNIT) meson-test-prereq \
		-Db_coverage=true
	@COVERAGE=1 $(STAGE) coverage-qemu 'QEMU is built for gcov' \
		scripts/build-qemu.sh qemu-system-x86_64
	@COVERAGE=1 $(STAGE) coverage-qtests 'device tests are built' \
		scripts/build-qemu.sh \
		$$($(RUN_TESTS) $(COV_QEMU) $(QTESTS) --list)
	@find $(COV_UNIT) $(COV_QEMU) -name '*.gcda' -delete
	@$(STAGE) coverage-unit 'unit tests are done' \
		$(RUN_TESTS) $(COV_UNIT) || :
	@$(STAGE) coverage-qtest 'device tests are done' \
		$(RUN_TESTS) $(COV_QEMU) $(QTESTS) $(QTEST_SHARES) || :
	@$(STAGE) coverage! 'enough lines are covered' \
		scripts/coverage.sh $(COV_UNIT) $(COV_QEMU)
	@$(SUMMARY) coverage-unit coverage-qtest

# Survivors do not fail the command; the reader of the list decides.
mutate: $(B)/tools/meson.py $(if $(filter-out engine,$(PART)),qtests) | \
		packages-build packages-test
	@$(PYTHON) scripts/mutate.py --part $(or $(PART),engine) \
		--seed $(or $(SEED),1) --count $(or $(COUNT),40) \
		$(if $(SANITIZE),--sanitize) $(if $(JOBS),--jobs $(JOBS))

lint: $(QEMU_TREE)/VERSION | packages-lint packages-docs
	@$(STAGE) lint 'style is right' scripts/lint.sh

docs: | packages-docs
	@$(STAGE) diagrams 'diagrams are drawn' \
		$(PYTHON) scripts/draw-diagrams.py
	@$(STAGE) docs 'HTML is in $(B)/docs' scripts/build-docs.sh $(B)/docs

graph: | packages-lint
	@$(PYTHON) scripts/call-graph.py

# Cleaning ------------------------------------------------------------------

# Below each directory of a series. The asterisks stand for the private ABIs of
# rdma-core, and for variants of the arm64 kernel.
COMPILED := qemu qemu-aarch64 qemu-coverage qemu-fuzz qemu-stock qemu-tsan \
	standalone fuzz coverage docs logs packages results guest/bin \
	guest/broken* guest/driver* guest/modules* guest/provider* \
	guest/rdma-core*/build guest/images/driver guest/arm64/bin \
	guest/arm64/driver* guest/arm64/modules* guest/arm64/provider* \
	guest/arm64/rdma-core/build

# Fetched files stay, and so do kernels, compilers and disk images of guests.
# What fuzzers found goes.
clean:
	rm -rf $(foreach dir,$(SERIES_DIRS),$(COMPILED:%=$(dir)/%) $(dir)-asan)

distclean: clean
	rm -rf $(SERIES_DIRS) config.mk
