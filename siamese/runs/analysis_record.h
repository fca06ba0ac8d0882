// analysis.json: what `siamese analyze` measured inside a model (docs/analyze.md has the definition of every number).
// A number that was not measured, or is not finite, is kNone here and null in the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "siamese/runs/numbers.h"
#include "siamese/runs/provenance.h"

namespace siamese::runs {

// 1: without made_by; 2: without branch_cosine and effective_depth, and the text of a token, and without a checksum of
// the file, which may be missing in a later one, too, where somebody took it out to edit a number
inline constexpr int64_t kAnalysisSchema = 3;
inline constexpr std::string_view kAnalysisFile = "analysis.json";
inline constexpr std::string_view kAnalysisTensors = "analysis.safetensors";
inline constexpr std::string_view kAnalysisPage = "analysis.html";

// Of the values of a stream or a branch at one place, over all tokens.
struct ValueStatistics {
  double norm = kNone;  // mean over the tokens
  double rms = kNone;
  double max = kNone;       // of the absolute values
  double kurtosis = kNone;  // 3 for a normal distribution

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("norm", self.norm);
    visit("rms", self.rms);
    visit("max", self.max);
    visit("kurtosis", self.kurtosis);
  }
};

// The output read here, beside that of the whole model.
struct LensRecord {
  double agreement = kNone;  // share of the same first choice; lm, moe, vit
  double kl = kNone;         // KL(whole model || lens), in nats; lm, moe, vit
  double distance = kNone;   // |lens - whole|^2 / |whole|^2; dit
  double loss = kNone;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("agreement", self.agreement);
    visit("kl", self.kl);
    visit("distance", self.distance);
    visit("loss", self.loss);
  }
};

struct StreamAnalysis {
  std::string name;
  ValueStatistics values;
  double token_mean = kNone;     // share of the mean of a sample's tokens in their squares
  double next_cosine = kNone;    // with itself at the next place
  double branch_cosine = kNone;  // with what the branch that reads here gives
  double gradient = kNone;       // norm
  LensRecord lens;               // of this stream's term alone
  double share = kNone;          // in the branch input; at the close, in the output
  double weight = kNone;         // the scheme's own weight in the read, where it computes one
  double loss_zeroed = kNone;    // with zeros in its place from here on
  double loss_frozen = kNone;    // held from here on at what it is here

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("values", self.values);
    visit("token_mean", self.token_mean);
    visit("next_cosine", self.next_cosine);
    visit("branch_cosine", self.branch_cosine);
    visit("gradient", self.gradient);
    visit("lens", self.lens);
    visit("share", self.share);
    visit("weight", self.weight);
    visit("loss_zeroed", self.loss_zeroed);
    visit("loss_frozen", self.loss_frozen);
  }
};

// Two streams at one place.
struct PairAnalysis {
  std::string first, second;
  double cosine = kNone;  // mean over the tokens

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("first", self.first);
    visit("second", self.second);
    visit("cosine", self.cosine);
  }
};

struct BranchAnalysis {
  ValueStatistics input, output;
  double input_gradient = kNone;      // norm, of what the read gave
  double parameter_gradient = kNone;  // norm, of the site's own parameters
  double mix_distance = kNone;        // of the mixing of streams from the identity
  double loss_without = kNone;        // the sublayer left out
  double routing_entropy = kNone;     // moe: of the experts' loads, 1 where all are alike
  double largest_load = kNone;        // moe: of an expert, 1 where all are alike
  double sink_first = kNone;          // attention: weight on the first token, mean over the heads
  double sink_largest = kNone;        // attention: on the token with the largest value
  double sink_rate = kNone;           // attention: share of the heads that have a sink at the first token

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("input", self.input);
    visit("output", self.output);
    visit("input_gradient", self.input_gradient);
    visit("parameter_gradient", self.parameter_gradient);
    visit("mix_distance", self.mix_distance);
    visit("loss_without", self.loss_without);
    visit("routing_entropy", self.routing_entropy);
    visit("largest_load", self.largest_load);
    visit("sink_first", self.sink_first);
    visit("sink_largest", self.sink_largest);
    visit("sink_rate", self.sink_rate);
  }
};

// Before the read of a site, or, as the last, before the close.
struct PlaceAnalysis {
  int64_t index = 0;
  int64_t block = 0;  // at the close: the number of blocks
  std::string kind;   // attention, ffn or close
  std::vector<StreamAnalysis> streams;
  std::vector<PairAnalysis> pairs;
  LensRecord lens;                       // of all streams
  double rank = kNone;                   // effective, of the states that the lens reads
  double entropy = kNone;                // of their spectrum, in nats
  std::optional<BranchAnalysis> branch;  // not at the close

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("index", self.index);
    visit("block", self.block);
    visit("kind", self.kind);
    visit("streams", self.streams);
    visit("pairs", self.pairs);
    visit("lens", self.lens);
    visit("rank", self.rank);
    visit("entropy", self.entropy);
    visit("branch", self.branch);
  }
};

// Blocks first ... first + blocks - 1 left out.
struct RangeAnalysis {
  int64_t first = 0, blocks = 0;
  double loss = kNone;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("first", self.first);
    visit("blocks", self.blocks);
    visit("loss", self.loss);
  }
};

// One of the largest values of a stream.
struct PeakAnalysis {
  int64_t place = 0;
  std::string stream;
  double value = kNone;
  int64_t sample = 0, position = 0, channel = 0;
  int64_t token = -1;        // its id; -1: of an image
  std::string text;          // the token's; empty where tokens are numbers only
  double loss_mean = kNone;  // its channel of the stream set to its mean here; of the largest of a few channels
  double loss_zero = kNone;  // to zero

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("place", self.place);
    visit("stream", self.stream);
    visit("value", self.value);
    visit("sample", self.sample);
    visit("position", self.position);
    visit("channel", self.channel);
    visit("token", self.token);
    visit("text", self.text);
    visit("loss_mean", self.loss_mean);
    visit("loss_zero", self.loss_zero);
  }
};

// Who measured. No times: the same command gives the same bytes.
struct AnalysisMaker {
  Build build;
  std::string simd, precision, device, cpu;
  int64_t threads = 0;
  std::string command;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("version", self.build.version);
    visit("commit", self.build.commit);
    visit("dirty", self.build.dirty);
    visit("libtorch", self.build.libtorch);
    visit("simd", self.simd);
    visit("precision", self.precision);
    visit("device", self.device);
    visit("cpu", self.cpu);
    visit("threads", self.threads);
    visit("command", self.command);
  }
};

struct AnalysisRecord {
  std::string run;                       // the checkpoint
  std::optional<AnalysisMaker> made_by;  // none: not known
  std::string scheme, family;
  int64_t step = 0, parameters = 0, width = 0, blocks = 0;
  std::string data;
  int64_t samples = 0, tokens = 0;    // looked at; tokens of each sample
  int64_t lens_tokens = 0;            // read out by the lens, in all (images: samples)
  int64_t changed_samples = 0;        // of the passes that are changed, and of the gradients
  double loss = kNone;                // of all samples
  double changed_loss = kNone;        // of changed_samples, with nothing changed
  double effective_depth = kNone;     // the place from which on lenses stay near the output
  std::vector<PlaceAnalysis> places;  // by depth; the last is the close
  std::vector<RangeAnalysis> ranges;
  std::vector<PeakAnalysis> peaks;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("run", self.run);
    visit("made_by", self.made_by);
    visit("scheme", self.scheme);
    visit("family", self.family);
    visit("step", self.step);
    visit("parameters", self.parameters);
    visit("width", self.width);
    visit("blocks", self.blocks);
    visit("data", self.data);
    visit("samples", self.samples);
    visit("tokens", self.tokens);
    visit("lens_tokens", self.lens_tokens);
    visit("changed_samples", self.changed_samples);
    visit("loss", self.loss);
    visit("changed_loss", self.changed_loss);
    visit("effective_depth", self.effective_depth);
    visit("places", self.places);
    visit("ranges", self.ranges);
    visit("peaks", self.peaks);
  }
};

std::string to_json(const AnalysisRecord& record);  // the text of the file
// DataError naming `where` unless it is one of this schema, or of one before, each field there and of its type, and
// none besides.
AnalysisRecord read_analysis(std::string_view text, const std::string& where);

// Of a folder that `siamese analyze` wrote.
AnalysisRecord read_analysis_file(const std::filesystem::path& folder);

}  // namespace siamese::runs
