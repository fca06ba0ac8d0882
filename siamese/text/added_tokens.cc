#include "siamese/text/added_tokens.h"

#include <algorithm>

#include "siamese/text/characters.h"

namespace siamese::text {
namespace {

size_t spaces_at_end(std::string_view text) {
  size_t kept = text.size();
  while (kept > 0 && (kinds()[last_character(text.substr(0, kept))] & kSpace) != 0) {
    do {
      --kept;
    } while ((static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80);
  }
  return kept;
}

size_t spaces_at_start(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && (kinds()[first_character(text.substr(at))] & kSpace) != 0) at += character_bytes(text[at]);
  return at;
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const auto is_word = [](uint32_t character) { return (kinds()[character] & kWord) != 0; };
  return (begin == 0 || !is_word(last_character(text.substr(0, begin)))) &&
         (end == text.size() || !is_word(first_character(text.substr(end))));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(const std::vector<Entry>& entries) : nodes_(1), from_root_(256) {
  for (const Entry& entry : entries) {
    uint32_t node = 0;
    for (const char c : entry.content) {
      const auto byte = static_cast<unsigned char>(c);
      uint32_t next = child(node, byte);
      if (next == 0) {
        next = static_cast<uint32_t>(nodes_.size());
        nodes_.push_back({byte, 0, nodes_[node].first_child, nullptr});
        nodes_[node].first_child = next;
      }
      node = next;
    }
    nodes_[node].token = entry.token;
  }
  for (unsigned byte = 0; byte < from_root_.size(); ++byte)
    from_root_[byte] = child(0, static_cast<unsigned char>(byte));
}

uint32_t AddedTokenFinder::child(uint32_t node, unsigned char byte) const {
  uint32_t next = nodes_[node].first_child;
  while (next != 0 && nodes_[next].byte != byte) next = nodes_[next].next_sibling;
  return next;
}

const AddedToken* AddedTokenFinder::longest_at(std::string_view text, size_t at, size_t& end) const {
  const AddedToken* longest = nullptr;
  uint32_t node = from_root_[static_cast<unsigned char>(text[at])];
  for (size_t next = at + 1; node != 0; ++next) {
    if (nodes_[node].token != nullptr) {
      longest = nodes_[node].token;
      end = next;
    }
    if (next >= text.size()) break;
    node = child(node, static_cast<unsigned char>(text[next]));
  }
  return longest;
}

void AddedTokenFinder::split(std::string_view text,
                             const std::function<void(const AddedToken*, size_t, size_t)>& use) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size() && !empty();) {
    if (from_root_[static_cast<unsigned char>(text[at])] == 0) {
      ++at;
      continue;
    }
    size_t end = 0;
    const AddedToken* const token = longest_at(text, at, end);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    at = end;
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) begin = std::max(spaces_at_end(text.substr(0, begin)), done);
    if (token->rstrip) end += spaces_at_start(text.substr(end));
    if (done < begin) use(nullptr, done, begin);
    use(token, begin, end);
    done = end;
  }
  if (done < text.size()) use(nullptr, done, text.size());
}

}  // namespace siamese::text
