// A tokenizer and sets of questions, made by the test: letters a to m, a space, "ab" and <s>, which begins a text.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "siamese/base/check.h"

namespace siamese::eval {

class TaskFiles : public ::testing::Test {
 protected:
  TaskFiles() {
    const auto* const info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::temp_directory_path() /
             ("siamese_tasks_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    write("tokenizer.json",
          R"({"version": "1.0", "truncation": null, "padding": null,
              "added_tokens": [{"id": 15, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
                                "normalized": false, "special": true}],
              "normalizer": null, "pre_tokenizer": null, "decoder": null,
              "post_processor": {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [15], "tokens": ["<s>"]}}},
              "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6, "h": 7, "i": 8,
                "j": 9, "k": 10, "l": 11, "m": 12, " ": 13, "ab": 14, "<s>": 15}, "merges": ["a b"]}})");
  }
  ~TaskFiles() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name, std::ios::binary) << content;
  }

  static std::string request(int64_t document, int64_t index, const std::string& context,
                             const std::string& continuation, const std::string& label,
                             const std::string& type = "loglikelihood", const std::string& more = "") {
    return R"({"request_type": ")" + type + R"(", "doc": {}, "request": {"context": ")" + context +
           R"(", "continuation": ")" + continuation + "\"" + more + R"(}, "idx": )" + std::to_string(index) +
           R"(, "doc_id": )" + std::to_string(document) + R"(, "label": )" + label + "}\n";
  }

  // Three documents of two and three choices, with their unconditional halves.
  void write_set(const std::string& name = "animals/rc") const {
    std::string lines;
    for (const int64_t offset : {0, 1'000'000}) {
      const bool asks = offset == 0;
      lines += request(offset + 0, 0, asks ? "abc de" : "de", " ab", "1");
      lines += request(offset + 0, 1, asks ? "abc de" : "de", " fghi", "1");
      lines += request(offset + 4, 0, asks ? "kab mm" : "mm", " ij", "0");
      lines += request(offset + 4, 1, asks ? "kab mm" : "mm", " jab", "0");
      lines += request(offset + 4, 2, asks ? "kab mm" : "mm", " d", "0");
      lines += request(offset + 9, 0, asks ? "c" : "a", " l", "1");
      lines += request(offset + 9, 1, asks ? "cf" : "a", " lk", "1");
    }
    write(name + "/requests.jsonl", lines);
    write(name + "/config.json",
          R"({"task_name": "animals", "task_config": {"primary_metric": "acc_per_char", "num_shots": 0}})");
  }

  std::filesystem::path folder;
};

}  // namespace siamese::eval
