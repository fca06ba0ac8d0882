// The parts of `siamese bench`. Each prints a table, or with --json one object on the last line of stdout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace siamese::cli {

void add_bench_kernels(CLI::App& bench);
void add_bench_step(CLI::App& bench);
void add_bench_generate(CLI::App& bench);
void add_bench_experts(CLI::App& bench);
void add_bench_growth(CLI::App& bench);

// A pass over memory to be timed beside a plain streaming loop with as many arrays.
struct KernelCase {
  std::string name;  // "siamese"
  std::string pass;  // "forward", "backward", "update"
  // The least that must be read and written, in arrays of `elements` floats; of the latter, how many are read too.
  int reads = 0;
  int writes = 0;
  int in_place = 0;
  int64_t elements = 0;
  std::function<void()> prepare;  // before each run, not timed
  std::function<void()> run;
};

// Every pass of the engine over [rows, cols]; tensors are made when the case is made, one at a time.
std::vector<std::function<KernelCase()>> kernel_cases(int64_t rows, int64_t cols);

}  // namespace siamese::cli
