#include "siamese/eval/task_set.h"

#include <set>

#include "fuzz/contract.h"
#include "fuzz/memory_file.h"

namespace siamese::fuzz {
namespace {

void require_sound(const eval::TaskDocument& document, bool of_choices) {
  require(!document.choices.empty() || document.max_tokens > 0, "a document asks for something");
  require(document.label.has_value() == of_choices, "labels are of one kind");
  require(!document.label || (*document.label >= 0 && static_cast<size_t>(*document.label) < document.choices.size()),
          "the label is one of the choices");
  require(document.unconditional.empty() || document.unconditional.size() == document.choices.size(),
          "without the question there are the same choices");
  require(document.line >= 1 && document.id >= 0, "it stands somewhere");
  for (const auto* const choices : {&document.choices, &document.unconditional}) {
    for (const eval::TaskChoice& choice : *choices) {
      require(!choice.continuation.empty() && choice.line >= 1, "a choice is text of a line");
    }
  }
}

}  // namespace

// The first line is config.json ("": there is none), the rest requests.jsonl, packed or not.
void check_task_set(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  const size_t line = std::min(text.find('\n'), text.size());
  const MemoryFile requests(bytes.subspan(std::min(line + 1, bytes.size())));
  const MemoryFile config(bytes.first(line));
  reads_or_refuses([&] {
    const std::filesystem::path about = line == 0 ? "" : config.path();
    const eval::TaskSet set = eval::read_task_files(requests.path(), about, "set");
    require(!set.documents.empty() && set.incomplete >= 0, "there is a document");
    std::set<int64_t> ids;
    for (const eval::TaskDocument& document : set.documents) {
      require_sound(document, set.of_choices);
      require(ids.insert(document.id).second, "no document is there twice");
    }
    const eval::TaskSet first = reads([&] { return eval::read_task_files(requests.path(), about, "set", 1); });
    require(first.documents.size() == 1 && first.documents[0].id == set.documents[0].id && first.hash == set.hash,
            "with a limit it is the same set");
  });
}

}  // namespace siamese::fuzz
