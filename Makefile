# SPDX-License-Identifier: GPL-2.0-or-later
#
# virtio-rdma: "make help" tells the targets.

-include config.mk

BUILDDIR := $(or $(BUILDDIR),$(CURDIR)/build)
PREFIX := $(or $(PREFIX),/usr/local)
# The Python whose packages Debian's tools are installed for
PYTHON ?= /usr/bin/python3
JOBS ?=
# PACKAGES=no: do not look whether Debian packages are missing
PACKAGES ?=

# Series of QEMU: those that have patches. QEMU_SRC, if given, has one.
DEFAULT_SERIES := 10.0
KNOWN_SERIES := $(patsubst qemu/patches/%/,%,$(wildcard qemu/patches/*/))
SRC_SERIES := $(if $(QEMU_SRC),$(shell cut -d. -f1,2 $(QEMU_SRC)/VERSION))
QEMU_SERIES := $(or $(QEMU_SERIES),$(SRC_SERIES),$(DEFAULT_SERIES))
ifeq ($(filter $(QEMU_SERIES),$(KNOWN_SERIES)),)
$(error QEMU $(QEMU_SERIES) is not a series that this tree lies over, \
	which are: $(KNOWN_SERIES))
endif
ifneq ($(QEMU_SERIES),$(or $(SRC_SERIES),$(QEMU_SERIES)))
$(error QEMU_SERIES is $(QEMU_SERIES), but $(QEMU_SRC) is QEMU $(SRC_SERIES): \
	set one of them only)
endif

# What is fetched and the tree laid over QEMU's serve all variants of the
# build with one series; what is compiled is kept apart.
B := $(BUILDDIR)
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
# Warnings are errors with the compiler that the project is developed with;
# a newer one may know more of them.
WERROR ?= $(if $(filter 12,$(shell $(CC) -dumpversion 2>/dev/null)),1)
comma := ,
STANDALONE_OPTIONS := \
	$(if $(ASAN),-Db_sanitize=address$(comma)undefined -Db_lundef=false)
FUZZ_TIME ?= 60
# Names of fuzzers; all of them if empty
TARGETS ?=

.DEFAULT_GOAL := all
.PHONY: all demo lab check check-unit check-qtest check-guest check-migration \
	check-threads check-pyverbs interop check-kernel-users check-scale \
	check-newer-kernel check-kernels check-series check-verbs \
	check-applications check-hosts check-libvirt check-fresh \
	check-arm64 run-arm64 qemu-arm64 packages-arm64 \
	run-kernels run-kernels-6.1 run-kernels-6.12 run-kernels-newest \
	run-users run-scale run-newer run-series run-applications \
	run-hosts run-libvirt check-faults run-faults \
	check-images run-images packages-images \
	run-verbs run-verbs-rxe run-verbs-own \
	unit-tests run-unit run-qtest run-migration \
	run-guest-migration run-guest \
	bench bench-migration bench-turns bench-verbs bench-verbs-mr \
	bench-instructions packages-bench \
	bench-qps bench-query bench-guests bench-applications \
	fuzz fuzz-engine fuzz-device coverage mutate \
	soak lint graph install qemu qtests guest uml standalone \
	packages package-parts check-packages run-packages \
	check-ci-jobs run-ci-jobs \
	packages-build packages-coverage packages-packages \
	packages-guest packages-test packages-lint clean distclean help

all: qemu standalone

help:
	@echo 'make               QEMU with virtio-rdma, and the engine'
	@echo 'make demo          two Debian guests exchange RDMA traffic'
	@echo '                   (PCAP=file keeps the frames)'
	@echo 'make lab           what tools/lab/vrdma-lab needs: guests for programs'
	@echo '                   of yours'
	@echo 'make check         all tests; ends with "N passed, N failed, ..."'
	@echo 'make check-unit    tests of the engine'
	@echo 'make check-qtest   tests of the device, without a guest, in full'
	@echo 'make check-migration  all that migrates, devices and guests'
	@echo '                   (MOVES=n: how often guests migrate; 3)'
	@echo 'make check-guest   tests in real guests (SERIES=6.12: on that kernel)'
	@echo 'make interop       virtio-rdma and rxe on one wire, as a table'
	@echo 'make check-kernel-users  NVMe-oF, NFS and others over RDMA'
	@echo 'make check-applications  Open MPI and other users of verbs'
	@echo 'make check-hosts   guests on two hosts, which are network namespaces'
	@echo 'make check-libvirt  guests of libvirt, saved, restored, plugged'
	@echo 'make check-faults  real programs on adapters that fail on demand'
	@echo 'make check-images  guests of vrdma-lab from disk images of Debian 12'
	@echo '                   and 13 that it makes (root, the first time)'
	@echo 'make check-verbs   a host with an RDMA device and its nested guests'
	@echo 'make uml           only the kernel of that host, User-mode Linux'
	@echo "make check-newer-kernel  guests with Debian 13's kernel"
	@echo 'make check-kernels  the driver, built for all kernels of the archive'
	@echo '                   (HEADERS=regex: for those), and in guests with'
	@echo '                   6.1, 6.12 and the newest'
	@echo 'make check-series  guests migrate between QEMU $(KNOWN_SERIES)'
	@echo 'make check-arm64   an arm64 guest and an x86-64 one talk'
	@echo 'make check-fresh   demo and all tests on fresh Debian 12 and 13 (root)'
	@echo '                   (SUITES="bookworm trixie",'
	@echo '                   COMMANDS="make demo; make check", KEEP=1)'
	@echo 'make packages      Debian packages of QEMU, driver, provider, vrdma-lab'
	@echo 'make check-packages  these, installed, used and removed on fresh'
	@echo '                   Debian 12 and 13 (root; SUITES=bookworm, KEEP=1)'
	@echo 'make check-ci-jobs  the CI jobs of the page about the lab, on fresh'
	@echo '                   Debian 12 (root)'
	@echo 'make check-scale   many of everything, for a long time'
	@echo 'make soak          trouble of all kinds amid traffic, for SOAK_TIME'
	@echo '                   seconds (1200; SOAK_SEED=n: in that order)'
	@echo 'make check-pyverbs  tests of rdma-core, also on rxe'
	@echo 'make bench         speed of the engine'
	@echo 'make bench-migration  what migration of a guest costs'
	@echo 'make bench-turns   how long a guest can keep QEMU busy'
	@echo 'make bench-instructions  what QEMU executes for a short message'
	@echo 'make bench-qps     what many queue pairs cost'
	@echo 'make bench-query   what a look at 1000 queue pairs costs'
	@echo 'make bench-guests  two guests of one host beside a copy and rxe'
	@echo 'make bench-applications  UCX, MPI, libfabric, fio beside rxe'
	@echo 'make bench-verbs   rdma-verbs in a guest beside its host'
	@echo 'make bench-verbs-mr  1 GiB registered on a host adapter'
	@echo 'make check-threads tests of iothreads, with ThreadSanitizer'
	@echo 'make fuzz          run each fuzzer for FUZZ_TIME (60)'
	@echo '                   (TARGETS="frame rdma-wire": only these)'
	@echo 'make coverage      which lines unit and device tests reach'
	@echo 'make mutate        which small changes of the engine no test notices'
	@echo '                   (SEED=1, COUNT=40; PART=codec: of the device,'
	@echo '                   SANITIZE=1: run what survives with sanitizers)'
	@echo 'make lint          style of the sources, direction of calls'
	@echo 'make graph         which file calls and includes which, and cycles'
	@echo 'make qemu          only QEMU: $(QEMU:$(CURDIR)/%=%)'
	@echo 'make qemu-arm64    QEMU for arm64 guests'
	@echo 'make guest         only the guest side: kernel, driver, provider'
	@echo 'make standalone    only the engine and its tests; needs no QEMU'
	@echo 'make install       install QEMU in $(PREFIX)'
	@echo 'make clean         remove what was compiled'
	@echo 'make distclean     remove what was fetched and configured, too'
	@echo
	@echo 'Variables: QEMU_SERIES=n.n (one of $(KNOWN_SERIES), each in a directory'
	@echo '  of its own; $(DEFAULT_SERIES)), ASAN=1 (sanitizers, likewise),'
	@echo '  V=1 (show all output), JOBS=n, QEMU_SRC=dir, SOURCE_CACHE=dir,'
	@echo '  BUILDDIR=dir, PREFIX=dir, PYTHON=program, WERROR=1 (warnings are'
	@echo '  errors), LEAN=1 (QEMU with what the tests start and no more),'
	@echo '  PACKAGES=no (do not look for missing packages).'
	@echo './configure --help tells how to make such choices stick.'

# Packages ------------------------------------------------------------------

packages-build packages-coverage packages-guest packages-test \
		packages-lint packages-packages packages-arm64 \
		packages-images packages-bench: packages-%:
ifneq ($(PACKAGES),no)
	@scripts/setup-packages.sh --check $* || \
		$(STAGE) packages-$* 'packages are installed' \
		scripts/setup-packages.sh $*
endif

# Sources and tools ---------------------------------------------------------

export B S_DIR V_DIR QEMU_TREE QEMU_SERIES
export SOURCE_CACHE PREFIX ASAN PYTHON JOBS WERROR QEMU QEMU_AARCH64
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
	@$(STAGE) guest-side 'guest side is built' tests/guest/run setup

uml: | packages-guest
	@$(STAGE) uml 'User-mode Linux is ready' tests/guest/run uml $(SERIES)

install: qemu
	@scripts/build-qemu.sh trace/trace-events-all > /dev/null
	@$(STAGE) install 'installed in $(PREFIX)' \
		$(PYTHON) $(B)/tools/meson.py install -C $(V_DIR)/qemu --no-rebuild

packages: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-guest packages-packages
	@$(STAGE) packages 'packages are in $(B)/packages' \
		scripts/build-packages.sh
	@ls $(B)/packages/*.deb

# For debian/rules
package-parts: $(B)/tools/meson.py $(QEMU_TREE)/VERSION
	@PACKAGE=$$(cat VERSION) ASAN= V_DIR=$(B) PREFIX=/usr \
		scripts/build-qemu.sh qemu-system-x86_64
	@PACKAGE=1 guest/rdma-core/build.sh $(B)/packages/provider \
		$(B)/packages/rdma-core

# Tests ---------------------------------------------------------------------

QTESTS := --select rdma
# A test and its QEMU wait for each other: two at a time keep a processor busy.
QTEST_SHARES := --share 20 $(if $(JOBS),,--jobs $$((2 * $$(nproc))))

run-unit:
	@$(STAGE) unit 'unit tests are done' \
		$(RUN_TESTS) $(V_DIR)/standalone

run-qtest:
	@$(STAGE) qtest 'device tests are done' \
		$(RUN_TESTS) $(V_DIR)/qemu $(QTESTS) $(QTEST_SHARES) \
		$(if $(SLOW),--slow)

# How many rounds of traffic, mutants of a snapshot: what is not set here or
# in the environment is done a few times
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

run-guest:
	@$(STAGE) guest! 'guest tests are done' \
		tests/guest/run check $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(SERIES),--series $(SERIES))

# Guest tests that take too long for CI
run-users run-newer run-applications run-hosts run-libvirt run-arm64 \
		run-faults run-images run-verbs: run-%:
	@$(STAGE) $*! 'guest tests are done' \
		tests/guest/run check --suite $*

run-scale:
	@FULL=1 $(STAGE) scale! 'guest tests are done' \
		tests/guest/run check 'guest/(scale|iothread: writes)'

# Between QEMUs of all series, oldest first
run-series:
	@QEMUS='$(SERIES_QEMUS)' $(STAGE) series! 'guests have migrated' \
		tests/guest/run check --suite series

run-verbs-rxe:
	@$(STAGE) verbs-rxe! 'device tests on rxe are done' \
		tests/guest/run qtest --stack rxe

# The device as the host's device, on one link: each test takes a second
run-verbs-own:
	@$(STAGE) verbs-own! 'device tests on its like are done' \
		tests/guest/run qtest --stack virtio-rdma --paths /hub/

run-kernels:
	@$(STAGE) kernels! 'the driver is compiled' \
		tests/guest/run kernels '$(HEADERS)'

# Verbs, RDMA CM, events and a user in the kernel
KERNEL_TESTS := guest/(programs: (ibv devinfo|ibv rc pingpong (val|with e)|ib \
	write bw four|rping)|features: (resize cq|each event of the port)|nvme)

run-kernels-6.1 run-kernels-6.12 run-kernels-newest: run-kernels-%:
	@$(STAGE) kernels-$*! 'guest tests are done' tests/guest/run check \
		'$(KERNEL_TESTS)' $(if $(JOBS),--jobs $(JOBS)) --series $*

check-kernels: qemu | packages-guest packages-test
	@rm -f $(LOGS)/kernels.log $(LOGS)/kernels-*.log
	@$(MAKE) -s --no-print-directory run-kernels || :
	@$(MAKE) -s --no-print-directory run-kernels-6.1 || :
	@$(MAKE) -s --no-print-directory run-kernels-6.12 || :
	@$(MAKE) -s --no-print-directory run-kernels-newest || :
	@$(SUMMARY) kernels kernels-6.1 kernels-6.12 kernels-newest

check-kernel-users check-scale check-newer-kernel check-applications \
		check-hosts check-libvirt check-faults check-images: qemu | \
		packages-guest packages-test
	@rm -f $(LOGS)/$(SUITE).log
	@$(MAKE) -s --no-print-directory run-$(SUITE) || :
	@$(SUMMARY) $(SUITE)

check-series: | packages-guest packages-test
	@for series in $(KNOWN_SERIES); do \
		$(MAKE) --no-print-directory qemu QEMU_SERIES=$$series || exit; \
	done
	@rm -f $(LOGS)/series.log
	@$(MAKE) -s --no-print-directory run-series || :
	@$(SUMMARY) series

check-arm64: qemu qemu-arm64 | packages-guest packages-test
	@rm -f $(LOGS)/arm64.log
	@$(MAKE) -s --no-print-directory run-arm64 || :
	@$(SUMMARY) arm64

check-kernel-users: SUITE := users
check-scale: SUITE := scale
check-newer-kernel: SUITE := newer
check-applications: SUITE := applications
check-hosts: SUITE := hosts
check-libvirt: SUITE := libvirt
check-faults: SUITE := faults
check-images: SUITE := images
check-images: | packages-images

check-verbs: qtests uml | packages-guest packages-test
	@rm -f $(LOGS)/verbs-rxe.log $(LOGS)/verbs-own.log $(LOGS)/verbs.log
	@$(MAKE) -s --no-print-directory run-verbs-rxe || :
	@$(MAKE) -s --no-print-directory run-verbs-own || :
	@$(MAKE) -s --no-print-directory run-verbs || :
	@$(SUMMARY) verbs-rxe verbs-own verbs

interop: qemu | packages-guest packages-test
	@$(STAGE) interop! 'the two implementations work together' \
		tests/guest/run interop

soak: qemu | packages-guest packages-test
	@$(STAGE) soak! 'nothing broke and nothing grew' tests/guest/run soak \
		--seconds $${SOAK_TIME:-1200} --seed $${SOAK_SEED:-1}

check-unit: unit-tests
	@rm -f $(LOGS)/unit.log
	@$(MAKE) -s --no-print-directory run-unit || :
	@$(SUMMARY) unit

check-qtest: qtests | packages-test
	@rm -f $(LOGS)/qtest.log
	@$(MAKE) -s --no-print-directory run-qtest SLOW=1 || :
	@$(SUMMARY) qtest

check-migration: qtests | packages-guest packages-test
	@rm -f $(LOGS)/migration.log $(LOGS)/guest-migration.log
	@$(MAKE) -s --no-print-directory run-migration || :
	@$(MAKE) -s --no-print-directory run-guest-migration || :
	@$(SUMMARY) migration guest-migration

# With more history it can name both sides of a race. GLib's slices go from one
# thread to another by locks that it does not see.
TSAN_RUN := die_after_fork=0:history_size=7

check-threads: $(B)/tools/meson.py $(QEMU_TREE)/VERSION | \
		packages-build packages-test
	@rm -f $(LOGS)/threads.log
	@TSAN=1 $(STAGE) tsan-qemu 'QEMU with ThreadSanitizer is built' \
		scripts/build-qemu.sh qemu-system-x86_64 \
		tests/qtest/virtio-rdma-test
	@G_SLICE=always-malloc \
	TSAN_OPTIONS=$(TSAN_RUN):suppressions=$(CURDIR)/tests/qtest/tsan.supp \
		$(STAGE) threads 'tests of iothreads are done' \
		$(RUN_TESTS) $(S_DIR)/qemu-tsan --select '^virtio-rdma-test$$' \
		--paths iothread || :
	@$(SUMMARY) threads

check-guest: qtests | packages-guest packages-test
	@rm -f $(LOGS)/guest.log
	@$(MAKE) -s --no-print-directory run-guest || :
	@$(SUMMARY) guest

# Shows what it finds itself: most of those tests are for other devices. It
# succeeds if nothing fails and all that passes on rxe passes on the device.
check-pyverbs: qemu | packages-guest packages-test
	@tests/guest/run pyverbs --stack both

check: unit-tests qtests | packages-guest packages-test
	@rm -f $(LOGS)/unit.log $(LOGS)/qtest.log $(LOGS)/guest.log
	@$(MAKE) -s --no-print-directory run-unit || :
	@$(MAKE) -s --no-print-directory run-qtest || :
	@$(MAKE) -s --no-print-directory run-guest || :
	@$(SUMMARY) unit qtest guest

run-packages:
	@SUITES='$(SUITES)' PACKAGES='$(PACKAGES)' KEEP='$(KEEP)' \
		$(STAGE) check-packages! 'packages have been used' \
		scripts/check-packages.sh

check-packages: packages
	@rm -f $(LOGS)/check-packages.log
	@$(MAKE) -s --no-print-directory run-packages || :
	@$(SUMMARY) check-packages

run-ci-jobs:
	@PACKAGES='$(PACKAGES)' KEEP='$(KEEP)' $(STAGE) ci-jobs! 'jobs have run' \
		scripts/check-ci-jobs.sh

check-ci-jobs:
	@rm -f $(LOGS)/ci-jobs.log
	@$(MAKE) -s --no-print-directory run-ci-jobs || :
	@$(SUMMARY) ci-jobs

check-fresh:
	@LOGS=$(LOGS) SUITES='$(SUITES)' COMMANDS='$(COMMANDS)' \
		PACKAGES='$(PACKAGES)' KEEP='$(KEEP)' scripts/check-fresh.sh

demo: qemu | packages-guest
	@tests/guest/run demo $(if $(SERIES),--series $(SERIES))

lab: qemu guest
	@echo 'Next: tools/lab/vrdma-lab up 2'

bench: standalone
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

bench-query: qemu | packages-guest packages-test
	@tests/guest/run bench-query

bench-guests: qemu | packages-guest packages-test
	@tests/guest/run bench-guests

bench-applications: qemu | packages-guest packages-test
	@tests/guest/run bench-applications

bench-verbs: qemu uml | packages-guest
	@tests/guest/run bench-verbs

bench-verbs-mr: standalone qtests | packages-guest
	@echo 'Over a double of libibverbs'
	@scripts/bench-verbs-mr.sh
	@echo 'Over rxe in User-mode Linux'
	@tests/guest/run bench-verbs-mr

# What begins with rdma- is a target of the device, the others are those of the
# engine.
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

# Builds of their own, in which only our files have counters
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

# Survivors are no failure: whoever reads the list decides
mutate: $(B)/tools/meson.py $(if $(filter codec,$(PART)),qtests) | \
		packages-build packages-test
	@$(PYTHON) scripts/mutate.py --part $(or $(PART),engine) \
		--seed $(or $(SEED),1) --count $(or $(COUNT),40) \
		$(if $(SANITIZE),--sanitize) $(if $(JOBS),--jobs $(JOBS))

lint: $(QEMU_TREE)/VERSION | packages-lint
	@$(STAGE) lint 'style is right' scripts/lint.sh

graph: | packages-lint
	@$(PYTHON) scripts/call-graph.py

# Cleaning ------------------------------------------------------------------

COMPILED := qemu standalone fuzz qemu-fuzz qemu-tsan coverage qemu-coverage \
	logs results guest/modules guest/provider packages qemu-aarch64 \
	guest/arm64/modules guest/arm64/provider

clean:
	rm -rf $(foreach dir,$(SERIES_DIRS),$(COMPILED:%=$(dir)/%) $(dir)-asan)

distclean: clean
	rm -rf $(SERIES_DIRS) config.mk
