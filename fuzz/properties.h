// What must hold for any bytes, one function per format: the reader either refuses them with an Error that says why, or
// what it returns is sound (views inside the bytes, sizes that agree, print and parse as each other's inverse).
// The fuzzers (entry.cc) feed these with bytes they invent, tests/hostile with bytes that were a problem once.
// A broken property throws std::logic_error; so does nothing else, whatever escapes is a finding.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace siamese::fuzz {

using Bytes = std::span<const std::byte>;

void check_cifar(Bytes bytes);               // the first byte says which kind
void check_completion_request(Bytes bytes);  // the body of a POST to `siamese serve`
void check_compressed(Bytes bytes);          // text, plain or packed by gzip or zstd
void check_idx(Bytes bytes);                 //
void check_jpeg(Bytes bytes);                //
void check_json_lines(Bytes bytes);          //
void check_llama2c(Bytes bytes);             // a model of llama2.c
void check_megatron_index(Bytes bytes);      // NAME.idx beside NAME.bin
void check_npy(Bytes bytes);                 //
void check_override(Bytes bytes);            // "key=value" of the command line
void check_png(Bytes bytes);             // as it is, and with its checksums mended, or few mutations would pass them
void check_run_records(Bytes bytes);     // a line or file of a run directory; as it is, and with its checksum mended
void check_safetensors(Bytes bytes);     //
void check_scheme_text(Bytes bytes);     //
void check_shard_index(Bytes bytes);     // model.safetensors.index.json
void check_task_set(Bytes bytes);        // config.json, then the lines of requests.jsonl
void check_token_file(Bytes bytes);      // the first byte says which vocabulary
void check_tokenizer_file(Bytes bytes);  // tokenizer.json
void check_tokenizer_text(Bytes bytes);  // what is encoded
void check_yaml(Bytes bytes);            //

struct Property {
  std::string_view format;
  void (*check)(Bytes bytes);
};

// All of them, by the names above without `check_`.
const std::vector<Property>& properties();

}  // namespace siamese::fuzz
