// What the files of a run hold, so that a run that goes on another day notices when they are not what they were.
// Where they lie does not count: sizes and hashes are compared, in order.
//
// A file of at most 64 MiB is hashed whole, until 1 GiB has been; any other by blocks (io/file_hash.h). So a start
// reads little of a large corpus, and a change of a few bytes inside a large file may go unnoticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/io/file_hash.h"

namespace siamese::data {

struct FileIdentity {
  std::string path;  // to show
  io::FileHash content;
};

struct DataIdentity {
  std::vector<FileIdentity> train;
  std::vector<FileIdentity> val;  // empty when the held-out part lies in the training files

  bool empty() const { return train.empty() && val.empty(); }
};

// Of every file that `config` reads, in the order in which it reads them; of what the engine makes itself, nothing. The
// images of a folder count with their class. Of more than 10,000 files, those of one folder are one entry.
DataIdentity identity_of(const DataConfig& config);

// nullopt when both hold the same. Otherwise one line about the first file that differs, which names it.
std::optional<std::string> difference(const DataIdentity& then, const DataIdentity& now);

}  // namespace siamese::data
