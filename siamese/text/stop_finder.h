// The first of several texts in a text that comes in pieces. What may still become one of them is held back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace siamese::text {

class StopFinder {
 public:
  // Empty texts are left out: they would end everything before it begins.
  explicit StopFinder(std::vector<std::string> stops);

  // What of the text so far certainly lies before the first of them, and was not returned yet.
  std::string add(std::string_view piece);
  bool found() const { return found_; }
  // What was held back, when no more comes; "" after one was found.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace siamese::text
