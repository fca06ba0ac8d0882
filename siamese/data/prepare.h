// Text files -> shards of tokens that a run trains on (prepared.h has the layout).
//
// Documents are read in the order of the inputs, encoded by several threads and written in the same order, each with
// the end-of-text token after it: the result does not depend on the number of threads. A document is held out when a
// hash of its text, as a number in [0, 1), is below val_fraction: equal documents are on the same side. What was
// written is noted every few seconds; a process that was stopped or killed is gone on with by the same call, to the
// same bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "siamese/data/documents.h"
#include "siamese/data/prepared.h"
#include "siamese/text/tokenizer.h"

namespace siamese::data {

struct PrepareOptions {
  std::vector<std::string> inputs;  // files, folders, globs
  std::filesystem::path tokenizer;  // tokenizer.json, or a folder with one
  std::filesystem::path out;
  DocumentOptions documents;
  std::string eos;              // "": what tokenizer_config.json beside the tokenizer says, else a usual name
  double val_fraction = 0.005;  //
  uint64_t shard_tokens = uint64_t{1} << 28;
  int threads = 1;
  size_t batch_bytes = size_t{16} << 20;  // of documents in memory at a time
  bool strict = false;                    // the first bad line is an error
};

struct PrepareCounts {
  uint64_t bytes = 0;  // of the input files, done
  uint64_t total_bytes = 0;
  uint64_t tokens = 0;
  uint64_t documents = 0;
  uint64_t bad = 0;
};

class PrepareObserver {
 public:
  virtual ~PrepareObserver() = default;
  virtual void progressed(const PrepareCounts&) {}
  virtual bool stop() { return false; }  // asked between batches: what is done is kept, to go on later
};

// The manifest, complete unless the observer stopped it. UsageError when `out` holds something else or was begun with
// another request.
Manifest prepare(const PrepareOptions& options, PrepareObserver& observer);

// The id of the token that ends a document. UsageError when it cannot be told or is not in the tokenizer.
text::TokenId end_of_text(const text::Tokenizer& tokenizer, const std::filesystem::path& file,
                          const std::string& named);

}  // namespace siamese::data
