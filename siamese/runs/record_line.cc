#include "siamese/runs/record_line.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/runs/fields.h"
#include "siamese/runs/lines.h"

namespace siamese::runs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kResultKind = "result";

// Five digits are more than a curve shows; the numbers of the tables stay whole.
Json rounded(const std::vector<double>& values) {
  auto list = Json::array();
  for (const double value : values) {
    list.push_back(std::isfinite(value) ? Json(std::stod(fmt::format("{:.5g}", value))) : Json());
  }
  return list;
}

ThinnedCurve read_curve(const Fields& fields) {
  ThinnedCurve curve;
  double before = 0;
  for (const double step : fields.numbers("steps")) {
    if (!(step > before && step < 1e15 && step == std::floor(step))) fields.wrong("steps", "ascending whole numbers");
    curve.last_step.push_back(static_cast<int64_t>(step));
    before = step;
  }
  curve.loss = fields.numbers("loss");
  curve.grad_norm = fields.numbers("grad_norm");
  if (curve.loss.size() != curve.last_step.size()) fields.wrong("loss", "as many numbers as steps");
  if (curve.grad_norm.size() != curve.last_step.size()) fields.wrong("grad_norm", "as many numbers as steps");
  return curve;
}

NamedNumbers read_numbers(const Fields& fields) {
  NamedNumbers numbers;
  for (const auto& entry : fields.json().items()) numbers.emplace_back(entry.key(), fields.number(entry.key().c_str()));
  return numbers;
}

config::Texts read_config(const Fields& fields) {
  config::Texts config;
  for (const auto& entry : fields.json().items()) config.emplace_back(entry.key(), fields.text(entry.key().c_str()));
  return config;
}

// What a line of schema 1 says of its maker: threads, cpu, and "siamese 0.1.0, LibTorch 2.13.0, AVX3 kernels".
Stretch old_stretch(const Fields& fields) {
  Stretch stretch{.threads = fields.count("threads"), .cpu = fields.text("cpu"), .to_step = fields.count("steps")};
  const std::string text = fields.text("version");
  const auto part = [&](std::string_view before, std::string_view after) -> std::string {
    const size_t found = text.find(before);
    if (found == std::string::npos) return "";
    const size_t from = found + before.size();
    return text.substr(from, text.find(after, from) - from);
  };
  const bool ours = text.starts_with("siamese ");
  stretch.build = {.version = ours ? part("siamese ", ",") : text, .libtorch = part(", LibTorch ", ",")};
  const size_t last = text.rfind(", ");
  if (text.ends_with(" kernels") && last != std::string::npos) {
    stretch.simd = text.substr(last + 2, text.size() - last - 2 - std::string_view(" kernels").size());
  }
  return stretch;
}

std::vector<Stretch> read_stretches(const Fields& fields) {
  if (!fields.has("stretches")) return {old_stretch(fields)};
  std::vector<Stretch> stretches;
  for (const Json& stretch : fields.list("stretches")) {
    stretches.push_back(read_stretch(stretch, fields.where() + ": stretches"));
  }
  return stretches;
}

RunSummary read_summary(const Fields& fields) {
  const auto status = enum_from_text<RunStatus>(fields.text("status"));
  if (status != RunStatus::finished && status != RunStatus::diverged) fields.wrong("status", "finished or diverged");
  RunSummary summary{.status = *status,
                     .message = fields.text("message"),
                     .parameters = fields.whole("parameters"),
                     .steps = fields.whole("steps"),
                     .first_loss = fields.number("first_loss"),
                     .train_loss = fields.number("train_loss"),
                     .eval_step = fields.whole("eval_step"),
                     .val_loss = fields.number("val_loss"),
                     .perplexity = fields.number("perplexity"),
                     .accuracy = {},
                     .measures = {},
                     .seconds = fields.number("seconds"),
                     .step_ms = fields.number("step_ms"),
                     .tokens_per_s = fields.number("tokens_per_s"),
                     .samples_per_s = kNone,
                     .curve = read_curve(fields.object("curve"))};
  if (fields.has("accuracy")) summary.accuracy = read_accuracy(fields.at("accuracy"), fields.where() + ": accuracy");
  if (fields.has("measures")) summary.measures = read_numbers(fields.object("measures"));
  fields.take("samples_per_s", summary.samples_per_s);
  fields.take("baseline", summary.baseline);
  fields.take("step_flops", summary.step_flops);
  return summary;
}

}  // namespace

std::string to_line(const RecordLine& line) {
  const RunSummary& summary = line.summary;
  Json object = {{"sweep", line.sweep},
                 {"dir", line.dir},
                 {"variant", line.variant},
                 {"scheme", line.scheme},
                 {"lr", line.lr},
                 {"seed", line.seed},
                 {"status", std::string(enum_text(summary.status))},
                 {"message", summary.message},
                 {"parameters", summary.parameters},
                 {"steps", summary.steps},
                 {"first_loss", summary.first_loss},
                 {"train_loss", summary.train_loss},
                 {"eval_step", summary.eval_step},
                 {"val_loss", summary.val_loss},
                 {"perplexity", summary.perplexity}};
  if (std::isfinite(summary.baseline)) object["baseline"] = summary.baseline;
  if (std::isfinite(summary.step_flops)) object["step_flops"] = summary.step_flops;
  if (summary.accuracy) object["accuracy"] = to_json(*summary.accuracy);
  for (const auto& [name, value] : summary.measures) object["measures"][name] = value;
  object["seconds"] = summary.seconds;
  object["step_ms"] = summary.step_ms;
  object["tokens_per_s"] = summary.tokens_per_s;
  if (std::isfinite(summary.samples_per_s)) object["samples_per_s"] = summary.samples_per_s;
  auto& stretches = object["stretches"] = Json::array();
  for (const Stretch& stretch : joined(line.stretches)) stretches.push_back(to_json(stretch));
  if (!line.data.empty()) object["data"] = to_json(line.data);
  auto& config = object["config"] = Json::object();
  for (const auto& [key, text] : line.config) config[key] = text;
  object["curve"] = {{"steps", summary.curve.last_step},
                     {"loss", rounded(summary.curve.loss)},
                     {"grad_norm", rounded(summary.curve.grad_norm)}};
  return sealed_line(kResultKind, object);
}

RecordLine read_record_line(std::string_view text, const std::string& where) {
  const Json object = open_line(text, kResultKind, where);
  const Fields fields(object, where);
  if (!fields.has("schema")) fields.wrong("schema", fmt::format("1 or {}", kSchema));
  RecordLine line{.sweep = fields.text("sweep"),
                  .dir = fields.text("dir"),
                  .variant = fields.text("variant"),
                  .scheme = fields.text("scheme"),
                  .lr = fields.number("lr"),
                  .seed = fields.unsigned_whole("seed"),
                  .config = read_config(fields.object("config")),
                  .data = {},
                  .summary = read_summary(fields),
                  .stretches = read_stretches(fields)};
  if (line.dir.empty()) fields.wrong("dir", "the name of a run");
  if (fields.has("data")) line.data = read_data_key(fields.at("data"), where + ": data");
  return line;
}

}  // namespace siamese::runs
