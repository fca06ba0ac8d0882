#include <cmath>
#include <cstdio>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/cli/byte_size.h"
#include "siamese/cli/paths.h"
#include "siamese/cli/short_count.h"
#include "siamese/cli/table.h"
#include "siamese/cli/verbs.h"
#include "siamese/io/strict_json.h"
#include "siamese/plan/plan.h"
#include "siamese/train/needs.h"

namespace siamese::cli {
namespace plan_verb {

using nlohmann::ordered_json;

struct Arguments {
  std::string config;
  std::vector<std::string> overrides;
  plan::Machine machine;
  std::string memory = "80GB";
  std::string flops = "312T";
  std::string memory_rate = "2TB/s";
  std::string link = "25GB/s";
  std::string node_link = "300GB/s";
  std::string disk = "5GB/s";
  double latency_us = 20;
  double restart_minutes = 10;
  std::optional<int64_t> micro_batch;
  bool json = false;
};

plan::Machine machine_of(const Arguments& arguments) {
  plan::Machine machine = arguments.machine;
  machine.memory_bytes = static_cast<double>(byte_size("--device-memory", arguments.memory));
  if (machine.memory_bytes < 1e6) {  // 80 alone is 80 bytes, and nobody means that
    throw UsageError("--device-memory: expected a size such as 80GB, got '" + arguments.memory + "'");
  }
  machine.flops_each_second = operation_rate("--device-flops", arguments.flops);
  machine.memory_bytes_each_second = byte_rate("--memory-rate", arguments.memory_rate);
  machine.link_bytes_each_second = byte_rate("--link", arguments.link);
  machine.node_link_bytes_each_second = byte_rate("--node-link", arguments.node_link);
  machine.disk_bytes_each_second = byte_rate("--disk", arguments.disk);
  machine.latency_seconds = arguments.latency_us * 1e-6;
  machine.restart_seconds = arguments.restart_minutes * 60;
  return machine;
}

// One config on one machine, with everything that is printed of it.
struct Found {
  train::RunConfig config;
  train::Needs needs;
  plan::Machine machine;
  std::vector<plan::Plan> plans;
  plan::Saving saving;
};

Found find(const Arguments& arguments) {
  Found found{.config = load_run_config(arguments.config, arguments.overrides),
              .needs = {},
              .machine = machine_of(arguments),
              .plans = {},
              .saving = {}};
  found.needs = train::needs_of(found.config);
  if (arguments.micro_batch) found.needs.run.micro_batch = *arguments.micro_batch;
  found.plans = plan::plans(found.needs.run, found.machine);
  found.saving = plan::saving(found.needs.run, found.machine);
  return found;
}

ordered_json pass_json(const plan::PassBytes& pass) {
  return {{"fixed_bytes", pass.fixed}, {"bytes_each_sample", pass.each_row}};
}

ordered_json model_json(const Found& found) {
  const train::Needs& needs = found.needs;
  ordered_json parts;
  for (size_t i = 0; i < models::kModelParts; ++i) {
    parts[std::string(enum_text(static_cast<models::ModelPart>(i)))] = needs.parameters_by_part[i];
  }
  const auto steps = static_cast<double>(found.config.train.steps);
  return {{"parameters", needs.parameters},
          {"active_parameters", needs.active_parameters},
          {"trained_parameters", needs.run.trained},
          {"parameters_by_part", parts},
          {"forward_flops_each_token", needs.forward_flops_each_token},
          {"dense_forward_flops_each_token", needs.dense_forward_flops_each_token},
          {"step_flops", needs.step_flops},
          {"run_flops", needs.step_flops * steps},
          {"tokens_each_step", needs.tokens_each_step},
          {"run_tokens", needs.tokens_each_step * steps},
          {"key_value_bytes_each_sequence", needs.key_value_bytes},
          {"activations_kept", pass_json(needs.run.kept)},
          {"activations_recomputed", pass_json(needs.run.recomputed)}};
}

ordered_json machine_json(const plan::Machine& machine) {
  return {{"devices", machine.devices},
          {"nodes", machine.nodes},
          {"memory_bytes", machine.memory_bytes},
          {"usable", machine.usable},
          {"flops_each_second", machine.flops_each_second},
          {"utilization", machine.utilization},
          {"memory_bytes_each_second", machine.memory_bytes_each_second},
          {"node_link_bytes_each_second", machine.node_link_bytes_each_second},
          {"link_bytes_each_second", machine.link_bytes_each_second},
          {"latency_seconds", machine.latency_seconds},
          {"overlap", machine.overlap},
          {"price_each_device_hour", machine.price_each_device_hour},
          {"mean_hours_between_failures", machine.mean_hours_between_failures},
          {"disk_bytes_each_second", machine.disk_bytes_each_second},
          {"restart_seconds", machine.restart_seconds}};
}

ordered_json plan_json(const plan::Plan& plan) {
  return {{"sharding", std::string(enum_text(plan.sharding))},
          {"recompute", plan.recompute},
          {"fits", plan.fits},
          {"micro_batch", plan.micro_batch},
          {"largest_micro_batch", plan.largest_micro_batch},
          {"bytes",
           {{"weights", plan.bytes.weights},
            {"gradients", plan.bytes.gradients},
            {"moments", plan.bytes.moments},
            {"gathered", plan.bytes.gathered},
            {"activations", plan.bytes.activations},
            {"saving", plan.bytes.saving},
            {"total", plan.bytes.total()}}},
          {"sent_bytes", plan.sent_bytes},
          {"communication_seconds", plan.communication_seconds},
          {"exposed_seconds", plan.exposed_seconds},
          {"compute_seconds", plan.compute_seconds},
          {"update_seconds", plan.update_seconds},
          {"step_seconds", plan.step_seconds},
          {"communication_share", plan.communication_share()},
          {"days", plan.days},
          {"price", plan.price}};
}

std::string to_json(const Arguments& arguments, const Found& found) {
  ordered_json json = {{"schema", 1},
                       {"kind", "plan"},
                       {"config", arguments.config},
                       {"overrides", arguments.overrides},
                       {"residual", found.config.model.residual},
                       {"family", std::string(enum_text(found.config.model.family))},
                       {"precision", std::string(enum_text(found.config.engine.precision))},
                       {"model", model_json(found)},
                       {"machine", machine_json(found.machine)},
                       {"checkpoint",
                        {{"bytes", found.saving.checkpoint_bytes},
                         {"write_seconds", found.saving.write_seconds},
                         {"mean_seconds_between_failures", found.saving.failure_seconds},
                         {"interval_seconds", found.saving.interval_seconds},
                         {"lost_share", found.saving.lost_share}}}};
  for (const auto& plan : found.plans) json["plans"].push_back(plan_json(plan));
  return io::json_text(json) + "\n";
}

std::string gigabytes(double bytes) { return fmt::format("{:.3g}", bytes / 1e9); }

std::string bytes_text(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.4g} MB", bytes / 1e6) : fmt::format("{:.4g} GB", bytes / 1e9);
}

std::string seconds_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", 1e3 * seconds);
  if (seconds < 60) return fmt::format("{:.3g} s", seconds);
  if (seconds < 3600) return fmt::format("{:.3g} min", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{:.3g} h", seconds / 3600);
  return fmt::format("{:.3g} days", seconds / 86400);
}

std::string parts_text(const Found& found) {
  std::string text;
  for (size_t i = 0; i < models::kModelParts; ++i) {
    const auto part = static_cast<models::ModelPart>(i);
    const int64_t count = found.needs.parameters_by_part[i];
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", enum_text(part), short_count(static_cast<double>(count)));
  }
  const bool tied = !found.config.model.sees_images() && found.config.model.tied;
  return text + (tied ? " (the embedding is the head)" : "");
}

std::string pass_text(const plan::PassBytes& pass) { return bytes_text(pass.of(1)); }

std::vector<std::vector<std::string>> facts(const Found& found) {
  const train::Needs& needs = found.needs;
  const train::RunConfig& config = found.config;
  const auto steps = static_cast<double>(config.train.steps);
  const auto parameters = static_cast<double>(needs.parameters);
  const bool sparse = needs.active_parameters < needs.parameters;
  const double backward_too = 3;
  const auto each_token = [&](double forward) { return short_count(backward_too * forward); };
  std::vector<std::vector<std::string>> rows = {
      {"scheme", fmt::format("{}, family {}, {}", config.model.residual, enum_text(config.model.family),
                             enum_text(config.engine.precision))},
      {"parameters",
       fmt::format("{} ({}){}", needs.parameters, short_count(parameters),
                   sparse ? ", active " + short_count(static_cast<double>(needs.active_parameters)) : "")},
      {"", parts_text(found)},
      {"tokens", fmt::format("{} in {} steps of {} x {}", short_count(needs.tokens_each_step * steps),
                             config.train.steps, config.train.batch, config.model.context)},
      {"FLOPs",
       fmt::format("{} a token{}, {} a step, {} in all", each_token(needs.forward_flops_each_token),
                   sparse ? " (" + each_token(needs.dense_forward_flops_each_token) + " if it met all experts)" : "",
                   short_count(needs.step_flops), short_count(needs.step_flops * steps))},
      {"activations", fmt::format("of one sample {} kept, {} with engine.recompute {}", pass_text(needs.run.kept),
                                  pass_text(needs.run.recomputed), std::max<int64_t>(1, config.engine.recompute))}};
  if (needs.key_value_bytes > 0) {
    rows.push_back(
        {"KV cache", fmt::format("{} for a sequence of {} tokens",
                                 bytes_text(static_cast<double>(needs.key_value_bytes)), config.model.context)});
  }
  return rows;
}

std::vector<std::vector<std::string>> machine_facts(const Found& found) {
  const plan::Machine& machine = found.machine;
  const plan::Saving& saving = found.saving;
  return {{"machine",
           fmt::format("devices {}, nodes {}; each {} ({:.3g} of it may be filled) and {}FLOP/s ({:.3g} of it reached)",
                       machine.devices, machine.nodes, bytes_text(machine.memory_bytes), machine.usable,
                       short_count(machine.flops_each_second), machine.utilization)},
          {"checkpoint", fmt::format("{}, {} to write; best every {}; a failure every {}; {:.2g} % of the time lost",
                                     bytes_text(saving.checkpoint_bytes), seconds_text(saving.write_seconds),
                                     seconds_text(saving.interval_seconds), seconds_text(saving.failure_seconds),
                                     100 * saving.lost_share)}};
}

void print_text(const Found& found) {
  auto rows = facts(found);
  for (auto& row : machine_facts(found)) rows.push_back(std::move(row));
  std::printf("%s\n", text_table(rows).c_str());
  const auto name = [](const plan::Plan& plan) {
    return std::vector<std::string>{std::string(enum_text(plan.sharding)), plan.recompute ? "recomputed" : "kept"};
  };
  rows = {{"GB a device", "activations", "weights", "gradients", "moments", "gathered", "activations", "saving",
           "total", "micro-batch", "largest", "fits"}};
  for (const auto& plan : found.plans) {
    auto& row = rows.emplace_back(name(plan));
    for (const double bytes : {plan.bytes.weights, plan.bytes.gradients, plan.bytes.moments, plan.bytes.gathered,
                               plan.bytes.activations, plan.bytes.saving, plan.bytes.total()}) {
      row.push_back(gigabytes(bytes));
    }
    row.insert(row.end(),
               {std::to_string(plan.micro_batch), std::to_string(plan.largest_micro_batch), plan.fits ? "yes" : "no"});
  }
  std::printf("%s\n", text_table(rows).c_str());
  const bool priced = found.machine.price_each_device_hour > 0;
  rows = {{"a step", "activations", "GB sent", "to send", "waits", "computes", "updates", "step", "waiting", "days"}};
  if (priced) rows[0].push_back("price");
  for (const auto& plan : found.plans) {
    auto& row = rows.emplace_back(name(plan));
    row.push_back(gigabytes(plan.sent_bytes));
    for (const double seconds : {plan.communication_seconds, plan.exposed_seconds, plan.compute_seconds,
                                 plan.update_seconds, plan.step_seconds}) {
      row.push_back(seconds_text(seconds));
    }
    row.push_back(fmt::format("{:.1f} %", 100 * plan.communication_share()));
    row.push_back(fmt::format("{:.4g}", plan.days));
    if (priced) row.push_back(fmt::format("{:.0f}", plan.price));
  }
  std::printf("%s", text_table(rows).c_str());
}

void add_machine_options(CLI::App& verb, Arguments& arguments) {
  plan::Machine& machine = arguments.machine;
  constexpr int64_t kMost = 1 << 20;
  const CLI::Range share(1e-6, 1.0);
  verb.add_option("--devices", machine.devices, "Devices that share the batch")->check(CLI::Range(int64_t{1}, kMost));
  verb.add_option("--nodes", machine.nodes, "Equal nodes that they stand in")->check(CLI::Range(int64_t{1}, kMost));
  verb.add_option("--device-memory", arguments.memory, "Memory of a device");
  verb.add_option("--usable", machine.usable, "Share of it that may be filled")->check(share);
  verb.add_option("--device-flops", arguments.flops, "Operations a second of a device at its peak");
  verb.add_option("--utilization", machine.utilization, "Share of them that the products of a step reach")
      ->check(share);
  verb.add_option("--memory-rate", arguments.memory_rate, "What a device reads and writes of its memory");
  verb.add_option("--node-link", arguments.node_link, "What a device sends to others of its node");
  verb.add_option("--link", arguments.link, "What a device sends to other nodes");
  verb.add_option("--latency-us", arguments.latency_us, "Microseconds of a message without content")
      ->check(CLI::Range(0.0, 1e9));
  verb.add_option("--overlap", machine.overlap, "Share of computation that hides communication beside it")
      ->check(CLI::Range(0.0, 1.0));
  verb.add_option("--price", machine.price_each_device_hour, "Of a device for an hour, in any currency")
      ->check(CLI::Range(0.0, 1e9));
  verb.add_option("--mtbf-hours", machine.mean_hours_between_failures, "Mean time between two failures of one device")
      ->check(CLI::Range(1e-3, 1e12));
  verb.add_option("--disk", arguments.disk, "What all devices together write to the file system of checkpoints");
  verb.add_option("--restart-minutes", arguments.restart_minutes, "From a failure to the next step")
      ->check(CLI::Range(0.0, 1e6));
}

}  // namespace plan_verb

void add_plan(CLI::App& app) {
  auto* const verb =
      app.add_subcommand("plan", "Parameters, memory, communication, time and price of a run on many devices");
  const auto arguments = std::make_shared<plan_verb::Arguments>();
  constexpr int64_t kMost = 1 << 20;
  verb->add_option("CONFIG", arguments->config, "A YAML file or the name of a recipe")->required();
  verb->add_option("OVERRIDES", arguments->overrides, "key=value, for any key");
  plan_verb::add_machine_options(*verb, *arguments);
  verb->add_option("--micro-batch", arguments->micro_batch,
                   "Samples of a pass instead of train.micro_batch; 0: as many as fit")
      ->check(CLI::Range(int64_t{0}, kMost));
  verb->add_flag("--json", arguments->json, "One JSON object");
  verb->footer("Example: siamese plan siamese-1.3b --devices 64 --nodes 8 --link 50GB/s --price 2 --micro-batch 0");
  verb->callback([arguments] {
    const plan_verb::Found found = plan_verb::find(*arguments);
    if (arguments->json) {
      std::fputs(plan_verb::to_json(*arguments, found).c_str(), stdout);
    } else {
      plan_verb::print_text(found);
    }
  });
}

}  // namespace siamese::cli
