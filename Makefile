# The commands of the project. CMake does the building (CMakePresets.json); this file puts the steps in order.
#   make demo    from a clean clone to runs/recorded/report.html, then to runs/demo/report.html
#   make test    from a clean clone to all checks and tests passed; .ci/run calls exactly this
.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build demo recorded results bench figures test check asan fuzz cross-arm64 lint format examples wheel \
  test-python dist tarball setup clean help

SIAMESE := build/release/siamese
RUN_CLANG_TIDY := run-clang-tidy
FUZZ_SECONDS := 60

say = @printf '\n== %s\n' "$(1)"

build: ## build the release binary, build/release/siamese
	$(call say,Building the release preset)
	cmake --preset release
	cmake --build --preset release --target siamese

setup: ## install what is missing (Debian packages, .venv with torch)
	@./setup.sh

demo: setup build recorded ## a page of 72 recorded runs, then train six variants with a live page; finished runs are kept
	$(call say,Training the comparison of configs/demo.yaml: minutes; Ctrl-C stops and the same command goes on)
	tools/demo.sh $(SIAMESE) runs/demo
	@printf '\nOpen %s/runs/demo/report.html in a browser.\n' "$(CURDIR)"

recorded: build ## table and page of 72 recorded runs, without training
	$(call say,Drawing the 72 runs that docs/results/stability.jsonl records)
	$(SIAMESE) sweep configs/sweeps/stability.yaml --out runs/recorded
	@printf '\nOpen %s/runs/recorded/report.html in a browser.\n' "$(CURDIR)"

results: build ## every table and plot of docs/results.md from the records, without training
	$(call say,Rendering the recorded sweeps)
	python3 benchmarks/results.py $(SIAMESE)
	python3 benchmarks/rates.py
	python3 benchmarks/differences.py

bench: setup build ## measure kernels and training steps beside plain PyTorch into docs/performance.md (50 minutes)
	$(call say,Measuring; nothing else should run on this machine)
	python3 benchmarks/run.py

figures: setup build ## train and look into the runs of docs/inside.md, and draw its figures (about 15 minutes of one core)
	$(call say,Training and analysing the runs of configs/figures/inside.yaml; finished ones are kept)
	python3 benchmarks/figures.py

test: setup check ## every check and test
	$(call say,Building the release preset and its tests)
	cmake --preset release
	cmake --build --preset release
	$(call say,Building and running the torch-free rooms with AddressSanitizer and UBSan)
	cmake --preset asan-core
	cmake --build --preset asan-core
	ctest --preset asan-core -j $$(nproc)
	$(call say,Building and running the examples against an installed tree)
	tools/build_examples.sh
	$(call say,Running the tests)
	ctest --preset release -j $$(nproc)
	$(call say,Packing the wheel and testing it in an environment of its own)
	tools/test_python.sh

check: ## the checks that need no build: includes, file length, formatting, links and names in the docs
	$(call say,Checking the tree)
	python3 tools/test_tools.py
	python3 tools/test_attack.py
	python3 tools/test_setup.py
	python3 tools/test_docs.py
	python3 benchmarks/test_render.py
	python3 benchmarks/test_scale.py
	python3 benchmarks/test_rates.py
	python3 benchmarks/test_differences.py
	python3 benchmarks/test_figures.py
	python3 benchmarks/test_results.py
	python3 benchmarks/test_second_stage.py
	python3 benchmarks/test_sentences.py
	python3 tools/check_includes.py
	python3 tools/check_tree.py
	python3 tools/check_docs.py

asan: setup ## every test with AddressSanitizer and UBSan (long: the whole engine is built again)
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan -j $$(nproc)

fuzz: ## feed every file reader with invented bytes, FUZZ_SECONDS=60 each (FUZZ="yaml png": only these)
	@./setup.sh clang libclang-rt-14-dev
	$(call say,Building the fuzzers)
	cmake --preset fuzz
	cmake --build --preset fuzz
	$(call say,Fuzzing)
	fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ)

cross-arm64: ## the torch-free rooms for 64-bit Arm, by Debian's cross compiler, tested under qemu (installs both)
	@./setup.sh g++-aarch64-linux-gnu qemu-user
	$(call say,Unpacking the arm64 libraries into build/arm64-sysroot)
	tools/arm64_sysroot.sh build/arm64-sysroot
	$(call say,Building and running the torch-free rooms for arm64)
	cmake --preset cross-arm64
	cmake --build --preset cross-arm64
	ctest --preset cross-arm64 -j $$(nproc)

examples: build ## build and run the examples against an installed tree
	tools/build_examples.sh

wheel: setup ## pack the Python package siamesenorm from the release build into build/dist
	$(call say,Building the binding and packing the wheel)
	cmake --preset release
	cmake --build --preset release --target siamesenorm_binding
	tools/pack_wheel.sh

test-python: wheel ## the tests of the Python package, in an environment of its own
	tools/test_python.sh

dist: ## the committed tree as dist/siamese-VERSION.tar.gz, unpacked and checked (FULL=1: also built and tested there)
	tools/make_dist.sh $(if $(FULL),--full)

tarball: build ## the binary, its libraries and the recipes as dist/siamese-VERSION-linux-*.tar.gz; torch stays outside
	cmake -DBUILD=build/release -DROOT=. -DOUT=dist -P cmake/binary_tarball.cmake

format: ## format our C++ in place
	git ls-files -co --exclude-standard -- '*.h' '*.cc' | xargs -r clang-format -i

lint: ## clang-tidy over our C++
	@./setup.sh clang-tidy
	cmake --preset dev -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DSIAMESE_BUILD_TESTS=OFF
	$(RUN_CLANG_TIDY) -quiet -p build/lint '$(CURDIR)/siamese/.*\.cc$$'

clean: ## remove what was built; .venv and runs/ stay
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12
