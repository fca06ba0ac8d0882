#include "siamese/eval/task_shares.h"

#include <cstring>
#include <string>

namespace siamese::eval {
namespace task_shares {

// Values one after the other, lists and texts after their length.
class Packed {
 public:
  Packed() = default;
  explicit Packed(std::string bytes) : bytes_(std::move(bytes)) {}

  template <class Number>
  void put(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class Value>
  void put(const std::vector<Value>& list) {
    put(list.size());
    for (const Value& value : list) put(value);
  }

  template <class Number>
  void take(Number& number) {
    std::memcpy(&number, bytes_.data() + at_, sizeof number);
    at_ += sizeof number;
  }
  void take(std::string& text) {
    size_t length = 0;
    take(length);
    text = bytes_.substr(at_, length);
    at_ += length;
  }
  template <class Value>
  void take(std::vector<Value>& list) {
    size_t length = 0;
    take(length);
    list.resize(length);
    for (Value& value : list) take(value);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

std::string packed(const runs::ScoresLine& line) {
  Packed packed;
  packed.put(line.part);
  packed.put(line.documents);
  packed.put(line.numbers);
  packed.put(line.texts);
  return packed.bytes();
}

runs::ScoresLine unpacked(const std::string& bytes) {
  Packed packed(bytes);
  runs::ScoresLine line;
  packed.take(line.part);
  packed.take(line.documents);
  packed.take(line.numbers);
  packed.take(line.texts);
  return line;
}

}  // namespace task_shares

std::vector<runs::ScoresLine> shared_lines(comm::Group& group, std::vector<runs::ScoresLine> lines, size_t mine) {
  const bool made = mine < lines.size();
  const auto all = comm::gather(group, made ? task_shares::packed(lines[mine]) : std::string());
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    if (rank != mine) lines[rank] = task_shares::unpacked(all[rank]);
  }
  return lines;
}

}  // namespace siamese::eval
