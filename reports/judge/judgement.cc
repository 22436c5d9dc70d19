#include "reports/judge/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "reports/run/progress.h"
#include "reports/run/shape_options.h"
#include "reports/text/text.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

constexpr std::string_view schema = "attest-judgement/1";

double worst_of(const Summary& summary) {
  double worst = 0.0;
  for (const KernelSummary& kernel : summary.kernels)
    if (const PropertySummary* const one = kernel.worst(); one != nullptr)
      worst = std::max(worst, one->tally.worst_utilisation);
  return worst;
}

std::string text_of(const ContractCell& cell, const std::vector<Extents>& shapes) {
  return fmt::format("{} {} {}", name_of(cell.dtype), text_of(shapes[cell.shape]), text_of(cell.form));
}

std::vector<std::string> unjudged_in(const Contract& contract, const JudgedShare& share) {
  std::vector<std::string> cells;
  for (const ContractCell& cell : contract.cells)
    if (!share.is_judged(cell)) cells.push_back(text_of(cell, contract.shapes));
  return cells;
}

nlohmann::ordered_json json_of(const CellTime& time, std::string cell) {
  nlohmann::ordered_json json;
  json["cell"] = std::move(cell);
  json["calls"] = time.calls;
  json["median"] = time.median;
  json["low"] = time.low;
  json["high"] = time.high;
  json["flops"] = time.flops;
  return json;
}

nlohmann::ordered_json json_of(const CauseWords& cause) {
  nlohmann::ordered_json json;
  json["what"] = cause.what;
  json["dtypes"] = cause.dtypes;
  json["smallest"] = cause.smallest;
  json["found"] = cause.found;
  json["case"] = cause.case_file;
  json["properties"] = cause.cause == nullptr ? std::vector<std::string>() : cause.cause->properties;
  return json;
}

std::string time_text(const CellTime& time) {
  const bool is_short = time.median < 1e-3;
  const double unit = is_short ? 1e6 : 1e3;
  return fmt::format("{:.4g} {} ({:.4g} to {:.4g}), {:.3g} GFLOP/s", unit * time.median, is_short ? "µs" : "ms",
                     unit * time.low, unit * time.high, 1e-9 * time.flops / time.median);
}

}  // namespace

Judgement judge(const Contract& contract, const JudgedShare& share, const Summary& summary,
                const Conclusion& conclusion, JudgedHow how) {
  Judgement j;
  j.contract = contract.name;
  j.shapes = contract.shapes;
  if (!summary.kernels.empty()) j.kernel = summary.kernels.front().name;
  j.cells = share.cells();
  j.judged_cells = share.judged_cells();
  j.share = share.share();
  j.least_share = contract.share;
  j.unjudged = unjudged_in(contract, share);
  j.cases = summary.judged();
  j.worst = worst_of(summary);
  j.seed = summary.seed;
  j.causes = words_of_causes(summary, how.run, how.run);
  j.how = std::move(how);
  if (summary.verdict == Outcome::violated) {
    j.verdict = Pass::fail;
    std::int64_t violated = 0;
    for (const KernelSummary& kernel : summary.kernels)
      for (const PropertySummary& property : kernel.properties) violated += property.tally.violated;
    j.why.push_back(fmt::format("{} cases violate the contract", with_commas(violated)));
    return j;
  }
  if (!share.is_enough()) {
    j.why.push_back(fmt::format("{} of {} shapes in their forms were judged; the contract asks for {:g} %",
                                j.judged_cells, j.cells, 100.0 * contract.share));
  }
  if (!j.how.enclosed) j.why.emplace_back("no walls stood around the kernel, which could reach all that its user can");
  if (summary.time_over) j.why.emplace_back("the time was over before all cases of the contract were asked");
  if (conclusion.exit_status != 0) j.why.push_back(conclusion.headline);
  for (const KernelSummary& kernel : summary.kernels) {
    if (!kernel.left_out.empty()) j.why.push_back(fmt::format("{}: {}", kernel.dtype, one_line(kernel.left_out)));
    for (const PropertySummary& property : kernel.properties)
      if (property.verdict == Outcome::inconclusive)
        j.why.push_back(fmt::format("{} in {}: {}", property.name, kernel.dtype, one_line(property.reason)));
  }
  j.verdict = j.why.empty() ? Pass::pass : Pass::undecided;
  return j;
}

int exit_status_of(Pass verdict) {
  switch (verdict) {
    case Pass::pass:
      return 0;
    case Pass::fail:
      return 1;
    case Pass::undecided:
      break;
  }
  return 4;
}

std::string to_json(const Judgement& j) {
  nlohmann::ordered_json json;
  json["schema"] = schema;
  json["verdict"] = name_of(j.verdict);
  json["why"] = j.why;
  json["kernel"] = j.kernel;
  json["contract"] = j.contract;
  json["share"] = j.share;
  json["least_share"] = j.least_share;
  json["cells"] = j.cells;
  json["judged_cells"] = j.judged_cells;
  json["unjudged"] = j.unjudged;
  json["cases"] = j.cases;
  json["calls"] = j.how.calls;
  json["outside"] = j.how.outside.cases;
  json["processes"] = j.how.processes;
  // JSON has no infinity: an error where nothing is allowed is a text, as in summary.json.
  json["worst"] = std::isfinite(j.worst) ? nlohmann::ordered_json(j.worst) : nlohmann::ordered_json("inf");
  json["margin"] = j.worst > 1.0 ? 0.0 : 1.0 - j.worst;
  json["seconds"] = j.how.seconds;
  // As text: a reader that keeps numbers as doubles would lose its last digits.
  json["seed"] = std::to_string(j.seed);
  json["secret"] = j.how.secret;
  json["walls"] = j.how.walls;
  json["run"] = j.how.run;
  json["times"] = nlohmann::ordered_json::array();
  for (const auto& [cell, time] : j.how.times)
    if (time.calls > 0) json["times"].push_back(json_of(time, text_of(cell, j.shapes)));
  json["causes"] = nlohmann::ordered_json::array();
  for (const CauseWords& cause : j.causes) json["causes"].push_back(json_of(cause));
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string text_of(const Judgement& j, std::size_t width) {
  constexpr std::size_t most_reasons = 4, most_times = 8;
  const std::string_view word = j.verdict == Pass::pass ? "PASS" : j.verdict == Pass::fail ? "FAIL" : "UNDECIDED";
  const std::string processes = j.how.processes == 1 ? "a process" : fmt::format("{} processes", j.how.processes);
  std::string text = fmt::format("{}  {}\n", word, one_line(j.kernel));
  const auto add = [&](std::string_view label, std::string_view line) { text += labelled(label, line, 12, width); };
  for (std::size_t i = 0; i < std::min(j.why.size(), most_reasons); ++i) add(i == 0 ? "why" : "", j.why[i]);
  if (j.why.size() > most_reasons)
    add("", fmt::format("and {} more: judgement.json has them", j.why.size() - most_reasons));
  add("judged", fmt::format("{} cases in {}, {} calls in {}", with_commas(j.cases), duration_text(j.how.seconds),
                            with_commas(j.how.calls), processes));
  if (j.how.outside.cases > 0)
    add("outside",
        fmt::format("{} of {} calls are outside the contract and were not judged, one as it {}",
                    with_commas(j.how.outside.cases), with_commas(j.how.calls), one_line(j.how.outside.first)));
  if (j.verdict != Pass::fail) add("worst", fmt::format("{} of what is allowed", short_number(j.worst)));
  if (!j.how.walls.empty()) add("walls", j.how.walls);
  std::size_t told = 0;
  for (const auto& [cell, time] : j.how.times) {
    if (time.calls == 0 || ++told > most_times) continue;
    add(told == 1 ? "time" : "", fmt::format("{}  {}", text_of(cell, j.shapes), time_text(time)));
  }
  if (told > most_times) add("", fmt::format("and {} more: judgement.json has them", told - most_times));
  add("seed", fmt::format("{}{}", j.seed, j.how.secret ? "" : ", which was given and so no secret"));
  return text;
}

}  // namespace attest
