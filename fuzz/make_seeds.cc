// Writes small good files of every format into FOLDER/<format>/, for the fuzzers to begin with:
//   make_seeds FOLDER
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/io/jpeg_sample.h"
#include "tests/io/megatron_sample.h"
#include "tests/io/packed_sample.h"

#include "siamese/io/png.h"
#include "siamese/io/safetensors.h"
#include "siamese/runs/analysis_record.h"
#include "siamese/runs/record_line.h"
#include "siamese/runs/run_info.h"
#include "siamese/runs/step_record.h"
#include "siamese/runs/sweep_file.h"

namespace {

using namespace siamese;
namespace fs = std::filesystem;

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) {}

  fs::path next(const std::string& format) {
    fs::create_directories(folder_ / format);
    return folder_ / format / std::to_string(count_++);
  }
  void put(const std::string& format, const std::string& content) {
    std::ofstream(next(format), std::ios::binary) << content;
  }

 private:
  fs::path folder_;
  int count_ = 0;
};

std::string npy(const std::string& descr, const std::string& shape, const std::string& data, char major) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string out = std::string("\x93NUMPY") + major + '\0' + static_cast<char>(header.size()) + '\0';
  if (major > 1) out += std::string(2, '\0');
  return out + header + data;
}

void put_tensors(Seeds& seeds) {
  const std::string data(64, 'x');
  const auto view = [&](const std::string& name, io::DType dtype, std::vector<int64_t> shape, size_t bytes) {
    return io::TensorView{name, dtype, std::move(shape), reinterpret_cast<const std::byte*>(data.data()), bytes};
  };
  using D = io::DType;
  io::write_safetensors(seeds.next("safetensors"), {}, {});
  io::write_safetensors(seeds.next("safetensors"), std::vector{view("w", D::f32, {2, 3}, 24)}, {{"format", "pt"}});
  io::write_safetensors(seeds.next("safetensors"),
                        std::vector{view("a", D::i64, {}, 8), view("b", D::bf16, {0, 4}, 0), view("c", D::u8, {5}, 5)},
                        {{"k", "\xc3\xa9 \"\n"}});
  // Ours carry checksums, at which nearly every mutation ends; these do not.
  const std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[0,4],"data_offsets":[24,24]},"c":{"dtype":"U8","shape":[5],"data_offsets":[24,29]}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  seeds.put("safetensors", length + header + data.substr(0, 29));
}

void put_tokens(Seeds& seeds) {
  const std::string four("\x01\x00\x00\x00\x07\x00\x00\x00", 8);
  for (const char vocab : {0, 1, 2, 3}) {
    const std::string head(1, vocab);
    seeds.put("token_file", head + four);
    for (const auto& [magic, version, count] : {std::tuple{20240520, 1, 4}, {20240801, 7, 2}}) {
      std::string shard(1024, '\0');
      const int32_t fields[] = {magic, version, count};
      std::memcpy(shard.data(), fields, sizeof fields);
      seeds.put("token_file", head + shard + four);
    }
    for (const char* descr : {"<u2", "<i2"}) seeds.put("token_file", head + npy(descr, "(4,)", four, 1));
    for (const char* descr : {"<u8", "<i8"}) seeds.put("token_file", head + npy(descr, "(1,)", four, 1));
    for (const char* descr : {"|u1", "|i1"}) seeds.put("token_file", head + npy(descr, "(8,)", four, 1));
    for (const char* descr : {"<u4", "<i4"}) seeds.put("token_file", head + npy(descr, "(2,)", four, 2));
  }
}

void put_packed(Seeds& seeds) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a line that repeats\n" + std::to_string(i * i);
  for (const std::string& packed : {text, io::gzip_sample(text), io::zstd_sample(text)}) {
    seeds.put("compressed", packed);
    seeds.put("compressed", packed + packed);
  }
  for (const auto& [type, width] : {std::pair{1, 1}, {4, 4}, {8, 2}}) {
    seeds.put("megatron_index", io::megatron_index(static_cast<uint8_t>(type), {3, 0, 4}, static_cast<size_t>(width)));
  }
}

// width 4, hidden 3, a layer, 2 heads, 1 of keys, 5 tokens (with a head of its own when negative), context 6.
void put_llama2c(Seeds& seeds) {
  for (const int32_t vocab : {5, -5}) {
    const int32_t header[] = {4, 3, 1, 2, 1, vocab, 6};
    std::string file(sizeof header, '\0');
    std::memcpy(file.data(), header, sizeof header);
    const size_t floats = 20 + (4 + 16 + 8 + 8 + 16 + 4 + 12 + 12 + 12) + 4 + 12 + (vocab < 0 ? 20 : 0);
    seeds.put("llama2c", file + std::string(4 * floats, 'x'));
  }
}

void put_requests(Seeds& seeds) {
  for (const char* text :
       {R"({"prompt": "a", "max_tokens": 5, "temperature": 0.5, "stop": ["x"], "n": 2, "stream": true})",
        R"({"prompt": [[1, 2], [3]], "logprobs": 1, "echo": true, "max_tokens": 1, "seed": 1234, "top_p": 0.9})"}) {
    seeds.put("completion_request", text);
  }
  const std::string config = R"({"task_name": "cats:mc", "task_config": {"primary_metric": "acc_per_char"}})";
  const auto asked = [](const char* id, const char* index, const char* label) {
    return std::string(R"({"request_type": "loglikelihood", "doc_id": )") + id + R"(, "idx": )" + index +
           R"(, "label": )" + label + R"(, "request": {"context": "a", "continuation": " b"}})" + "\n";
  };
  seeds.put("task_set", config + "\n" + asked("0", "0", "1") + asked("0", "1", "1"));
  seeds.put("task_set", "\n" + asked("3", "0", "0") + asked("1000003", "0", "0") + asked("4", "1", "0"));
  seeds.put("task_set", "\n" + asked("0", "0", R"(["x", "y"])"));
  seeds.put("task_set", R"({"task_config": {"primary_metric": "exact_match"}})"
                        "\n"
                        R"({"request_type": "generate_until", "doc_id": 2, "idx": 0, "label": "x", "request": )"
                        R"({"context": "a", "stop_sequences": ["\n"], "generation_kwargs": {"max_gen_toks": 5}}})"
                        "\n");
}

void put_arrays(Seeds& seeds) {
  seeds.put("npy", npy("<f4", "(2, 3)", std::string(24, 'x'), 1));
  seeds.put("npy", npy("<f8", "()", std::string(8, 'x'), 2));
  seeds.put("npy", npy("|u1", "(0,)", "", 3));
  seeds.put("idx", std::string("\x00\x00\x08\x01\x00\x00\x00\x03", 8) + "abc");
  seeds.put("idx", std::string("\x00\x00\x08\x03\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03", 16) + "abcdef");
  seeds.put("cifar", std::string(1 + 2 * 3073, '\x02'));
  seeds.put("cifar", std::string(1 + 3074, '\x01'));
}

void put_images(Seeds& seeds) {
  for (const int64_t channels : {1, 3}) {
    io::Image image(5, 3, channels);
    for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 37);
    seeds.put("png", io::encode_png(image));
  }
  for (const int components : {1, 3, 4}) {
    const auto pixels = std::vector<unsigned char>(static_cast<size_t>(17 * 9 * components), 99);
    seeds.put("jpeg", io::jpeg_sample(17, 9, components, pixels));
    seeds.put("jpeg", io::jpeg_sample(17, 9, components, pixels, true));
  }
}

void put_texts(Seeds& seeds) {
  for (const char* line : {"{}\n", "{\"step\": 1, \"loss\": 2.5e-3}\n{\"step\": 2, \"loss\": null}\n",
                           "{\"a\": [{\"b\": \"\\u00e9\"}, true]}\n{\"torn\": "}) {
    seeds.put("json_lines", line);
  }
  runs::StepRecord step{.step = 7, .loss = 2.5, .extra = {{"mse", 0.5}}};
  step.sites = {{0, 0, "ffn", 1, 2, 3, {{"X", 1, runs::kNone}}}};
  seeds.put("run_records", runs::to_line(step));
  runs::EvalRecord eval;
  eval.step = 7;
  eval.accuracy = runs::Accuracy{1, 2, {{"+", 1, 1, 2}}};
  seeds.put("run_records", runs::to_line(eval));
  runs::RecordLine line;
  line.dir = "d";
  line.config = {{"a.b", "1"}};
  line.stretches.resize(1);
  line.summary.curve = {{1, 2}, {2, 1}, {1, 1}};
  seeds.put("run_records", runs::to_line(line));
  seeds.put("run_records", runs::to_json(runs::RunInfo{.scheme = "pre", .label = "pre"}));
  seeds.put("run_records", runs::to_json(runs::SweepFile{"s", {{"d", "v", 0.1, 1}}}));
  runs::AnalysisRecord analysis{.run = "x", .made_by = runs::AnalysisMaker{.build = {"0.3.0", "abc", "", "2.13.0"}}};
  analysis.places = {{.kind = "close", .pairs = {{"X", "Y", 1}}}};
  seeds.put("run_records", runs::to_json(analysis));
  for (const char* text : {"pre", "mixln(post=0.5)", "siamese( x = hybrid ,input_norm=false)", "hc(streams=4)"}) {
    seeds.put("scheme_text", text);
  }
  seeds.put("shard_index",
            R"({"metadata": {"total_size": 8}, "weight_map": {"a": "m-1.safetensors", "b": "m.safetensors"}})");
  for (const char* text : {"a=1", "b.c=[1, 2]", "layer.width=64", "m={x: {y: z}}", "t=\"[x]\"", "e="}) {
    seeds.put("override", text);
  }
  for (const char* text :
       {"flag: true\ncount: 4\nbig: -9\nseed: 7\nrate: 2e-3\ntext: \"a: b\"\nshade: dark\n", "names: [x, \"y, z\"]\n",
        "layers:\n  - {width: 3, name: 'it''s'}\n  - width: 4\nlayer:\n  width: 5\n", "rates: [1, 2.5, -3e4]\n",
        "a: &x |\n  block\n  text\nb: >-\n  folded\n  text\n? k\n: !!str v\n", "--- # comment\n<<: {a: ~}\n...\n"}) {
    seeds.put("yaml", text);
  }
}

void put_tokenizers(Seeds& seeds) {
  seeds.put("tokenizer_file",
            R"({"added_tokens":[{"id":3,"content":"<s>","lstrip":true,"special":true}],)"
            R"("normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+"},)"
            R"("behavior":"MergedWithNext","invert":false},"decoder":{"type":"Fuse"},)"
            R"("model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})");
  seeds.put("tokenizer_file",
            R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true},"decoder":{"type":)"
            R"("ByteLevel"},"model":{"type":"BPE","vocab":{"a":0},"merges":[],"ignore_merges":true}})");
  for (const char* text : {"It's 12 o'clock\n\n  x", "caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD<s>"})
    seeds.put("tokenizer_text", text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  Seeds seeds(argv[1]);
  put_tensors(seeds);
  put_tokens(seeds);
  put_packed(seeds);
  put_llama2c(seeds);
  put_requests(seeds);
  put_arrays(seeds);
  put_images(seeds);
  put_texts(seeds);
  put_tokenizers(seeds);
}
