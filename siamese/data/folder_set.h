// data.source=folder: PNG and JPEG images, one subfolder of data.train per class, numbered by name. Files are told by
// their content; others are left alone. Held out: data.val, a folder of the same classes, or else the last
// data.val_fraction of each class. Images are listed in turn, one of each class: the first few are of all classes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "siamese/data/config.h"
#include "siamese/data/dataset.h"
#include "siamese/data/image_set.h"

namespace siamese::data {

// Names of the subfolders, sorted, hidden ones left out; empty when there is no such folder.
std::vector<std::string> class_folders(const std::string& folder);

// The images of each class, by label, of data.train or (test) of data.val, which must be given then; a class that
// data.val lacks has none. `skipped`: how many other files were passed over.
std::vector<std::vector<std::filesystem::path>> folder_files(const DataConfig& config, Split split,
                                                             size_t* skipped = nullptr);

// More subfolders than `classes`, or one without images, is a DataError.
std::unique_ptr<ImageSet> folder_set(const DataConfig& config, Split split, int64_t classes);

}  // namespace siamese::data
