#include "siamese/report/analysis_page.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "siamese/base/check.h"
#include "siamese/base/path_kind.h"
#include "siamese/base/utf8.h"
#include "siamese/io/atomic_file.h"
#include "siamese/io/result_file.h"
#include "siamese/report/analysis_charts.h"
#include "siamese/report/assets.h"
#include "siamese/report/page.h"
#include "siamese/report/page_numbers.h"

namespace siamese::report {

namespace analysis_detail {

using nlohmann::json;

json line_object(const DepthLine& line) {
  return {{"name", line.name}, {"x", numbers(line.x, kCurveDigits)}, {"y", numbers(line.y, kCurveDigits)}};
}

json chart_object(const DepthChart& chart) {
  json panels = json::array();
  for (const auto& panel : chart.panels) {
    json lines = json::array();
    for (const DepthLine& line : panel) lines.push_back(line_object(line));
    panels.push_back(std::move(lines));
  }
  return {{"title", chart.title},   {"lead", chart.lead},           {"x_label", chart.x_label},   {"log", chart.log},
          {"points", chart.points}, {"from_zero", chart.from_zero}, {"panels", std::move(panels)}};
}

const char* axis_name(MapAxis axis) {
  switch (axis) {
    case MapAxis::place:
      return "place";
    case MapAxis::block:
      return "block";
    case MapAxis::head:
      return "head";
    case MapAxis::stream:
      return "stream";
    case MapAxis::first:
      return "first";
    case MapAxis::last:
      return "last";
  }
  return "";
}

json map_object(const DepthMap& map) {
  json panels = json::array();
  for (const MapPanel& panel : map.panels) {
    if (panel.rows == 0) {
      panels.push_back(nullptr);
      continue;
    }
    panels.push_back(
        {{"rows", panel.rows}, {"columns", panel.columns}, {"values", numbers(panel.values, kDepthDigits)}});
  }
  return {{"title", map.title},        {"lead", map.lead},
          {"row", axis_name(map.row)}, {"column", axis_name(map.column)},
          {"by_row", map.by_row},      {"panels", std::move(panels)}};
}

// As a stretch of training is (page_provenance.h), for the same script.
json maker_object(const std::optional<runs::AnalysisMaker>& maker) {
  if (!maker) return nullptr;
  return {{"build", maker->build.text()},  {"cpu", maker->cpu},       {"simd", maker->simd},
          {"precision", maker->precision}, {"device", maker->device}, {"threads", maker->threads},
          {"command", maker->command}};
}

json analysis_object(const runs::AnalysisRecord& analysis) {
  json sites = json::array();
  for (const runs::PlaceAnalysis& place : analysis.places) {
    json streams = json::array();
    for (const runs::StreamAnalysis& stream : place.streams) streams.push_back(stream.name);
    sites.push_back({{"block", place.block}, {"kind", place.kind}, {"streams", std::move(streams)}});
  }
  json peaks = json::array();
  for (const runs::PeakAnalysis& peak : analysis.peaks) {
    peaks.push_back({{"place", peak.place},
                     {"stream", peak.stream},
                     {"value", number(peak.value)},
                     {"sample", peak.sample},
                     {"position", peak.position},
                     {"channel", peak.channel},
                     {"token", peak.token},
                     {"text", peak.text},
                     {"loss_mean", number(peak.loss_mean)},
                     {"loss_zero", number(peak.loss_zero)}});
  }
  return {{"run", analysis.run},
          {"made_by", maker_object(analysis.made_by)},
          {"scheme", analysis.scheme},
          {"family", analysis.family},
          {"step", analysis.step},
          {"parameters", analysis.parameters},
          {"width", analysis.width},
          {"blocks", analysis.blocks},
          {"data", analysis.data},
          {"samples", analysis.samples},
          {"lens_tokens", analysis.lens_tokens},
          {"changed_samples", analysis.changed_samples},
          {"loss", number(analysis.loss)},
          {"changed_loss", number(analysis.changed_loss)},
          {"effective_depth", number(analysis.effective_depth)},
          {"sites", std::move(sites)},
          {"peaks", std::move(peaks)}};
}

std::string title_of(const std::vector<DrawnAnalysis>& analyses) {
  if (analyses.size() > 1) return fmt::format("{} analyses compared", analyses.size());
  return "Analysis of " + printable(analyses.front().record.run);
}

json sections_of(const std::vector<DrawnAnalysis>& analyses) {
  std::vector<runs::AnalysisRecord> records;
  for (const DrawnAnalysis& analysis : analyses) records.push_back(analysis.record);
  json sections = json::array();
  for (const DepthSection& section : analysis_sections(records)) {
    json charts = json::array();
    for (const DepthChart& chart : section.charts) charts.push_back(chart_object(chart));
    sections.push_back(
        {{"id", section.id}, {"title", section.title}, {"charts", std::move(charts)}, {"maps", json::array()}});
  }
  for (const DepthMap& map : analysis_maps(analyses)) {
    auto section =
        std::find_if(sections.begin(), sections.end(), [&](const json& one) { return one["id"] == map.section; });
    if (section == sections.end()) {
      sections.push_back({{"id", map.section},
                          {"title", map.section == "similarity" ? "Similarity of places" : "Maps"},
                          {"charts", json::array()},
                          {"maps", json::array()}});
      section = sections.end() - 1;
    }
    (*section)["maps"].push_back(map_object(map));
  }
  return sections;
}

std::string number_or_dash(double value, const char* unit = "") {
  return std::isfinite(value) ? fmt::format("{:.4g}{}", value, unit) : "-";
}

}  // namespace analysis_detail

std::string analysis_summary(const runs::AnalysisRecord& analysis) {
  std::string text = fmt::format("{}: {}, {}, step {}, held-out loss {} over {} samples\n", printable(analysis.run),
                                 printable(analysis.scheme), printable(analysis.family), analysis.step,
                                 analysis_detail::number_or_dash(analysis.loss), analysis.samples);
  if (analysis.places.empty()) return text;
  const runs::PlaceAnalysis& close = analysis.places.back();
  for (const runs::StreamAnalysis& stream : close.streams) {
    text += fmt::format("stream {} at the close: norm {}, largest value {}", printable(stream.name),
                        analysis_detail::number_or_dash(stream.values.norm),
                        analysis_detail::number_or_dash(stream.values.max));
    if (std::isfinite(stream.share)) text += fmt::format(", share in the output {:.3f}", stream.share);
    if (close.streams.size() > 1 && std::isfinite(stream.lens.agreement)) {
      text += fmt::format(", read alone agrees with the output for {:.1f} % of {}", 100 * stream.lens.agreement,
                          analysis.family == "vit" ? "images" : "tokens");
    }
    text += "\n";
  }
  if (std::isfinite(analysis.effective_depth)) {
    text += fmt::format("effective depth: {:.0f} of {} sites\n", analysis.effective_depth, 2 * analysis.blocks);
  }
  const runs::PlaceAnalysis* worst = nullptr;
  for (const runs::PlaceAnalysis& place : analysis.places) {
    if (!place.branch || !std::isfinite(place.branch->loss_without)) continue;
    if (worst == nullptr || place.branch->loss_without > worst->branch->loss_without) worst = &place;
  }
  if (worst != nullptr) {
    text +=
        fmt::format("loss of {}: {} with all, at most {} without one sublayer ({} of block {})\n",
                    analysis.changed_samples == 1 ? "1 sample" : fmt::format("{} samples", analysis.changed_samples),
                    analysis_detail::number_or_dash(analysis.changed_loss),
                    analysis_detail::number_or_dash(worst->branch->loss_without), printable(worst->kind), worst->block);
  }
  return text;
}

std::string unlike(const std::vector<DrawnAnalysis>& analyses) {
  std::string said;
  const auto see = [&](const char* what, const auto& value_of) {
    const std::string first = value_of(analyses.front().record);
    for (const DrawnAnalysis& analysis : analyses) {
      const std::string other = value_of(analysis.record);
      if (other == first) continue;
      said += fmt::format("{}{} ({} and {})", said.empty() ? "not of the same: " : ", ", what, first, other);
      break;
    }
  };
  const auto count = [&](const char* what, int64_t runs::AnalysisRecord::*field) {
    see(what, [field](const runs::AnalysisRecord& record) { return std::to_string(record.*field); });
  };
  see("data", [](const runs::AnalysisRecord& record) { return '"' + printable(record.data) + '"'; });
  count("samples", &runs::AnalysisRecord::samples);
  count("tokens of a sample", &runs::AnalysisRecord::tokens);
  count("tokens read by lenses", &runs::AnalysisRecord::lens_tokens);
  count("changed samples", &runs::AnalysisRecord::changed_samples);
  return said;
}

void check_one_family(const std::vector<DrawnAnalysis>& analyses) {
  for (const DrawnAnalysis& analysis : analyses) {
    const runs::AnalysisRecord &first = analyses.front().record, &other = analysis.record;
    if (other.family == first.family) continue;
    throw UsageError(fmt::format("analyses of different families share no page: {} is of {}, {} of {}", first.run,
                                 first.family, other.run, other.family));
  }
}

std::string analysis_page(const std::vector<DrawnAnalysis>& analyses) {
  if (analyses.empty()) throw UsageError("analysis page: expected an analysis or more, got none");
  check_one_family(analyses);
  using nlohmann::json;
  const std::string title = analysis_detail::title_of(analyses);
  json data{{"title", title}, {"analyses", json::array()}, {"sections", analysis_detail::sections_of(analyses)}};
  std::string summary;
  if (const std::string said = unlike(analyses); !said.empty()) {
    data["unlike"] = said;
    summary += said + "\n";
  }
  for (const DrawnAnalysis& analysis : analyses) {
    data["analyses"].push_back(analysis_detail::analysis_object(analysis.record));
    summary += analysis_summary(analysis.record) + "\n";
  }
  const std::string text = data.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  return render_page(title + " - siamese", escape_json_for_script(text), summary, analysis_script_text());
}

void write_analysis_page(const std::filesystem::path& file, const std::vector<DrawnAnalysis>& analyses) {
  io::check_result_file(file, "page of an analysis", io::holds_text(std::string(kPageMark)));
  io::write_file_atomic(file, analysis_page(analyses));
}

}  // namespace siamese::report
