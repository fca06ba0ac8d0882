#include "fuzz/contract.h"

#include "siamese/io/checksum.h"
#include "siamese/runs/analysis_record.h"
#include "siamese/runs/record_line.h"
#include "siamese/runs/run_info.h"
#include "siamese/runs/step_record.h"
#include "siamese/runs/sweep_file.h"

namespace siamese::fuzz {

namespace {

const std::string kWhere = "file: line 1";

// What was read is written, and reads back.
void check_line(const std::string& line) {
  reads_or_refuses([&] {
    const std::string again = runs::to_line(runs::read_step(line, kWhere));
    reads([&] { return runs::read_step(again, kWhere); });
  });
  reads_or_refuses([&] {
    const std::string again = runs::to_line(runs::read_eval(line, kWhere));
    reads([&] { return runs::read_eval(again, kWhere); });
  });
  reads_or_refuses([&] {
    const std::string again = runs::to_line(runs::read_record_line(line, kWhere));
    reads([&] { return runs::read_record_line(again, kWhere); });
  });
  runs::Notes notes;
  reads_or_refuses([&] { runs::read_step(line, kWhere, &notes); });
  reads_or_refuses([&] { runs::read_eval(line, kWhere, &notes); });
  for (const std::string& note : notes) require(note.find('\n') == std::string::npos, "a note is one line");
}

}  // namespace

void check_run_records(Bytes bytes) {
  std::string text(text_of(bytes));
  check_line(text);
  constexpr std::string_view kMark = "\"checksum\":\"";  // mended, or few mutations would pass it
  const size_t mark = text.find(kMark);
  if (mark != std::string::npos && text.size() - mark >= kMark.size() + 16) {
    io::seal(text, kMark);
    check_line(text);
  }
  reads_or_refuses([&] {
    const std::string again = runs::to_json(runs::read_sweep_file(text, kWhere));
    reads([&] { return runs::read_sweep_file(again, kWhere); });
  });
  reads_or_refuses([&] {
    const std::string again = runs::to_json(runs::read_run_info(text, kWhere));
    reads([&] { return runs::read_run_info(again, kWhere); });
  });
  reads_or_refuses([&] {
    const std::string again = runs::to_json(runs::read_analysis(text, kWhere));
    reads([&] { return runs::read_analysis(again, kWhere); });
  });
  runs::Notes notes;
  reads_or_refuses([&] { runs::read_run_info(text, kWhere, &notes); });
}

}  // namespace siamese::fuzz
