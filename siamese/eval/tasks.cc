#include "siamese/eval/tasks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <ATen/ATen.h>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/data/prepare.h"
#include "siamese/eval/likelihood.h"
#include "siamese/eval/task_answers.h"
#include "siamese/eval/task_metrics.h"
#include "siamese/eval/task_requests.h"
#include "siamese/eval/task_shares.h"
#include "siamese/eval/words.h"
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
          TaskObserver& observer, comm::Group* group)
      : model_(model),
        tasks_(tasks),
        set_(set),
        kept_(kept),
        observer_(observer),
        group_(group),
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
  using Batch = std::vector<size_t>;
  // Batches of one kind: which are known, how one is made, how many requests it has. They are those of the whole set,
  // whatever is known of it: so neither an interruption nor the number of ranks changes a bit.
  struct Work {
    std::vector<Batch> batches;
    std::function<bool(const Batch&)> is_known;
    std::function<runs::ScoresLine(const Batch&)> make;
    std::function<int64_t(const Batch&)> requests;
  };

  bool score(const TaskPart& part) {
    std::optional<LikelihoodScorer> scorer;  // made when something is left to score
    const auto make = [&](const Batch& batch) {
      if (!scorer) scorer.emplace(model_, part.groups);
      runs::ScoresLine line{.part = part.name, .documents = {}, .numbers = scorer->score(batch), .texts = {}};
      for (const size_t index : batch) line.documents.push_back(id_of(part, index));
      return line;
    };
    const auto requests = [&](const Batch& batch) {
      int64_t count = 0;
      for (const size_t index : batch) count += static_cast<int64_t>(part.groups[index].size());
      return count;
    };
    return finish({batches_of(part.groups, model_.config().context),
                   [&](const Batch& batch) { return is_known(part, batch); }, make, requests});
  }

  bool is_known(const TaskPart& part, const Batch& batch) const {
    return std::all_of(batch.begin(), batch.end(), [&](size_t index) {
      const auto* const known = kept_.numbers(part.name, id_of(part, index));
      return known != nullptr && known->size() == part.groups[index].size();
    });
  }
  int64_t id_of(const TaskPart& part, size_t index) const { return set_.documents[part.documents[index]].id; }

  bool answer() {
    const auto is_known = [&](const Batch& batch) {
      return std::all_of(batch.begin(), batch.end(),
                         [&](size_t at) { return kept_.text(kAnswers, set_.documents[at].id) != nullptr; });
    };
    const auto make = [&](const Batch& batch) {
      runs::ScoresLine line{.part = kAnswers, .documents = {}, .numbers = {}, .texts = {}};
      line.texts = generate_answers(model_, tasks_, set_, batch);
      for (const size_t at : batch) line.documents.push_back(set_.documents[at].id);
      return line;
    };
    return finish({answer_batches(set_, answered_), is_known, make,
                   [](const Batch& batch) { return static_cast<int64_t>(batch.size()); }});
  }

  // In rounds: each rank makes one batch, then all have them. False when an observer stopped it.
  bool finish(const Work& work) {
    const std::string known = known_batches(work);
    std::vector<const Batch*> round;
    for (size_t i = 0; i < work.batches.size(); ++i) {
      if (known[i] == kKnown) {
        count(work, work.batches[i]);
        continue;
      }
      round.push_back(&work.batches[i]);
      if (round.size() == ranks() && !make_round(work, std::exchange(round, {}))) return false;
    }
    return round.empty() || make_round(work, round);
  }

  bool make_round(const Work& work, const std::vector<const Batch*>& round) {
    if (stopped()) return false;
    const size_t mine = group_ == nullptr ? 0 : static_cast<size_t>(group_->rank());
    std::vector<runs::ScoresLine> lines(round.size());
    if (mine < round.size()) lines[mine] = work.make(*round[mine]);
    if (group_ != nullptr) lines = shared_lines(*group_, std::move(lines), mine);
    for (size_t i = 0; i < round.size(); ++i) {
      kept_.add(std::move(lines[i]));
      count(work, *round[i]);
    }
    return true;
  }

  // Rank 0 has the file: its word counts on all.
  std::string known_batches(const Work& work) const {
    std::string known;
    for (const Batch& batch : work.batches) known += work.is_known(batch) ? kKnown : kLeft;
    return group_ == nullptr ? known : comm::from_leader(*group_, known);
  }

  bool stopped() const {
    double stop = observer_.stop() ? 1 : 0;
    if (group_ != nullptr) comm::sum(*group_, std::span(&stop, 1));
    return stop > 0;
  }

  void count(const Work& work, const Batch& batch) {
    done_ += work.requests(batch);
    observer_.progressed(set_, done_, all_);
  }

  size_t ranks() const { return group_ == nullptr ? 1 : static_cast<size_t>(group_->size()); }

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
  static constexpr char kKnown = '1', kLeft = '0';

  const models::LanguageModel& model_;
  const Tasks& tasks_;
  const TaskSet& set_;
  KeptScores& kept_;
  TaskObserver& observer_;
  comm::Group* group_;  // null: one process
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
                                              const TaskSet& set, const fs::path& folder, TaskObserver& observer,
                                              comm::Group* group) {
  runs::ScoresHead head{.task = set.name, .set = set.hash, .tokenizer = tasks.tokenizer().hash()};
  head.limit = tasks.options().limit;
  head.context = model.config().context;
  const bool keeps = !folder.empty() && (group == nullptr || group->leads());
  if (keeps) head.weights = weights_hash(model);
  KeptScores kept(keeps ? folder : fs::path(), head);
  TaskRun run(model, tasks, set, kept, observer, group);
  if (!run.finish()) return std::nullopt;
  return run.record();
}

}  // namespace siamese::eval
