// The layout of a run directory, known to every verb that takes RUN:
//   config.yaml  metrics.jsonl  eval.jsonl  run.json  report.html; of a run that has one, tokenizer.json
//   latest                  text, the name of the newest checkpoint: "step500\n"
//   samples/                step{N}.png, what a diffusion model drew at its evaluations
//   tasks/step{N}/          *.jsonl, what `siamese eval --tasks` asked of a checkpoint and what came of it
//   analysis/step{N}/       analysis.json, .safetensors and .html, what `siamese analyze` found in a checkpoint
//   step{N}/                config.yaml  model.safetensors  optim.safetensors  trainer.json; stands alone
//                           ema.safetensors too, when averaged weights are kept, and tokenizer.json, when the run
//                           has one; trainer.json then names them in `files`. Of several ranks, shards with an index
//                           stand in the place of each .safetensors file
// and of the folder of a sweep, which holds run directories:
//   sweep.json  recorded.jsonl  report.html
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace siamese::io {

inline constexpr std::string_view kSafetensorsEnding = ".safetensors";
inline constexpr std::string_view kConfigFile = "config.yaml";
inline constexpr std::string_view kMetricsFile = "metrics.jsonl";
inline constexpr std::string_view kEvalFile = "eval.jsonl";
inline constexpr std::string_view kRunFile = "run.json";
inline constexpr std::string_view kLatestFile = "latest";
inline constexpr std::string_view kReportFile = "report.html";
inline constexpr std::string_view kModelFile = "model.safetensors";
inline constexpr std::string_view kModelIndexFile = "model.safetensors.index.json";  // of shards, in its place
inline constexpr std::string_view kOptimFile = "optim.safetensors";
inline constexpr std::string_view kAverageFile = "ema.safetensors";
inline constexpr std::string_view kSamplesFolder = "samples";
inline constexpr std::string_view kTasksFolder = "tasks";
inline constexpr std::string_view kAnalysisFolder = "analysis";
inline constexpr std::string_view kTrainerFile = "trainer.json";
inline constexpr std::string_view kTokenizerFile = "tokenizer.json";
inline constexpr std::string_view kSweepFile = "sweep.json";
inline constexpr std::string_view kRecordedFile = "recorded.jsonl";

// Of a file of tensors that several ranks wrote: "optim.safetensors" -> "optim-00001-of-00004.safetensors" of rank 0,
// and "optim.safetensors.index.json".
std::string shard_name(std::string_view file, int rank, int ranks);
std::string index_name(std::string_view file);
// Whether a name is one of these, for one of the files of a checkpoint.
bool is_shard_or_index(std::string_view name);
// The file of that name in a folder, or its index, where that is there instead.
std::filesystem::path file_or_index(const std::filesystem::path& folder, std::string_view file);

std::string checkpoint_name(int64_t step);                      // 500 -> "step500"
std::optional<int64_t> checkpoint_step(std::string_view name);  // "step500" -> 500; nullopt for any other text

// `latest`, written atomically. Reading: nullopt when there is none, DataError when it holds anything but a name.
void write_latest(const std::filesystem::path& run_dir, std::string_view name);
std::optional<std::string> read_latest(const std::filesystem::path& run_dir);

// What a checkpoint must hold: the weights are enough to evaluate or start from, the whole to resume.
enum class CheckpointUse { weights, resume };

// The files that `checkpoint` lacks for `use`; empty when it is complete.
std::vector<std::string> missing_files(const std::filesystem::path& checkpoint, CheckpointUse use);

// RUN -> the folder of a checkpoint complete for `use`: the folder itself, or the one its `latest` names (without a
// `latest`, the newest complete one). DataError saying what is missing.
std::filesystem::path resolve_checkpoint(const std::filesystem::path& run_or_checkpoint,
                                         CheckpointUse use = CheckpointUse::weights);

// Steps of the checkpoints that can be resumed from, ascending; empty when the folder has none or is missing.
std::vector<int64_t> list_checkpoints(const std::filesystem::path& run_dir);

}  // namespace siamese::io
