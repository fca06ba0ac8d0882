#include "siamese/report/analysis_charts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>

namespace siamese::report {

namespace charts_detail {

using Analyses = std::vector<runs::AnalysisRecord>;
using runs::AnalysisRecord;
using runs::PlaceAnalysis;
using runs::StreamAnalysis;

// Lines by name, in the order in which the names come up; numbers that are none leave gaps.
class Lines {
 public:
  void add(const std::string& name, double x, double y) {
    if (!std::isfinite(y)) return;
    if (!at_.contains(name)) {
      at_[name] = lines_.size();
      lines_.push_back({name, {}, {}});
    }
    DepthLine& line = lines_[at_[name]];
    line.x.push_back(x);
    line.y.push_back(y);
  }
  std::vector<DepthLine> take() { return std::move(lines_); }

 private:
  std::vector<DepthLine> lines_;
  std::map<std::string, size_t> at_;
};

// A panel of each analysis, made by draw(analysis, lines).
DepthChart chart(const Analyses& analyses, DepthChart about,
                 const std::function<void(const AnalysisRecord&, Lines&)>& draw) {
  for (const AnalysisRecord& analysis : analyses) {
    Lines lines;
    draw(analysis, lines);
    about.panels.push_back(lines.take());
  }
  return about;
}

// The loss of the same samples with nothing changed, from the first to the last place that has a line.
void add_unchanged(const AnalysisRecord& analysis, std::vector<DepthLine>& lines) {
  if (lines.empty() || !std::isfinite(analysis.changed_loss)) return;
  std::vector<double> places;
  for (const DepthLine& line : lines) places.insert(places.end(), line.x.begin(), line.x.end());
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  lines.push_back({std::string(kUnchanged), places, std::vector<double>(places.size(), analysis.changed_loss)});
}

DepthChart beside_unchanged(const Analyses& analyses, DepthChart chart) {
  for (size_t i = 0; i < analyses.size(); ++i) add_unchanged(analyses[i], chart.panels[i]);
  return chart;
}

// The most streams at a place.
size_t most_streams(const AnalysisRecord& analysis) {
  size_t most = 0;
  for (const PlaceAnalysis& place : analysis.places) most = std::max(most, place.streams.size());
  return most;
}

// What is measured of few streams only: said where somebody has more, or their lines would end without a reason.
std::string lead_where_many(const Analyses& analyses, const std::string& lead, size_t limit, const char* words) {
  const bool many = std::any_of(analyses.begin(), analyses.end(),
                                [limit](const AnalysisRecord& analysis) { return most_streams(analysis) > limit; });
  return many ? lead + ". " + words : lead;
}

double depth(const PlaceAnalysis& place) { return static_cast<double>(place.index); }

// A number of every stream at every place.
DepthChart of_streams(const Analyses& analyses, DepthChart about,
                      const std::function<double(const StreamAnalysis&)>& number) {
  about.x_label = "site (depth)";
  return chart(analyses, std::move(about), [&](const AnalysisRecord& analysis, Lines& lines) {
    for (const PlaceAnalysis& place : analysis.places) {
      for (const StreamAnalysis& stream : place.streams) lines.add(stream.name, depth(place), number(stream));
    }
  });
}

// Numbers of every branch, each with its name.
using BranchNumbers = std::vector<std::pair<std::string, std::function<double(const runs::BranchAnalysis&)>>>;
DepthChart of_branches(const Analyses& analyses, DepthChart about, const BranchNumbers& numbers) {
  about.x_label = "site (depth)";
  return chart(analyses, std::move(about), [&](const AnalysisRecord& analysis, Lines& lines) {
    for (const PlaceAnalysis& place : analysis.places) {
      if (!place.branch) continue;
      for (const auto& [name, number] : numbers) lines.add(name, depth(place), number(*place.branch));
    }
  });
}

// A number of the lens of every stream, and of that of all.
DepthChart of_lenses(const Analyses& analyses, DepthChart about,
                     const std::function<double(const runs::LensRecord&)>& number) {
  about.x_label = "site (depth)";
  about.lead = lead_where_many(analyses, about.lead, 8, "Places with more than 8 streams: only all of them together");
  return chart(analyses, std::move(about), [&](const AnalysisRecord& analysis, Lines& lines) {
    for (const PlaceAnalysis& place : analysis.places) {
      for (const StreamAnalysis& stream : place.streams) {
        if (place.streams.size() > 1) lines.add(stream.name, depth(place), number(stream.lens));
      }
      lines.add("all streams", depth(place), number(place.lens));
    }
  });
}

DepthChart of_places(const Analyses& analyses, DepthChart about, const std::string& name,
                     const std::function<double(const PlaceAnalysis&)>& number) {
  about.x_label = "site (depth)";
  return chart(analyses, std::move(about), [&](const AnalysisRecord& analysis, Lines& lines) {
    for (const PlaceAnalysis& place : analysis.places) lines.add(name, depth(place), number(place));
  });
}

DepthSection values(const Analyses& all) {
  const auto of = [&](const char* title, const char* lead, bool log, double runs::ValueStatistics::*number) {
    return of_streams(all, {.title = title, .lead = lead, .log = log},
                      [number](const StreamAnalysis& stream) { return stream.values.*number; });
  };
  return {
      "values",
      "Streams and branches",
      {of("Norm", "Mean over tokens of each stream's norm, as a site is about to read it", true,
          &runs::ValueStatistics::norm),
       of("Root mean square", "Of each stream", true, &runs::ValueStatistics::rms),
       of("Largest value", "Largest absolute value of each stream", true, &runs::ValueStatistics::max),
       of("Kurtosis", "Of all values of a stream; 3 for a normal distribution", true, &runs::ValueStatistics::kurtosis),
       of_branches(all,
                   {.title = "Branches", .lead = "Root mean square of what goes in and what comes out", .log = true},
                   {{"into the branch", [](const auto& branch) { return branch.input.rms; }},
                    {"out of the branch", [](const auto& branch) { return branch.output.rms; }}})}};
}

DepthSection gradients(const Analyses& all) {
  return {
      "gradients",
      "Gradients",
      {of_streams(all, {.title = "Gradient of the streams", .lead = "Norm, of the mean loss", .log = true},
                  [](const StreamAnalysis& stream) { return stream.gradient; }),
       of_branches(
           all, {.title = "Gradient of branch inputs and parameters", .lead = "Norms, of the mean loss", .log = true},
           {{"branch input", [](const auto& branch) { return branch.input_gradient; }},
            {"parameters", [](const auto& branch) { return branch.parameter_gradient; }}})}};
}

DepthSection lenses(const Analyses& all) {
  return {"lens",
          "Lens",
          {of_lenses(all,
                     {.title = "Agreement with the output",
                      .lead = "Share of tokens whose first choice, read here, is that of the whole model"},
                     [](const runs::LensRecord& lens) { return lens.agreement; }),
           of_lenses(all, {.title = "KL from the output", .lead = "Nats; of what is read here, from the whole model's"},
                     [](const runs::LensRecord& lens) { return lens.kl; }),
           of_lenses(all, {.title = "Distance from the output", .lead = "Squared, as a share of the output's squares"},
                     [](const runs::LensRecord& lens) { return lens.distance; }),
           of_lenses(all, {.title = "Loss of what is read", .lead = "With the final norm and head at each place"},
                     [](const runs::LensRecord& lens) { return lens.loss; })}};
}

DepthChart ranges(const Analyses& all) {
  return beside_unchanged(
      all, chart(all,
                 {.title = "Blocks left out",
                  .lead = "Held-out loss without 1, 2, 4 ... consecutive blocks, by the first of them",
                  .x_label = "first block left out"},
                 [](const AnalysisRecord& analysis, Lines& lines) {
                   for (const runs::RangeAnalysis& range : analysis.ranges) {
                     if (!std::has_single_bit(static_cast<uint64_t>(range.blocks))) continue;  // in the map of all
                     const std::string name = std::to_string(range.blocks) + (range.blocks > 1 ? " blocks" : " block");
                     lines.add(name, static_cast<double>(range.first), range.loss);
                   }
                 }));
}

DepthSection pruning(const Analyses& all) {
  const DepthChart sublayers = chart(
      all,
      {.title = "One sublayer left out", .lead = "Held-out loss without it", .x_label = "site (depth)", .points = true},
      [](const AnalysisRecord& analysis, Lines& lines) {
        for (const PlaceAnalysis& place : analysis.places) {
          if (place.branch) lines.add(place.kind, depth(place), place.branch->loss_without);
        }
        for (const PlaceAnalysis& place : analysis.places) {
          lines.add(std::string(kUnchanged), depth(place), analysis.changed_loss);
        }
      });
  return {"pruning", "Left out", {sublayers, ranges(all)}};
}

DepthSection use(const Analyses& all) {
  const auto cut = [&](const char* title, const char* lead, double StreamAnalysis::*number) {
    const std::string said = lead_where_many(all, lead, 4, "Of the first four streams");
    return beside_unchanged(all, of_streams(all, {.title = title, .lead = said},
                                            [number](const StreamAnalysis& stream) { return stream.*number; }));
  };
  const DepthChart angles =
      chart(all,
            {.title = "Cosine between streams",
             .lead = lead_where_many(all, "Mean over tokens", 8, "Places with more than 8 streams are left out"),
             .x_label = "site (depth)"},
            [](const AnalysisRecord& analysis, Lines& lines) {
              for (const PlaceAnalysis& place : analysis.places) {
                for (const runs::PairAnalysis& pair : place.pairs) {
                  lines.add(pair.first + ", " + pair.second, depth(place), pair.cosine);
                }
              }
            });
  return {
      "use",
      "Use of the streams",
      {of_streams(all, {.title = "Share", .lead = "Of each stream in the branch input; at the close, in the output"},
                  [](const StreamAnalysis& stream) { return stream.share; }),
       of_streams(all, {.title = "Weight", .lead = "That the scheme itself gives to each stream at a read"},
                  [](const StreamAnalysis& stream) { return stream.weight; }),
       angles,
       cut("Zeroed", "Held-out loss with zeros in place of the stream from here on", &StreamAnalysis::loss_zeroed),
       cut("Held", "Held-out loss with the stream held from here on", &StreamAnalysis::loss_frozen),
       of_branches(all, {.title = "Mixing", .lead = "Distance of the mixing of streams from leaving them alone"},
                   {{"distance", [](const auto& branch) { return branch.mix_distance; }}})}};
}

DepthSection attention(const Analyses& all) {
  return {"attention",
          "Attention",
          {of_branches(all,
                       {.title = "Weight on the first and the largest token",
                        .lead = "Mean over heads and over the tokens that see it; the largest is the one with the "
                                "largest value of any stream there"},
                       {{"first token", [](const auto& branch) { return branch.sink_first; }},
                        {"largest token", [](const auto& branch) { return branch.sink_largest; }}}),
           of_branches(all,
                       {.title = "Heads with a sink",
                        .lead = "Share whose weight on the first token is above 0.3",
                        .from_zero = true},
                       {{"share of heads", [](const auto& branch) { return branch.sink_rate; }}})}};
}

// Both from 0 to 1, so that they share an axis: where routing changes, and where the streams grow.
DepthChart routing_beside_norms(const Analyses& all) {
  return chart(all,
               {.title = "Routing beside the norms",
                .lead = "Entropy of the experts' loads, 1 where all are alike; the norm of each stream at the same "
                        "sites, as a share of its largest over the depth",
                .x_label = "site (depth)",
                .from_zero = true},
               [](const AnalysisRecord& analysis, Lines& lines) {
                 std::map<std::string, double> largest;
                 for (const PlaceAnalysis& place : analysis.places) {
                   for (const StreamAnalysis& stream : place.streams) {
                     if (stream.values.norm > largest[stream.name]) largest[stream.name] = stream.values.norm;
                   }
                 }
                 for (const PlaceAnalysis& place : analysis.places) {
                   if (!place.branch || !std::isfinite(place.branch->routing_entropy)) continue;
                   for (const StreamAnalysis& stream : place.streams) {
                     lines.add(stream.name, depth(place), stream.values.norm / largest[stream.name]);
                   }
                   lines.add("entropy", depth(place), place.branch->routing_entropy);
                 }
               });
}

DepthSection depth_of(const Analyses& all) {
  return {
      "depth",
      "Use of the depth",
      {of_streams(all,
                  {.title = "Cosine with the next place",
                   .lead = "Mean over tokens, of each stream with itself one site later"},
                  [](const StreamAnalysis& stream) { return stream.next_cosine; }),
       of_streams(
           all,
           {.title = "Cosine of the branch with the stream",
            .lead = lead_where_many(
                all, "Mean over tokens, of what the branch gives with each stream as the site is about to read it", 8,
                "Places with more than 8 streams are left out")},
           [](const StreamAnalysis& stream) { return stream.branch_cosine; }),
       of_branches(
           all, {.title = "Routing", .lead = "Experts: entropy of their loads, and the largest; 1 where all are alike"},
           {{"entropy", [](const auto& branch) { return branch.routing_entropy; }},
            {"largest load", [](const auto& branch) { return branch.largest_load; }}}),
       routing_beside_norms(all),
       of_places(all, {.title = "Effective rank", .lead = "Of the states that the lens of all streams reads"}, "rank",
                 [](const PlaceAnalysis& place) { return place.rank; }),
       of_places(all, {.title = "Entropy of the spectrum", .lead = "Nats; of the same states"}, "entropy",
                 [](const PlaceAnalysis& place) { return place.entropy; }),
       of_streams(all, {.title = "Share of the token mean", .lead = "1 where all tokens of a sample are the same"},
                  [](const StreamAnalysis& stream) { return stream.token_mean; })}};
}

}  // namespace charts_detail

bool DepthChart::empty() const {
  return std::all_of(panels.begin(), panels.end(), [](const auto& panel) { return panel.empty(); });
}

std::vector<DepthSection> analysis_sections(const std::vector<runs::AnalysisRecord>& all) {
  std::vector<DepthSection> sections = {charts_detail::lenses(all),    charts_detail::values(all),
                                        charts_detail::pruning(all),   charts_detail::use(all),
                                        charts_detail::gradients(all), charts_detail::attention(all),
                                        charts_detail::depth_of(all)};
  for (DepthSection& section : sections) {
    std::erase_if(section.charts, [](const DepthChart& chart) { return chart.empty(); });
  }
  std::erase_if(sections, [](const DepthSection& section) { return section.charts.empty(); });
  return sections;
}

}  // namespace siamese::report
