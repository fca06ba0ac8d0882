#include "siamese/eval/changes.h"

#include <algorithm>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

namespace siamese::eval {

namespace changes_detail {

// Remembers the streams at every place, and what is handed on there beside them; at the close nothing is.
class Keep : public models::Intervention {
 public:
  residual::Streams between(size_t, residual::Streams streams) override {
    places.push_back(streams);
    return streams;
  }
  std::vector<at::Tensor> carry(size_t, std::vector<at::Tensor> carry) override {
    carries.push_back(carry);
    return carry;
  }

  std::vector<residual::Streams> places;
  std::vector<std::vector<at::Tensor>> carries;
};

class Changed : public models::Intervention {
 public:
  Changed(const Change& change, const Keep& kept) : change_(change), kept_(kept) {}

  size_t first_site() const override { return change_.first; }
  residual::Streams between(size_t next, residual::Streams streams) override {
    residual::Streams now = next == change_.first ? kept_.places[next] : std::move(streams);
    if (change_.kind == Change::Kind::leave_out) return now;
    const bool levels = change_.kind == Change::Kind::channel_mean || change_.kind == Change::Kind::channel_zero;
    if (levels && next != change_.first) return now;
    now = residual::flush(now);
    for (residual::Stream& stream : now.list) {
      if (stream.name != change_.stream) continue;
      if (levels) {
        stream.value = levelled(stream.value);
        continue;
      }
      if (!held_.defined()) held_ = change_.kind == Change::Kind::freeze ? stream.value : at::zeros_like(stream.value);
      stream.value = held_;
    }
    return now;
  }
  std::vector<at::Tensor> carry(size_t next, std::vector<at::Tensor> carry) override {
    return next == change_.first ? kept_.carries[next] : carry;
  }
  bool leaves_out(const residual::Site& site) override {
    const auto index = static_cast<size_t>(site.index);
    return change_.kind == Change::Kind::leave_out && index >= change_.first && index < change_.last;
  }

 private:
  at::Tensor levelled(const at::Tensor& values) const {
    const at::Tensor own = values.clone(), channel = own.select(-1, change_.channel);
    channel.fill_(change_.kind == Change::Kind::channel_mean ? channel.to(at::kDouble).mean().item<double>() : 0.0);
    return own;
  }

  const Change& change_;
  const Keep& kept_;
  at::Tensor held_;
};

double loss_sum(const models::Model& model, const GivenBatch& batch, models::Intervention* intervention) {
  return model.losses(batch.inputs, {.stack = {.intervention = intervention}}).loss.item<double>();
}

}  // namespace changes_detail

std::vector<Change> sublayers_left_out(int64_t blocks) {
  std::vector<Change> changes;
  for (size_t site = 0; site < static_cast<size_t>(2 * blocks); ++site) {
    changes.push_back({.first = site, .last = site + 1});
  }
  return changes;
}

std::vector<Change> ranges_left_out(int64_t blocks, bool all) {
  std::vector<Change> changes;
  for (int64_t count = 1; count <= blocks; count += all ? 1 : count) {
    for (int64_t first = 0; first + count <= blocks; ++first) {
      changes.push_back({.first = static_cast<size_t>(2 * first), .last = static_cast<size_t>(2 * (first + count))});
    }
  }
  return changes;
}

std::vector<Change> streams_cut(const models::Model& model, const GivenBatch& batch, bool all_sites) {
  constexpr size_t kMostStreamsCut = 4;
  const c10::NoGradGuard no_grad;
  changes_detail::Keep keep;
  model.state(batch.given, {.intervention = &keep});
  std::vector<Change> changes;
  for (size_t place = 0; place < keep.places.size(); place += all_sites ? 1 : 2) {
    const auto& streams = keep.places[place].list;
    if (streams.size() < 2) continue;
    for (size_t i = 0; i < std::min(streams.size(), kMostStreamsCut); ++i) {
      changes.push_back({.kind = Change::Kind::zero, .first = place, .stream = streams[i].name});
      if (place + 1 == keep.places.size()) continue;  // nothing comes after the close that it could be held against
      changes.push_back({.kind = Change::Kind::freeze, .first = place, .stream = streams[i].name});
    }
  }
  return changes;
}

ChangedLosses::ChangedLosses(const models::Model& model, std::vector<Change> changes)
    : model_(model), changes_(std::move(changes)), sums_(changes_.size() + 1, 0.0) {}

void ChangedLosses::add(const GivenBatch& batch, const std::function<void()>& step) {
  const c10::NoGradGuard no_grad;
  changes_detail::Keep keep;
  sums_.back() += changes_detail::loss_sum(model_, batch, &keep);
  for (size_t i = 0; i < changes_.size(); ++i) {
    changes_detail::Changed changed(changes_[i], keep);
    sums_[i] += changes_detail::loss_sum(model_, batch, &changed);
    if (step) step();
  }
  weight_ += batch.weight;
}

}  // namespace siamese::eval
