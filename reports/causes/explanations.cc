#include "reports/causes/explanations.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "core/problem/case.h"
#include "core/support/json_writer.h"
#include "properties/diagnosis/explain.h"
#include "properties/diagnosis/stages.h"
#include "properties/road/watched_kernel.h"
#include "reports/run/interrupt.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// More cases than these, of as many properties as there are, refute no more than these do.
constexpr std::size_t most_cases = 24;
/// Of so many it is asked which stage goes wrong first.
constexpr std::size_t most_stages = 6;

struct Findings {
  std::vector<BeyondBound> beyond;
  std::vector<Case> wrong;                     ///< of attention's output: the same, and those that are not finite
  std::int64_t bounds = 0;                     ///< violated bounds, of which `beyond` has some
  std::map<Violation, std::int64_t> others{};  ///< violated in another way
};

/// "A (utilisation 0.9), B (0.5) or C (0.1)", the first few.
std::string listed(const std::vector<Explanation>& changes) {
  // As many as there are places for a narrower format: each of them may be what is meant.
  constexpr std::size_t shown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(changes.size(), shown); ++i) {
    const bool last = i + 1 == changes.size();
    text += i == 0 ? "" : last ? " or " : ", ";
    text += changes[i].utilisation == 0 && changes[i].flushed > 0
                ? fmt::format("{} (the errors are no larger than what is flushed)", changes[i].words)
                : fmt::format("{} ({}{})", changes[i].words, i == 0 ? "utilisation " : "",
                              short_number(changes[i].utilisation));
  }
  if (changes.size() > shown) {
    const std::size_t others = changes.size() - shown;
    text += fmt::format(" or {} other change{}", others, others == 1 ? "" : "s");
  }
  return text;
}

std::string json_of(const std::vector<Explanation>& changes) {
  JsonWriter json;
  json.begin_array();
  for (const Explanation& change : changes) {
    json.begin_object().member("words", change.words).key("arithmetic").raw(change.declaration);
    if (!change.variants.empty()) json.key("variants").raw(change.variants);
    json.member("utilisation", change.utilisation).end_object();
  }
  json.end_array();
  return json.text();
}

/// How a stage is spoken of.
std::string_view words_of(Stage stage) {
  switch (stage) {
    case Stage::scores:
      return "the scores";
    case Stage::weights:
    case Stage::exponentials:
      return "the weights";
    case Stage::output:
      return "the output's normalisation or rounding";
    case Stage::sums:
    case Stage::underflow:
      break;
  }
  return "the sums over keys";
}

/// Whether a number of that stage, kept in another format, would make `wrong` the first stage to go wrong.
bool fits(Stage kept, Stage wrong) {
  return words_of(kept) == words_of(wrong);
}

struct Stages {
  std::string text;               ///< in one line; empty where there is none to ask about
  std::optional<Stage> agreed{};  ///< the stage of all cases of which one is determined
  bool determined = false;        ///< of some case
};

/// Where the cases go wrong first.
Stages stages_of(Kernel& kernel, const std::vector<Case>& cases) {
  std::map<Stage, std::pair<std::size_t, std::string>> found;
  std::string why_not;
  std::size_t determined = 0;
  for (const Case& c : cases) {
    StageFound one = stage_of(kernel, c);
    if (!one.stage) {
      if (why_not.empty()) why_not = std::move(one.evidence);
      continue;
    }
    ++determined;
    auto& [count, evidence] = found[*one.stage];
    if (count++ == 0) evidence = std::move(one.evidence);
  }
  if (cases.empty()) return {};
  if (found.empty()) return {.text = fmt::format("which stage goes wrong first is not determined: {}", why_not)};
  std::string text = "what goes wrong first: ";
  for (const auto& [stage, told] : found) {
    if (stage != found.begin()->first) text += "; ";
    text += fmt::format("{}, in {} of {} cases ({})", words_of(stage), told.first, cases.size(), told.second);
  }
  if (determined < cases.size()) text += fmt::format("; not determined in {}", cases.size() - determined);
  return {std::move(text), found.size() == 1 ? std::optional(found.begin()->first) : std::nullopt, true};
}

std::int64_t count_of(const std::map<Violation, std::int64_t>& kinds) {
  std::int64_t count = 0;
  for (const auto& [kind, of_kind] : kinds) count += of_kind;
  return count;
}

/// "146 of 150 saved violations are NaN or Inf where a finite number is required, 4 an error beyond its bound".
std::string kinds_text(const Findings& findings) {
  std::vector<std::pair<std::int64_t, Violation>> kinds;
  kinds.reserve(findings.others.size() + 1);
  for (const auto& [kind, count] : findings.others) kinds.emplace_back(count, kind);
  if (findings.bounds > 0) kinds.emplace_back(findings.bounds, Violation::bound);
  std::ranges::sort(kinds, std::ranges::greater());
  std::string text;
  for (const auto& [count, kind] : kinds) {
    text += text.empty()
                ? fmt::format("{} of {} saved violations {} {}", count, findings.bounds + count_of(findings.others),
                              count == 1 ? "is" : "are", words_of(kind))
                : fmt::format(", {} {}", count, words_of(kind));
  }
  return text;
}

/// Of a format that was meant the bounds are used by more than this, of some case. Of so many cases: a smaller case may
/// err by next to nothing.
constexpr double least_used = 0x1p-8;
constexpr std::size_t least_cases = 2;

/// Whether a change allows so much more than the cases err by that it is no explanation.
bool says_nothing(const std::vector<Explanation>& found, std::size_t cases) {
  return cases >= least_cases && std::ranges::all_of(found, [](const Explanation& one) {
           return one.utilisation < least_used && one.flushed == 0 && one.coarser > 1;
         });
}

/// A change by more is hardly what somebody meant: f16 sums in an f32 kernel make a unit roundoff 2^13 times as large.
constexpr double far = 0x1p8;

KernelExplanation explained(Kernel& kernel, const std::string& dtype, const Findings& findings) {
  WatchedKernel watched(kernel, interrupt_requested);
  const std::int64_t others = count_of(findings.others);
  // How large errors are does not explain what is no error at all.
  if (findings.beyond.empty() || others > findings.bounds) {
    std::string text = kinds_text(findings);
    const Stages stages = stages_of(watched, findings.wrong);
    if (!stages.text.empty()) text += "; " + stages.text;
    return {kernel.id(), dtype, std::move(text), "[]", stages.determined};
  }
  std::vector<Explanation> found = explain(watched, findings.beyond);
  const std::size_t count = findings.beyond.size();
  std::string far_off;
  if (!found.empty() && says_nothing(found, count)) {
    const auto least = std::ranges::max_element(found, {}, &Explanation::utilisation);
    far_off = fmt::format(": the least that makes them right, {}, allows {} times their errors", least->words,
                          short_number(1 / least->utilisation));
    found.clear();
  }
  const auto [stages, agreed, determined] = stages_of(watched, findings.wrong);
  // What is kept in a narrower format is at the stage that goes wrong, if that is known: such changes come first.
  const auto is_there = [wrong = agreed](const Explanation& one) { return one.stage && fits(*one.stage, *wrong); };
  bool somewhere = !found.empty() && found.front().one_place;
  if (agreed && somewhere) {
    std::vector<Explanation> first, elsewhere;
    for (Explanation& one : found) (is_there(one) ? first : elsewhere).push_back(std::move(one));
    std::ranges::move(elsewhere, std::back_inserter(first));
    found = std::move(first);
    somewhere = is_there(found.front());
  }
  const std::size_t excused = found.empty() ? 0 : found.front().excused;
  const std::string cases = count == 1   ? "the saved case"
                            : count == 2 ? "both saved cases"
                                         : fmt::format("all {} saved cases", count);
  KernelExplanation result{kernel.id(), dtype, "", json_of(found), determined || !found.empty()};
  const std::string useless =
      excused == 0 ? ""
                   : fmt::format(" ({} of the cases {} no useful bound then)", excused, excused == 1 ? "has" : "have");
  if (found.empty()) {
    result.text = far_off.empty() ? fmt::format("no arithmetic that a manifest can declare makes {} right", cases)
                                  : fmt::format("no arithmetic explains {}{}", cases, far_off);
    if (!stages.empty()) result.text += "; " + stages;
  } else if (found.front().coarser > far && !somewhere) {
    // The wider the bounds, the more they let pass of what is a mistake, and the less it says which would do.
    result.text = fmt::format(
        "{}a mistake, or arithmetic far from what is declared: {} would be right with a unit {} times as large{}",
        stages.empty() ? "" : stages + "; ", cases, short_number(found.front().coarser), useless);
  } else {
    // One narrower format may well be meant, be it weights in bf16 under f32; but its bound is as wide as that.
    const std::string wide = found.front().coarser > far
                                 ? fmt::format(", with a unit {} times as large, so that a mistake may look the same",
                                               short_number(found.front().coarser))
                                 : "";
    const Explanation& first = found.front();
    const std::string declared = first.variants.empty()
                                     ? fmt::format(R"("arithmetic": {{"{}": {}}})", dtype, first.declaration)
                                     : fmt::format(R"("variants": {})", first.variants);
    result.text = fmt::format("{} {} consistent with {}; if {} is meant, declare it: {}{}{}{}", cases,
                              count == 1 ? "is" : "are", listed(found), found.size() == 1 ? "that" : "the first",
                              declared, wide, useless, determined ? "; " + stages : "");
  }
  if (others > 0) {
    result.text +=
        fmt::format("; {} further finding{} not about how large an error is", others, others == 1 ? " is" : "s are");
  }
  return result;
}

}  // namespace

std::string_view words_of(Violation violation) {
  switch (violation) {
    case Violation::not_finite:
      return "NaN or Inf where a finite number is required";
    case Violation::lse:
      return "a log-sum-exp beyond its bound or not finite";
    case Violation::bits:
      return "other bits where the kernel claims the same";
    case Violation::shape:
      return "outputs of different shapes where a law wants the same";
    case Violation::rejected:
      return "a valid case that was refused";
    case Violation::failed:
      return "an error, or elements left unwritten or written beside";
    case Violation::died:
      return "a process that ended";
    case Violation::timed_out:
      return "no reply within the time limit";
    case Violation::malformed:
      return "a reply of another shape or dtype, or none";
    case Violation::none:
    case Violation::bound:
      break;
  }
  return "an error beyond its bound";
}

namespace {

/// The first finding of each property, then the second of each, and so on: a family of properties that stands before
/// the others is about one argument, and its cases refute what is said of that alone.
std::vector<const FindingRecord*> spread(const std::vector<FindingRecord>& findings) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::size_t> seen;
  // By rank, then as they come.
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  ranked.reserve(findings.size());
  for (std::size_t at = 0; at < findings.size(); ++at) {
    const auto& subject = findings[at].subject;
    ranked.emplace_back(seen[{subject.kernel, subject.dtype, subject.property}]++, at);
  }
  std::ranges::sort(ranked);
  std::vector<const FindingRecord*> all;
  all.reserve(ranked.size());
  for (const auto& [rank, at] : ranked) all.push_back(&findings[at]);
  return all;
}

}  // namespace

std::vector<KernelExplanation> explanations_of(const Journal& journal, const RunFolder& folder,
                                               std::span<const std::unique_ptr<Kernel>> kernels) {
  std::map<std::pair<std::string, std::string>, Findings> by_kernel;
  for (const FindingRecord* const one : spread(journal.findings)) {
    const FindingRecord& finding = *one;
    // What comes and goes is right in most calls, and then consistent with any arithmetic.
    if (finding.verdict.outcome != Outcome::violated || finding.repetition) continue;
    Findings& findings = by_kernel[{finding.subject.kernel, finding.subject.dtype}];
    const bool bound = finding.verdict.violation == Violation::bound;
    ++(bound ? findings.bounds : findings.others[finding.verdict.violation]);
    if (!bound && finding.verdict.violation != Violation::not_finite) continue;
    const auto property = std::ranges::find(catalogue(), std::string_view(finding.subject.property), &Property::name);
    if (property == catalogue().end() || !folder.files().holds(finding.case_file)) continue;
    const bool of_output = (*property)->operation == Operation::attention && (*property)->backward == Backward::none;
    const bool asked = of_output && findings.wrong.size() < most_stages;
    if (!asked && (!bound || findings.beyond.size() == most_cases)) continue;
    Case c = decode_case(folder.files().read(finding.case_file), (folder.path() / finding.case_file).native());
    if (asked) findings.wrong.push_back(c);
    if (bound && findings.beyond.size() < most_cases) findings.beyond.push_back({*property, std::move(c)});
  }
  std::vector<KernelExplanation> explanations;
  for (const auto& [key, findings] : by_kernel) {
    const auto kernel =
        std::ranges::find_if(kernels, [&](const std::unique_ptr<Kernel>& one) { return one->id() == key.first; });
    if (kernel == kernels.end() || (findings.beyond.empty() && findings.wrong.empty())) continue;
    explanations.push_back(explained(**kernel, key.second, findings));
  }
  return explanations;
}

MetaRecord record_of(const KernelExplanation& explanation) {
  return {std::string(explanation_event),
          {{"kernel", explanation.kernel},
           {"dtype", explanation.dtype},
           {"text", explanation.text},
           {"changes", explanation.changes},
           {"tells", explanation.tells ? "yes" : "no"}}};
}

std::vector<KernelExplanation> explanations_in(const Journal& journal, const std::string& kernel,
                                               const std::string& dtype) {
  std::vector<KernelExplanation> found;
  for (const MetaRecord& meta : journal.meta) {
    const auto fact = [&](const char* name) {
      const auto at = meta.facts.find(name);
      return at == meta.facts.end() ? std::string() : at->second;
    };
    if (meta.event != explanation_event || fact("kernel") != kernel || fact("dtype") != dtype) continue;
    const std::string text = fact("text");
    if (std::ranges::none_of(found, [&](const KernelExplanation& one) { return one.text == text; }))
      found.push_back({kernel, dtype, text, fact("changes"), fact("tells") != "no"});
  }
  return found;
}

}  // namespace attest
