#include "siamese/eval/tasks.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/data/prepare.h"
#include "siamese/eval/likelihood.h"
#include "siamese/eval/task_answers.h"
#include "siamese/eval/task_metrics.h"
#include "siamese/eval/task_requests.h"
#include "siamese/eval/words.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/checksum.h"
#include "siamese/io/json_lines.h"

namespace siamese::eval {
namespace {

namespace fs = std::filesystem;

// The scores of a set that are known, and the file they go to.
class KeptScores {
 public:
  KeptScores(const fs::path& folder, const runs::ScoresHead& head) {
    if (folder.empty()) return;
    io::make_directory(folder);
    const fs::path file = folder / scores_file_name(head.task);
    std::optional<runs::Scores> scores = runs::read_scores(file);
    const bool same = scores && scores->head == head;
    writer_.emplace(
        io::JsonLinesWriter::open(file, same ? io::JsonLinesWriter::Mode::append : io::JsonLinesWriter::Mode::replace));
    if (!same) {
      writer_->write(runs::to_line(head));
      return;
    }
    for (runs::ScoresLine& line : scores->lines) know(std::move(line));
  }

  void add(runs::ScoresLine line) {
    if (writer_) writer_->write(runs::to_line(line));
    know(std::move(line));
  }

  const std::vector<double>* numbers(const std::string& part, int64_t document) const {
    return found(numbers_, part, document);
  }
  const std::string* text(const std::string& part, int64_t document) const { return found(texts_, part, document); }

 private:
  template <class Value>
  using ByDocument = std::map<std::pair<std::string, int64_t>, Value>;

  template <class Value>
  static const Value* found(const ByDocument<Value>& values, const std::string& part, int64_t document) {
    const auto entry = values.find({part, document});
    return entry == values.end() ? nullptr : &entry->second;
  }
  void know(runs::ScoresLine line) {
    for (size_t i = 0; i < line.documents.size(); ++i) {
      const std::pair key(line.part, line.documents[i]);
      if (i < line.numbers.size()) numbers_.emplace(key, std::move(line.numbers[i]));
      if (i < line.texts.size()) texts_.emplace(key, std::move(line.texts[i]));
    }
  }

  std::optional<io::JsonLinesWriter> writer_;
  ByDocument<std::vector<double>> numbers_;
  ByDocument<std::string> texts_;
};

// One set on its way: requests that are answered, those that are left.
class TaskRun {
 public:
  TaskRun(const models::LanguageModel& model, const Tasks& tasks, const TaskSet& set, KeptScores& kept,
          TaskObserver& observer)
      : model_(model),
        tasks_(tasks),
        set_(set),
        kept_(kept),
        observer_(observer),
        requests_(encode_requests(tasks, set, model.config())),
        answered_(documents_to_answer(set, tasks.options().generate)),
        all_(requests_.count() + static_cast<int64_t>(answered_.size())) {}

  // False when the observer stopped it.
  bool finish() {
    observer_.progressed(set_, 0, all_);
    for (const TaskPart& part : requests_.parts) {
      if (!score(part)) return false;
    }
    return answer();
  }

  runs::TaskRecord record() const {
    std::vector<DocumentScore> scores;
    for (size_t i = 0; i < requests_.asked.size(); ++i) scores.push_back(score_of(i));
    runs::TaskRecord record{.name = set_.name, .primary = set_.primary};
    record.documents = static_cast<int64_t>(scores.size());
    record.left_out = set_.incomplete + static_cast<int64_t>(set_.documents.size() - requests_.asked.size());
    record.metrics = task_metrics(scores, set_.of_choices);
    return record;
  }

 private:
  // Batches are those of the whole set, whatever is known of it: so an interruption changes no bit.
  bool score(const TaskPart& part) {
    std::optional<LikelihoodScorer> scorer;  // made when something is left to score
    for (const std::vector<size_t>& batch : batches_of(part.groups, model_.config().context)) {
      if (!is_known(part, batch)) {
        if (observer_.stop()) return false;
        if (!scorer) scorer.emplace(model_, part.groups);
        runs::ScoresLine line{.part = part.name, .documents = {}, .numbers = scorer->score(batch), .texts = {}};
        for (const size_t index : batch) line.documents.push_back(id_of(part, index));
        kept_.add(std::move(line));
      }
      for (const size_t index : batch) done_ += static_cast<int64_t>(part.groups[index].size());
      observer_.progressed(set_, done_, all_);
    }
    return true;
  }

  bool is_known(const TaskPart& part, const std::vector<size_t>& batch) const {
    return std::all_of(batch.begin(), batch.end(), [&](size_t index) {
      const auto* const known = kept_.numbers(part.name, id_of(part, index));
      return known != nullptr && known->size() == part.groups[index].size();
    });
  }
  int64_t id_of(const TaskPart& part, size_t index) const { return set_.documents[part.documents[index]].id; }

  bool answer() {
    for (const std::vector<size_t>& batch : answer_batches(set_, answered_)) {
      const bool known = std::all_of(batch.begin(), batch.end(),
                                     [&](size_t at) { return kept_.text(kAnswers, set_.documents[at].id) != nullptr; });
      if (!known) {
        if (observer_.stop()) return false;
        runs::ScoresLine line{.part = kAnswers, .documents = {}, .numbers = {}, .texts = {}};
        line.texts = generate_answers(model_, tasks_, set_, batch);
        for (const size_t at : batch) line.documents.push_back(set_.documents[at].id);
        kept_.add(std::move(line));
      }
      done_ += static_cast<int64_t>(batch.size());
      observer_.progressed(set_, done_, all_);
    }
    return true;
  }

  DocumentScore score_of(size_t asked) const {
    const TaskDocument& document = set_.documents[requests_.asked[asked]];
    DocumentScore score;
    score.label = document.label.value_or(0);
    const auto* const given = kept_.numbers("choices", document.id);
    const auto* const alone = kept_.numbers("unconditional", document.id);
    const auto* const domain = kept_.numbers("domain", document.id);
    for (size_t i = 0; i < document.choices.size(); ++i) {
      ChoiceScore choice = measured(document.choices[i].continuation);
      choice.tokens = requests_.token_counts[asked][i];
      choice.likelihood = given->at(i);
      if (alone != nullptr) choice.unconditional = alone->at(i);
      if (domain != nullptr) choice.domain = domain->at(i);
      score.choices.push_back(choice);
    }
    if (const std::string* const said = kept_.text(kAnswers, document.id)) {
      score.answered = says_answer(*said, document.answers);
    }
    return score;
  }

  static constexpr const char* kAnswers = "answers";

  const models::LanguageModel& model_;
  const Tasks& tasks_;
  const TaskSet& set_;
  KeptScores& kept_;
  TaskObserver& observer_;
  TaskRequests requests_;
  std::vector<size_t> answered_;  // documents of the set that an answer is generated to
  int64_t all_;
  int64_t done_ = 0;
};

}  // namespace

Tasks::Tasks(const std::vector<fs::path>& folders, const fs::path& tokenizer, TaskOptions options)
    : options_(options),
      tokenizer_(new text::Tokenizer(text::Tokenizer::open(tokenizer))),
      end_of_text_(known_end_of_text(*tokenizer_, is_folder(tokenizer) ? tokenizer / "tokenizer.json" : tokenizer)) {
  std::set<std::string> names;
  for (const fs::path& given : folders) {
    for (const fs::path& folder : find_task_sets(given)) {
      sets_.push_back(read_task_set(folder, options.limit));
      if (!names.insert(sets_.back().name).second) {
        throw UsageError(folder.string() + ": there are two sets of the name " + sets_.back().name);
      }
    }
  }
}

uint64_t weights_hash(const models::Model& model) {
  io::Checksum hash;
  for (const auto& parameter : model.parameters().list()) {
    const at::Tensor value = parameter.value.detach().to(at::kCPU).contiguous();
    hash.add({static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()});
  }
  return hash.value();
}

std::string scores_file_name(const std::string& task) {
  std::string name;
  for (const char c : task) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    name += plain ? c : '_';
  }
  return name + ".jsonl";
}

std::optional<runs::TaskRecord> evaluate_task(const models::LanguageModel& model, const Tasks& tasks,
                                              const TaskSet& set, const fs::path& folder, TaskObserver& observer) {
  runs::ScoresHead head{.task = set.name, .set = set.hash, .tokenizer = tasks.tokenizer().hash()};
  head.limit = tasks.options().limit;
  head.context = model.config().context;
  if (!folder.empty()) head.weights = weights_hash(model);
  KeptScores kept(folder, head);
  TaskRun run(model, tasks, set, kept, observer);
  if (!run.finish()) return std::nullopt;
  return run.record();
}

}  // namespace siamese::eval
