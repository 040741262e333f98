# What a developer runs; CONTRIBUTING.md says what each does. Needs nothing but make: `setup` installs the rest.
SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)
# Seconds that `make fuzz` spends on each target. (SECONDS on the command line; bash's own variable of that name is not meant.)
FUZZ_SECONDS := $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)

# How long `make torture` and `make soak` last, and what decides what they do.
MINUTES ?= 10
SEED ?= random

.PHONY: help setup build demo dev test check fuzz torture soak mutants generated static release packages reproduce skew install uninstall install-files install-library clean

help:
	@sed -n 's/^## //p' Makefile

## make demo     a real copy over an emulated WAN of 10 Gbit/s, 100 ms, 0.1 % loss, with scp beside it
demo: setup
	scripts/demo.sh

## make dev      debug build and the fast tests, in under a minute on a warm tree
dev: setup
	scripts/dev.sh

## make test     every test: unit, property, doc, end to end, fuzz corpora
test: setup
	scripts/test.sh

## make check    format, lints, crate arrows, docs, licences and advisories
check: setup
	scripts/check.sh

## make fuzz     each fuzz target for SECONDS (make fuzz SECONDS=600)
fuzz: setup
	scripts/fuzz.sh $(FUZZ_SECONDS)

## make torture  random copies with random faults for MINUTES by SEED (make torture MINUTES=60 SEED=1), as root
torture: setup
	scripts/torture.sh $(MINUTES) $(SEED)

## make soak     a daemon with 50 honest clients among strangers, garbage and kills for MINUTES by SEED, as root
soak: setup
	scripts/soak.sh $(MINUTES) $(SEED)

## make mutants  what unit tests do not notice: make mutants CRATE=haul-cc FILES=crates/haul-cc/src/cubic.rs
mutants: setup
	scripts/mutants.sh $(CRATE) $(FILES)

## make generated  manual pages and completions made again, after an option has changed
generated: setup
	scripts/generated.sh

## make build    the haul command, target/release/haul, and libhaul for programs in C
build: setup
	cargo build --release --locked -p haul-cli -p haul-ffi

## make static   haul as one file that needs nothing of the system it runs on, target/static/haul-MACHINE-linux
static: setup
	@scripts/static.sh

## make release  all that is handed out, of the tree as it is, into dist/: static program, packages, tarball, bill of materials, checksums, a table of it all (TWICE=yes: of the commit, built twice)
release: setup
	@$(if $(TWICE),scripts/reproduce.sh --keep dist,scripts/artifacts.sh dist)

## make packages what `make release` makes, installed into clean roots and tried there (root, debootstrap)
packages: release
	@scripts/roots.sh dist

## make reproduce  two release builds of this commit, which must be equal
reproduce: setup
	@scripts/reproduce.sh

## make skew OTHER=v0.1.0   another version of haul, a commit or a program, with this one, both ways, by every protocol
skew: setup
	@scripts/skew.sh "$(OTHER)"

## make install  haul, hcp, hperf and libhaul with manual pages and completions below PREFIX (default /usr/local), libraries in LIBDIR (PREFIX/lib)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
install:
	@[ -e "$$(scripts/target-dir.sh)/release/haul" ] || { echo "install: error: haul is not built: run make build first, as yourself" >&2; exit 1; }
	@$(MAKE) --no-print-directory install-files HAUL="$$(scripts/target-dir.sh)/release/haul"
	@$(MAKE) --no-print-directory install-library BUILT="$$(scripts/target-dir.sh)/release"

## make uninstall  removes what `make install` has put below PREFIX and LIBDIR; docs/use/install.md says what else haul keeps
uninstall:
	@to="$(DESTDIR)$(PREFIX)"; lib="$(DESTDIR)$(LIBDIR)"; \
	rm -f "$$to"/bin/{haul,hcp,hperf} "$$to"/share/man/man1/{haul.1,haul-*.1,hcp.1,hperf.1} "$$to"/include/haul.h; \
	rm -f "$$to"/share/bash-completion/completions/{haul,hcp,hperf} "$$to"/share/zsh/site-functions/_{haul,hcp,hperf}; \
	rm -f "$$to"/share/fish/vendor_completions.d/{haul,hcp,hperf}.fish; \
	rm -f "$$lib"/libhaul.{a,so} "$$lib"/libhaul.so.* "$$lib"/pkgconfig/haul.pc; \
	for page in crates/haul-ffi/man/*.3; do rm -f "$$to/share/man/man3/$${page##*/}"; done

# libhaul, as it was built in the directory BUILT: shared and static library, header, pkg-config file, manual pages.
install-library:
	@DESTDIR="$(DESTDIR)" scripts/install-library.sh "$(BUILT)" "$(PREFIX)" "$(LIBDIR)"

# The files that belong to the program HAUL; its symbols go to the file DEBUG, if one is named. WRITER writes pages and completions, where HAUL is for another machine.
DEBUG ?=
WRITER ?= $(HAUL)
install-files:
	@set -e; haul="$(HAUL)"; writer="$(WRITER)"; to="$(DESTDIR)$(PREFIX)"; \
	install -D -m 755 "$$haul" "$$to/bin/haul"; \
	scripts/strip.sh "$$to/bin/haul" "$(DEBUG)"; \
	ln -sf haul "$$to/bin/hcp"; \
	ln -sf haul "$$to/bin/hperf"; \
	mkdir -p "$$to"/share/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}; \
	"$$writer" man "$$to/share/man/man1"; \
	for name in haul hcp hperf; do \
		"$$writer" completions bash --name $$name >"$$to/share/bash-completion/completions/$$name"; \
		"$$writer" completions zsh --name $$name >"$$to/share/zsh/site-functions/_$$name"; \
		"$$writer" completions fish --name $$name >"$$to/share/fish/vendor_completions.d/$$name.fish"; \
	done

## make setup    what the others need, installed where it is missing
setup:
	@scripts/setup.sh

clean:
	cargo clean
