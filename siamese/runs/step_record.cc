#include "siamese/runs/step_record.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "siamese/runs/fields.h"
#include "siamese/runs/lines.h"
#include "siamese/runs/plain_step.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStepKind = "step";

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

Json site_json(const SiteRecord& site) {
  auto streams = Json::array();
  for (const StreamRecord& stream : site.streams) {
    streams.push_back({{"name", stream.name}, {"before", stream.before}, {"after", stream.after}});
  }
  return {{"site", site.site},
          {"block", site.block},
          {"kind", site.kind},
          {"grad_norm", site.grad_norm},
          {"branch_in", site.branch_in},
          {"branch_out", site.branch_out},
          {"streams", std::move(streams)}};
}

SiteRecord read_site(const Json& object, const std::string& where, Notes* notes) {
  const Fields fields(object, where, notes);
  SiteRecord site;
  fields.take("site", site.site);
  fields.take("block", site.block);
  fields.take("kind", site.kind);
  fields.take("grad_norm", site.grad_norm);
  fields.take("branch_in", site.branch_in);
  fields.take("branch_out", site.branch_out);
  fields.attempt("streams", [&] {
    for (const Json& stream : fields.list("streams")) {
      const Fields of(stream, where + ": streams", notes);
      StreamRecord& read = site.streams.emplace_back();
      of.take("name", read.name);
      of.take("before", read.before);
      of.take("after", read.after);
    }
  });
  return site;
}

ExpertRecord read_experts(const Json& object, const std::string& where, Notes* notes) {
  const Fields fields(object, where, notes);
  ExpertRecord block;
  fields.take("block", block.block);
  fields.attempt("load", [&] { block.load = fields.numbers("load"); });
  return block;
}

// Numbers that not every family has.
NamedNumbers read_extra(const Fields& fields) {
  static constexpr std::array kOwn = {
      "schema",  "kind",         "checksum",      "step",    "tokens",      "loss",   "lr",      "grad_norm",
      "step_ms", "tokens_per_s", "samples_per_s", "skipped", "skip_reason", "skip_z", "experts", "sites"};
  NamedNumbers extra;
  for (const auto& [key, value] : fields.json().items()) {
    if (std::find(kOwn.begin(), kOwn.end(), key) != kOwn.end()) continue;
    fields.attempt(key.c_str(), [&, &key = key] { extra.emplace_back(key, fields.number(key.c_str())); });
  }
  return extra;
}

}  // namespace

std::string to_line(const StepRecord& record) {
  Json line = {{"step", record.step},
               {"tokens", record.tokens},
               {"loss", record.loss},
               {"grad_norm", record.grad_norm},
               {"lr", record.lr},
               {"tokens_per_s", std::round(record.tokens_per_s)},
               {"samples_per_s", rounded(record.samples_per_s, 100)},
               {"step_ms", rounded(record.step_ms, 100)},
               {"skipped", record.skipped}};
  if (record.skipped) line["skip_reason"] = record.skip_reason;
  if (std::isfinite(record.skip_z)) line["skip_z"] = record.skip_z;
  for (const auto& [name, value] : record.extra) line[name] = value;
  for (const ExpertRecord& block : record.experts) {
    std::vector<double> shares = block.load;
    for (double& share : shares) share = rounded(share, 1e5);
    line["experts"].push_back({{"block", block.block}, {"load", shares}});
  }
  for (const SiteRecord& site : record.sites) line["sites"].push_back(site_json(site));
  return sealed_line(kStepKind, line);
}

StepRecord read_step(std::string_view line, const std::string& where, Notes* notes) {
  if (std::optional<StepRecord> plain = read_plain_step(line)) return *std::move(plain);
  return read_any_step(line, where, notes);
}

StepRecord read_any_step(std::string_view line, const std::string& where, Notes* notes) {
  const Json object = open_line(line, kStepKind, where);
  const Fields fields(object, where, notes);
  StepRecord record;
  record.step = fields.whole("step");
  if (record.step < 1) fields.wrong("step", "a whole number >= 1");
  fields.take("tokens", record.tokens);
  fields.take("loss", record.loss);
  fields.take("grad_norm", record.grad_norm);
  fields.take("lr", record.lr);
  fields.take("tokens_per_s", record.tokens_per_s);
  fields.take("samples_per_s", record.samples_per_s);
  fields.take("step_ms", record.step_ms);
  fields.take("skipped", record.skipped);
  fields.take("skip_reason", record.skip_reason);
  fields.take("skip_z", record.skip_z);
  record.extra = read_extra(fields);
  fields.attempt("experts", [&] {
    for (const Json& block : fields.list("experts"))
      record.experts.push_back(read_experts(block, where + ": experts", notes));
  });
  fields.attempt("sites", [&] {
    for (const Json& site : fields.list("sites")) record.sites.push_back(read_site(site, where + ": sites", notes));
  });
  return record;
}

}  // namespace siamese::runs
