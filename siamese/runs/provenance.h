// Who made a number: the program, the machine and the time, once for each stretch of a run (from a start or a resume to
// the next).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace siamese::runs {

// The program. Two runs of one build on one kind of CPU give the same bits.
struct Build {
  std::string version;   // "0.2.0"
  std::string commit;    // the last that touched the sources, 40 digits; "": not known
  std::string dirty;     // 8 digits of a hash of what was changed since; "": nothing was
  std::string libtorch;  // "2.13.0"

  bool operator==(const Build&) const = default;
  // "siamese 0.2.0 (ace3985330, changed 1f0c77a2), LibTorch 2.13.0".
  std::string text() const;
};

// The build of this program, without `libtorch`: this room does not know LibTorch (train/provenance.h does).
Build this_source();

struct Stretch {
  Build build;
  std::string simd;       // "AVX3"
  std::string precision;  // engine.precision
  std::string device;     // engine.device
  int64_t threads = 0;
  int64_t ranks = 1;    // processes
  std::string cpu;      // model
  std::string command;  // as typed, the program without its folder; "": not known
  std::string started;  // UTC, "2026-11-17T11:22:33Z"
  std::string ended;    // the last time that the stretch was heard of: its start, a checkpoint, its end
  int64_t from_step = 0;
  int64_t to_step = 0;  // at `ended`
};

nlohmann::ordered_json to_json(const Stretch& stretch);
Stretch read_stretch(const nlohmann::ordered_json& object, const std::string& where);

// Neighbours that differ in nothing but command, time and steps become one: a run that was stopped ten times on one
// machine is still one thing to say.
std::vector<Stretch> joined(const std::vector<Stretch>& stretches);

// The builds, each once, in order.
std::vector<Build> builds_of(const std::vector<Stretch>& stretches);

std::string utc_now();
// A process as it was called, quoted for a shell where needed; "" where the system does not say. 0: this one.
std::string command_line(int64_t process = 0);

}  // namespace siamese::runs
