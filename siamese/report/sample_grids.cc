#include "siamese/report/sample_grids.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/io/atomic_file.h"

namespace siamese::report {

namespace {

namespace fs = std::filesystem;

uint32_t big_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (char byte : bytes.substr(0, 4)) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// Signature, then the header chunk with width and height: https://www.w3.org/TR/png-3, sections 5.2 and 11.2.1.
std::string why_no_png(std::string_view bytes) {
  constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
  if (!bytes.starts_with(kSignature) || bytes.size() < 33 || bytes.substr(12, 4) != "IHDR")
    return "expected a PNG file";
  const uint32_t width = big_endian(bytes.substr(16)), height = big_endian(bytes.substr(20));
  if (width == 0 || height == 0 || width > kGridSide || height > kGridSide) {
    return fmt::format("expected at most {0} x {0} points, got {1} x {2}", kGridSide, width, height);
  }
  return "";
}

bool stays_below(const fs::path& relative) {
  if (relative.empty() || relative.has_root_path()) return false;
  return std::none_of(relative.begin(), relative.end(), [](const fs::path& part) { return part == ".."; });
}

// A link inside the folder may still lead out of it.
bool truly_inside(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  const fs::path real_folder = fs::canonical(folder, error);
  if (error) return false;
  const fs::path real_file = fs::canonical(file, error);
  return !error && stays_below(real_file.lexically_relative(real_folder));
}

// Fills `samples.png`; returns why it could not, or "".
std::string load(const fs::path& run_folder, Samples& samples) {
  const fs::path file = run_folder / samples.grid;
  if (!stays_below(samples.grid)) return "expected a path inside the run folder";
  try {
    const PathKind kind = path_kind(file);
    if (kind == PathKind::missing) return "no such file";
    if (!truly_inside(file, run_folder)) return "expected a path inside the run folder";
    if (kind != PathKind::file) return "expected a PNG file";
    std::error_code error;
    const uintmax_t size = fs::file_size(file, error);
    if (error || size > kGridBytes) return fmt::format("expected at most {} MB, got {} bytes", kGridBytes >> 20, size);
    std::string bytes = io::read_file(file);
    std::string problem = why_no_png(bytes);
    if (problem.empty()) samples.png = std::move(bytes);
    return problem;
  } catch (const Error& problem) {
    return problem.what();
  }
}

struct Grid {
  RunRecord* run;
  EvalRow* row;
  size_t age;  // 0: the newest of its run
};

std::vector<Grid> newest_first(Collection& collection) {
  std::vector<Grid> grids;
  for (RunRecord& run : collection.runs) {
    size_t age = 0;
    for (auto row = run.evals.rbegin(); row != run.evals.rend(); ++row) {
      if (row->samples && !row->samples->grid.empty()) grids.push_back({&run, &*row, age++});
    }
  }
  std::stable_sort(grids.begin(), grids.end(), [](const Grid& a, const Grid& b) { return a.age < b.age; });
  return grids;
}

}  // namespace

void load_sample_grids(Collection& collection, size_t budget) {
  size_t used = 0;
  bool full = false;
  for (const Grid& grid : newest_first(collection)) {
    Samples& samples = *grid.row->samples;
    if (full) {
      ++collection.grids_left_out;
      continue;
    }
    const std::string problem = load(grid.run->folder, samples);
    if (!problem.empty()) {
      grid.run->notes.push_back(fmt::format("{}: step {}: samples: grid '{}': {}; not shown", grid.run->dir,
                                            grid.row->step, samples.grid, problem));
      continue;
    }
    const size_t embedded = (samples.png.size() + 2) / 3 * 4;
    full = used + embedded > budget;
    if (!full) {
      used += embedded;
      continue;
    }
    samples.png.clear();
    ++collection.grids_left_out;
  }
}

}  // namespace siamese::report
