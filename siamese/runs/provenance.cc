#include "siamese/runs/provenance.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/runs/fields.h"
#include "siamese/runs/source.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

std::string quoted(const std::string& argument) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%^";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// Same program, same machine, same way of running.
bool is_alike(const Stretch& a, const Stretch& b) {
  return a.build == b.build && a.simd == b.simd && a.precision == b.precision && a.device == b.device &&
         a.threads == b.threads && a.ranks == b.ranks && a.cpu == b.cpu;
}

}  // namespace

std::string Build::text() const {
  constexpr size_t kShown = 10;
  std::string source;
  if (!commit.empty())
    source = fmt::format(" ({}{})", commit.substr(0, kShown), dirty.empty() ? "" : ", changed " + dirty);
  return fmt::format("siamese {}{}{}", version, source, libtorch.empty() ? "" : ", LibTorch " + libtorch);
}

Build this_source() {
  return {.version = kSourceVersion, .commit = kSourceCommit, .dirty = kSourceDirty, .libtorch = ""};
}

Json to_json(const Stretch& stretch) {
  Json object = {{"version", stretch.build.version}};
  if (!stretch.build.commit.empty()) object["commit"] = stretch.build.commit;
  if (!stretch.build.dirty.empty()) object["dirty"] = stretch.build.dirty;
  object["libtorch"] = stretch.build.libtorch;
  object["simd"] = stretch.simd;
  object["precision"] = stretch.precision;
  object["device"] = stretch.device;
  object["threads"] = stretch.threads;
  object["ranks"] = stretch.ranks;
  object["cpu"] = stretch.cpu;
  object["command"] = stretch.command;
  object["started"] = stretch.started;
  object["ended"] = stretch.ended;
  object["from_step"] = stretch.from_step;
  object["to_step"] = stretch.to_step;
  return object;
}

Stretch read_stretch(const Json& object, const std::string& where) {
  const Fields fields(object, where);
  Stretch stretch{.build = {.version = fields.text("version"), .libtorch = fields.text("libtorch")},
                  .simd = fields.text("simd"),
                  .precision = fields.text("precision"),
                  .device = fields.text("device"),
                  .threads = fields.count("threads"),
                  .ranks = fields.count("ranks"),
                  .cpu = fields.text("cpu"),
                  .command = fields.text("command"),
                  .started = fields.text("started"),
                  .ended = fields.text("ended"),
                  .from_step = fields.count("from_step"),
                  .to_step = fields.count("to_step")};
  fields.take("commit", stretch.build.commit);
  fields.take("dirty", stretch.build.dirty);
  return stretch;
}

std::vector<Stretch> joined(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> result;
  for (const Stretch& stretch : stretches) {
    if (result.empty() || !is_alike(result.back(), stretch)) {
      result.push_back(stretch);
    } else {
      result.back().ended = stretch.ended;
      result.back().to_step = stretch.to_step;
    }
  }
  return result;
}

std::vector<Build> builds_of(const std::vector<Stretch>& stretches) {
  std::vector<Build> builds;
  for (const Stretch& stretch : stretches) {
    if (std::find(builds.begin(), builds.end(), stretch.build) == builds.end()) builds.push_back(stretch.build);
  }
  return builds;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string command_line(int64_t process) {
  const std::string name = process == 0 ? "self" : std::to_string(process);
  std::ifstream stream("/proc/" + name + "/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::string text;
  for (size_t from = 0; from < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', from), bytes.size());
    const std::string argument = bytes.substr(from, end - from);
    // The folder of the program says more about the machine than about the run.
    text += from == 0 ? quoted(std::filesystem::path(argument).filename().string()) : " " + quoted(argument);
    from = end + 1;
  }
  return text;
}

}  // namespace siamese::runs
