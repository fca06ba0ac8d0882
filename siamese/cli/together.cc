#include "siamese/cli/together.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <dlfcn.h>

#include "siamese/base/check.h"
#include "siamese/base/utf8.h"
#include "siamese/cli/signals.h"
#include "siamese/comm/mpi_library.h"
#include "siamese/train/failure_text.h"
#include "siamese/train/ranks.h"

namespace siamese::cli {
namespace together_detail {

// What the starter of a job says of this process. srun says how many there are in a variable that stands also where it
// started nothing, so the rank decides whether there is a job at all.
struct Job {
  int rank = 0;
  int size = 0;  // 0: not started as part of a job
};

int number_in(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr && *text >= '0' && *text <= '9' ? std::atoi(text) : otherwise;
}

Job job() {
  const std::pair<const char*, const char*> variables[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMIX_RANK", "SLURM_NTASKS"}, {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank, size] : variables) {
    const int found = number_in(rank, -1);
    if (found >= 0) return {found, std::max(1, number_in(size, 1))};
  }
  return {};
}

// Beside this program, whatever name it was started by: from PATH the name has no folder.
std::string here(const std::string& file) {
  std::error_code unknown;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  return unknown ? file : (program.parent_path() / file).string();
}

// Null in a build without MPI.
void* mpi_library() {
  for (const std::string& path :
       {here(comm::kMpiLibrary), here(std::string("../lib/") + comm::kMpiLibrary), std::string(comm::kMpiLibrary)}) {
    // Open MPI loads parts of its own, which look for its symbols among the global ones.
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  return nullptr;
}

std::unique_ptr<comm::Group> join(const Job& job) {
  void* const library = mpi_library();
  if (library == nullptr && job.size == 1) return nullptr;  // as without mpirun
  if (library == nullptr) {
    throw UsageError("mpirun: expected a build with MPI (libopenmpi-dev) for " + std::to_string(job.size) +
                     " processes, got one without " + comm::kMpiLibrary);
  }
  using Join = comm::Group* (*)();
  const auto join_mpi = reinterpret_cast<Join>(dlsym(library, comm::kJoinMpi));
  std::unique_ptr<comm::Group> group(join_mpi == nullptr ? nullptr : join_mpi());
  if (!group) throw SystemError("MPI could not be initialised");
  if (group->size() != job.size) {
    throw UsageError("mpirun: expected " + std::to_string(job.size) +
                     " processes, as it says, but the MPI of this build finds " + std::to_string(group->size()) +
                     ": start it with the mpirun of the Open MPI that it was built with");
  }
  return group;
}

// One rank alone knows of it, and the others wait for it in vain.
[[noreturn]] void end_all(comm::Group& group, Exit code, const std::string& message) {
  constexpr size_t kLongest = 2000;
  std::string text = message;
  if (text.find(group.name()) == std::string::npos) text = group.name() + ": " + text;
  std::fprintf(stderr, "siamese: %s\n", printable(text, kLongest).c_str());
  group.end_all(static_cast<int>(code));
  std::_Exit(static_cast<int>(code));  // never: for compilers that do not look into a virtual call
}

// The job's exit code is rank 0's: one of ours that is not 0 might end rank 0 before it has said why.
int follow(comm::Group& group) {
  catch_signals();  // rank 0 hears of them after the step and saves
  try {
    train::follow(group, caught_signal);
    return 0;
  } catch (const Error& error) {
    end_all(group, error.code(), error.what());
  } catch (const std::exception& error) {
    end_all(group, Exit::failure, train::failure_text(error));
  }
}

int lead(comm::Group& group, const std::function<int(train::RunHooks)>& run) {
  train::Ranks ranks(group);
  train::RunHooks hooks;
  hooks.stop_signal = caught_signal;
  hooks.ranks = &ranks;
  try {
    const int code = run(hooks);
    ranks.finish();
    return code;
  } catch (const Error& error) {
    if (!ranks.finish()) end_all(group, error.code(), error.what());
    throw;
  } catch (const std::exception& error) {
    if (!ranks.finish()) end_all(group, Exit::failure, train::failure_text(error));
    throw;
  }
}

}  // namespace together_detail

int together(const std::function<int(train::RunHooks)>& run) {
  using namespace together_detail;
  const Job started = job();
  const std::unique_ptr<comm::Group> group = started.size > 0 ? join(started) : nullptr;
  if (!group) {
    train::RunHooks hooks;
    hooks.stop_signal = caught_signal;
    return run(hooks);
  }
  return group->leads() ? lead(*group, run) : follow(*group);
}

int side_by_side(const std::function<int(comm::Group*)>& run) {
  using namespace together_detail;
  const Job started = job();
  const std::unique_ptr<comm::Group> group = started.size > 0 ? join(started) : nullptr;
  if (!group || group->size() == 1) return run(nullptr);
  try {
    return run(group.get());
  } catch (const Error& error) {  // the others do not know of it, and would wait for this one at their end
    end_all(*group, error.code(), error.what());
  } catch (const std::exception& error) {
    end_all(*group, Exit::failure, train::failure_text(error));
  }
}

void check_alone(const std::string& verb, const std::string& next) {
  const together_detail::Job started = together_detail::job();
  const bool shared = verb == "train" || verb == "resume" || verb == "sweep" || verb == "eval" ||
                      (verb == "bench" && next == "step") || verb.starts_with("-");
  if (started.size <= 1 || shared) return;
  throw UsageError(verb + ": expected one process, got " + std::to_string(started.size) +
                   " (mpirun): train, resume, sweep, eval and bench step share their work");
}

bool speaks_for_all() { return together_detail::job().rank == 0; }

}  // namespace siamese::cli
