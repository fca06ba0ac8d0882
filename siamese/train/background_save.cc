#include "siamese/train/background_save.h"

#include <chrono>

#include "siamese/base/check.h"
#include "siamese/train/failure_text.h"

namespace siamese::train {
namespace fs = std::filesystem;
namespace background_save {

// `work` on a thread of its own. What fails is in what it returns, also a thread that cannot be made.
template <class Work>
auto started(Work work) -> std::future<decltype(work())> {
  std::promise<decltype(work())> failed;
  try {
    return std::async(std::launch::async, std::move(work));
  } catch (const std::exception& error) {
    failed.set_exception(std::make_exception_ptr(SystemError("a thread to save with: " + failure_text(error))));
  }
  return failed.get_future();
}

template <class T>
bool is_ready(const std::future<T>& future) {
  return future.valid() && future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace background_save

std::shared_ptr<BackgroundSave> BackgroundSave::begin(const fs::path& run_dir, const RunConfig& config,
                                                      const RunParts& parts, const TrainerState& state,
                                                      comm::Group* group) {
  std::unique_ptr<io::AtomicDirectory> folder = open_checkpoint(run_dir, state.step, group);
  // From here on the others count on this rank: what fails is for `finish` to say.
  const std::shared_ptr<BackgroundSave> save(
      new BackgroundSave(run_dir, CheckpointContent(config, parts, state, group), group));
  save->folder_path_ = folder->path();
  save->folder_ = std::move(folder);
  save->start();
  return save;
}

std::shared_ptr<BackgroundSave> BackgroundSave::help(const RunConfig& config, const RunParts& parts,
                                                     comm::Group& group) {
  const fs::path folder = told_folder(group);
  if (folder.empty()) return nullptr;
  const std::shared_ptr<BackgroundSave> save(
      new BackgroundSave("", CheckpointContent(config, parts, {}, &group), &group));
  save->folder_path_ = folder;
  save->start();
  return save;
}

// The threads use what is above them in the class: they end before it goes.
BackgroundSave::~BackgroundSave() {
  if (part_.valid()) part_.wait();
  if (whole_.valid()) whole_.wait();
}

void BackgroundSave::start() {
  std::exception_ptr failed;
  try {
    content_.shards.copy();
  } catch (...) {
    failed = std::current_exception();
  }
  const auto write = [this, failed] {
    if (failed) std::rethrow_exception(failed);
    return write_part();
  };
  if (group_ != nullptr) {
    part_ = background_save::started(write);
  } else {
    whole_ = background_save::started([this, write] { return complete(write()); });
  }
}

// The copies are as large as the model: they go as soon as they are written.
std::vector<ShardFile> BackgroundSave::write_part() {
  std::vector<ShardFile> files = content_.write_shards(folder_path_);
  content_.shards = Shards(group_);
  return files;
}

fs::path BackgroundSave::complete(const std::vector<ShardFile>& files) {
  return complete_checkpoint(run_dir_, *folder_, content_, files);
}

bool BackgroundSave::part_is_written() const { return background_save::is_ready(part_); }

void BackgroundSave::join_parts() {
  try {
    const std::vector<ShardFile> files = written_by_all(*group_, [this] { return part_.get(); });
    if (folder_) whole_ = background_save::started([this, files] { return complete(files); });
  } catch (const comm::Unanswered&) {
    throw;
  } catch (const SystemError&) {
    std::promise<fs::path> failed;
    failed.set_exception(std::current_exception());
    whole_ = failed.get_future();
  }
}

bool BackgroundSave::is_done() const { return background_save::is_ready(whole_); }

fs::path BackgroundSave::finish() {
  if (!whole_.valid()) throw SystemError("the other ranks are inside a step and do not say whether they have written");
  return whole_.get();
}

}  // namespace siamese::train
