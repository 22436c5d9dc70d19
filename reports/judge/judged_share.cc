#include "reports/judge/judged_share.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "reports/run/shape_options.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

bool is_answer(const Verdict& verdict) {
  // A law may hold of outputs that are compared with each other alone.
  if (verdict.outcome == Outcome::held) return verdict.reach.has_value();
  if (verdict.outcome != Outcome::violated) return false;
  switch (verdict.violation) {
    case Violation::bound:
    case Violation::not_finite:
    case Violation::lse:
    case Violation::bits:
      return true;
    default:
      return false;
  }
}

/// Down, as a share that is rounded up says more than was judged.
std::string percent(double share) {
  return fmt::format("{} %", std::floor(share * 1000.0) / 10.0);
}

constexpr std::size_t most_shapes_shown = 8;
constexpr std::string_view judged = "█", missing = "·", none = " ";

}  // namespace

void JudgedShare::add(const Case& c, const Verdict& verdict) {
  if (verdict.outcome == Outcome::skipped) {
    const std::lock_guard lock(mutex_);
    if (skipped_.cases++ == 0) skipped_.first = verdict.reason;
  }
  const bool answered = is_answer(verdict);
  if (!answered && verdict.outcome != Outcome::excused) return;
  const std::optional<ContractCell> cell = cell_of(contract_.shapes, c);
  if (!cell) return;
  const std::lock_guard lock(mutex_);
  if (answered)
    ++judged_[*cell];
  else
    excused_.insert(*cell);
}

bool JudgedShare::lacks_an_answer() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      contract_.cells, [&](const ContractCell& cell) { return excused_.contains(cell) && !judged_.contains(cell); });
}

JudgedShare::Skipped JudgedShare::skipped() const {
  const std::lock_guard lock(mutex_);
  return skipped_;
}

bool JudgedShare::is_judged(const ContractCell& cell) const {
  const std::lock_guard lock(mutex_);
  return judged_.contains(cell);
}

std::int64_t JudgedShare::judged_cells() const {
  return std::ranges::count_if(contract_.cells, [&](const ContractCell& cell) { return is_judged(cell); });
}

double JudgedShare::share() const {
  return static_cast<double>(judged_cells()) / static_cast<double>(std::max<std::int64_t>(cells(), 1));
}

std::string share_text(const Contract& contract, const JudgedShare& share, std::size_t width) {
  std::string text =
      fmt::format("judged {} of {} shapes × dtypes × forms of {} ({}; {:g} % is the least)\n", share.judged_cells(),
                  share.cells(), contract.name, percent(share.share()), 100.0 * contract.share);
  std::set<ContractForm> forms;
  std::size_t widest = 0;
  for (const ContractCell& cell : contract.cells) forms.insert(cell.form);
  for (const Extents& e : contract.shapes) widest = std::max(widest, text_of(e).size());
  const std::size_t shown = std::min(contract.shapes.size(), most_shapes_shown);
  for (std::size_t shape = 0; shape < shown; ++shape) {
    text += fmt::format("  {:{}}  ", text_of(contract.shapes[shape]), widest);
    for (const DType dtype : contract.law.dtypes) {
      text += fmt::format("{} ", name_of(dtype));
      for (const ContractForm& form : forms) {
        const ContractCell cell{dtype, shape, form};
        text += !std::ranges::binary_search(contract.cells, cell) ? none : share.is_judged(cell) ? judged : missing;
      }
      text += "  ";
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  if (shown < contract.shapes.size()) text += fmt::format("  and {} shapes more\n", contract.shapes.size() - shown);
  std::vector<std::string> names;
  names.reserve(forms.size());
  for (const ContractForm& form : forms) names.push_back(text_of(form));
  return text +
         labelled("", fmt::format("each {} of B,H,KV,M,N,DK[,DV]: {}", judged, fmt::join(names, " · ")), 2, width);
}

}  // namespace attest
