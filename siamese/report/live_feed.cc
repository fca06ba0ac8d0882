#include "siamese/report/live_feed.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "siamese/report/page_numbers.h"

namespace siamese::report {

namespace {

using nlohmann::json;

constexpr int kLiveDigits = 4;  // of a curve: more than a screen shows

json curve_news(const LiveCurve& curve, SeenRun& seen) {
  const auto& buckets = curve.buckets();
  const bool anew = seen.fresh || seen.curve_epoch != curve.epoch();
  const size_t from = anew || seen.buckets == 0 ? 0 : seen.buckets - 1;  // the last bucket may have got more steps
  json loss = json::array(), low = loss, high = loss, grad = loss, grad_high = loss;
  const auto extreme = [](const BucketOfSteps& bucket, double value) {
    return number(bucket.count > 0 ? value : kMissing, kLiveDigits);
  };
  for (size_t at = from; at < buckets.size(); ++at) {
    const BucketOfSteps &of_loss = buckets[at][LiveCurve::loss], &of_grad = buckets[at][LiveCurve::grad_norm];
    loss.push_back(number(of_loss.mean(), kLiveDigits));
    grad.push_back(number(of_grad.mean(), kLiveDigits));
    if (curve.width() == 1) continue;
    low.push_back(extreme(of_loss, of_loss.low));
    high.push_back(extreme(of_loss, of_loss.high));
    grad_high.push_back(extreme(of_grad, of_grad.high));
  }
  seen.curve_epoch = curve.epoch();
  seen.buckets = buckets.size();
  json news{{"width", curve.width()}, {"from", from}, {"last", curve.last_step()}, {"loss", loss}, {"grad", grad}};
  if (curve.width() > 1) {
    news["low"] = std::move(low);
    news["high"] = std::move(high);
    news["grad_high"] = std::move(grad_high);
  }
  return news;
}

json evals_news(const LiveRun& run, SeenRun& seen) {
  const bool anew = seen.fresh || seen.evals_epoch != run.evals_epoch();
  const size_t from = anew ? 0 : std::min(seen.evals, run.evals().size());
  json news{{"from", from}, {"step", json::array()}, {"loss", json::array()}, {"accuracy", json::array()}};
  for (size_t at = from; at < run.evals().size(); ++at) {
    const EvalPoint& point = run.evals()[at];
    news["step"].push_back(point.step);
    news["loss"].push_back(number(point.loss));
    news["accuracy"].push_back(number(point.accuracy));
  }
  seen.evals_epoch = run.evals_epoch();
  seen.evals = run.evals().size();
  return news;
}

json alerts_news(const LiveRun& run) {
  json list = json::array();
  for (const Alert& alert : run.alerts()) {
    list.push_back({{"kind", alert.kind}, {"step", alert.step}, {"text", alert.text}});
  }
  return list;
}

}  // namespace

json run_news(uint64_t id, const LiveRun& run, SeenRun& seen) {
  const RunRecord& facts = run.facts();
  json news{{"id", id},
            {"name", run.name()},
            {"variant", facts.variant},
            {"scheme", facts.scheme},
            {"family", facts.family},
            {"lr", number(facts.lr)},
            {"seed", facts.seed < 0 ? json(nullptr) : json(facts.seed)},
            {"state", state_text(run.state())},
            {"message", facts.message},
            {"step", run.step()},
            {"steps", facts.steps},
            {"parameters", facts.parameters},
            {"train_loss", number(run.train_loss())},
            {"val_loss", number(run.evals().empty() ? kMissing : run.evals().back().loss)},
            {"rate", number(run.rate())},
            {"tokens_per_s", number(run.tokens_per_s(), kCurveDigits)},
            {"samples_per_s", number(run.samples_per_s(), kCurveDigits)},
            {"step_ms", number(run.step_ms(), kCurveDigits)},
            {"recorded", run.recorded()},
            {"restarts", run.restarts()},
            {"changed", static_cast<int64_t>(run.changed())},
            {"alerts", alerts_news(run)},
            {"curve", curve_news(run.curve(), seen)},
            {"evals", evals_news(run, seen)}};
  seen.revision = run.revision();
  seen.fresh = false;
  return news;
}

std::string json_message(const json& message) {
  return message.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

}  // namespace siamese::report
