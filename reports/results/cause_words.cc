#include "reports/results/cause_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/oracle/gradients/gradients.h"
#include "core/oracle/oracle.h"
#include "core/problem/case.h"
#include "core/problem/cost.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/names.h"
#include "properties/road/smallest_shape.h"
#include "reports/text/text.h"

namespace attest {
namespace {

std::string kernel_name(const Summary& summary, const std::string& id) {
  const auto kernel = std::ranges::find(summary.kernels, id, &KernelSummary::id);
  return one_line(kernel == summary.kernels.end() ? id : kernel->name);
}

/// In the dtype of its example.
const KernelSummary* kernel_of(const Summary& summary, const Cause& cause) {
  const auto kernel = std::ranges::find_if(summary.kernels, [&](const KernelSummary& one) {
    return one.id == cause.kernel && one.dtype == cause.example.dtype;
  });
  return kernel == summary.kernels.end() ? nullptr : &*kernel;
}

const FindingRecord* example_of(const Summary& summary, const Cause& cause) {
  const KernelSummary* const kernel = kernel_of(summary, cause);
  if (kernel == nullptr) return nullptr;
  for (const PropertySummary& property : kernel->properties) {
    if (property.name != cause.example.property) continue;
    const auto found = std::ranges::find(property.findings, cause.example_k, &FindingRecord::k);
    if (found != property.findings.end()) return &*found;
  }
  return nullptr;
}

/// What the numbers are is told with the smallest input.
bool is_of_numbers(Violation violation) {
  return violation == Violation::bound || violation == Violation::not_finite || violation == Violation::lse;
}

/// Whether a finding of the cause, as far as its properties tell, is about that.
bool has_violation(const Summary& summary, const Cause& cause, Violation violation) {
  for (const KernelSummary& kernel : summary.kernels) {
    if (kernel.id != cause.kernel || std::ranges::find(cause.dtypes, kernel.dtype) == cause.dtypes.end()) continue;
    for (const PropertySummary& property : kernel.properties)
      if (std::ranges::find(cause.properties, property.name) != cause.properties.end() &&
          std::ranges::any_of(property.findings,
                              [&](const FindingRecord& one) { return one.verdict.violation == violation; }))
        return true;
  }
  return false;
}

std::string what_of(const Summary& summary, const Cause& cause, const FindingRecord* example) {
  if (!cause.misreadings.empty()) {
    std::string words = "it computes as if";
    for (std::size_t i = 0; i < std::min<std::size_t>(cause.misreadings.size(), 3); ++i)
      words += fmt::format("{} {}", i == 0 ? "" : ", or as if", one_line(cause.misreadings[i]));
    return words;
  }
  if (example == nullptr) return {};
  const Violation violation = example->verdict.violation;
  if (!is_of_numbers(violation)) return one_line(example->verdict.reason);
  if (violation == Violation::bound && has_violation(summary, cause, Violation::lse))
    return "errors beyond the bounds of the output and of the log-sum-exp";
  if (violation == Violation::bound && !example->compared.empty() && example->compared[0].gradient)
    return fmt::format("an error of {} beyond its bound", name_of(*example->compared[0].gradient));
  return std::string(words_of(violation));
}

constexpr std::string_view backward_is_wrong =
    "the backward pass: at the out and lse that the kernel itself returned it is wrong, too";

/// Whether the same formulas at the output and log-sum-exp that the forward pass returned say that gradients are wrong.
std::string pass_of(const Summary& summary, const Cause& cause) {
  if (cause.by_own_answers) return std::string(backward_is_wrong);
  const auto of_gradient = [](const std::string& property) { return property.starts_with("backward.oracle-"); };
  if (std::ranges::none_of(cause.properties, of_gradient)) return {};
  for (const KernelSummary& kernel : summary.kernels) {
    if (kernel.id != cause.kernel || std::ranges::find(cause.dtypes, kernel.dtype) == cause.dtypes.end()) continue;
    for (const PropertySummary& property : kernel.properties)
      if (property.name == "backward.given" && property.tally.violated > 0) return std::string(backward_is_wrong);
  }
  return {};
}

/// What explains the numbers of its kernel, where no reading of the problem does.
std::string explanation_of(const Summary& summary, const Cause& cause, const FindingRecord* example) {
  if (example == nullptr || !cause.misreadings.empty() || !is_of_numbers(example->verdict.violation)) return {};
  for (const KernelSummary& kernel : summary.kernels) {
    if (kernel.id != cause.kernel || std::ranges::find(cause.dtypes, kernel.dtype) == cause.dtypes.end()) continue;
    for (const KernelExplanation& one : kernel.explanations)
      if (one.tells) return one_line(one.text);
  }
  return {};
}

std::string why_of(const Summary& summary, const Cause& cause, const FindingRecord* example) {
  const std::string pass = pass_of(summary, cause), explanation = explanation_of(summary, cause, example);
  return pass.empty() || explanation.empty() ? pass + explanation : pass + "; " + explanation;
}

/// "with N=64, with the wrong head alone".
std::string right_of(const Cause& cause) {
  std::string words;
  for (const std::string& one : cause.right)
    words += fmt::format("{}{}", words.empty() ? "with " : ", with ", one_line(one));
  return words;
}

std::string when_of(const Cause& cause) {
  if (cause.cases == 0) return {};
  if (cause.condition.empty())
    return cause.violated == cause.cases
               ? fmt::format("in {} of {} cases", with_commas(cause.violated), with_commas(cause.cases))
               : fmt::format("in {} of {} cases; no condition tells which", with_commas(cause.violated),
                             with_commas(cause.cases));
  const std::string others =
      cause.others_violated == 0
          ? fmt::format("in none of {} others", with_commas(cause.others))
          : fmt::format("in {} of {} others", with_commas(cause.others_violated), with_commas(cause.others));
  return fmt::format("in {} of {} cases with {}; {}", with_commas(cause.violated), with_commas(cause.cases),
                     one_line(cause.condition), others);
}

std::optional<Case> case_of(const FindingRecord& finding, const std::string& folder) {
  if (folder.empty() || finding.case_file.empty()) return std::nullopt;
  try {
    const std::filesystem::path path = folder;
    return decode_case(Folder(path).read(finding.case_file), (path / finding.case_file).native());
  } catch (const UsageError&) {
    return std::nullopt;
  }
}
/// " window 3 left, chunks of 4, alignment bottom-right"; a causal form says the alignment by itself. Of slopes alone
/// the alignment.
std::string positions_text(const Problem& c) {
  std::vector<std::string> parts;
  if (c.window_left >= 0) parts.push_back(fmt::format("window {} left", c.window_left));
  if (c.window_right >= 0)
    parts.push_back(fmt::format("{}{} right", c.window_left >= 0 ? "" : "window ", c.window_right));
  if (c.attention_chunk > 0) parts.push_back(fmt::format("chunks of {}", c.attention_chunk));
  if (c.causal == Causal::none && c.alignment != Causal::none)
    parts.push_back(fmt::format("alignment {}", name_of(c.alignment)));
  return fmt::format("{}{}", parts.empty() ? "" : " ", fmt::join(parts, ", "));
}

/// " factors of k and v, blocks of 16 keys".
std::string factors_text(const Problem& c) {
  if (!has_variant(c, descale_variant.name)) return {};
  std::vector<std::string_view> tensors;
  for (const Slot tensor : {Slot::q, Slot::k, Slot::v})
    if (c[descale_of(tensor)].present()) tensors.push_back(name_of(tensor));
  std::string words = " factors of ";
  for (std::size_t i = 0; i < tensors.size(); ++i)
    words += fmt::format("{}{}", i == 0 ? "" : i + 1 == tensors.size() ? " and " : ", ", tensors[i]);
  std::vector<std::string> blocks;
  const auto add = [&](std::int64_t block, std::string_view rows) {
    if (block > 0) blocks.push_back(fmt::format("{} {}{}", block, rows, block == 1 ? "" : "s"));
  };
  add(c.q_descale_block, "row"), add(c.kv_descale_block, "key");
  return blocks.empty() ? words : fmt::format("{}, blocks of {}", words, fmt::join(blocks, " and "));
}

/// Whether a tensor is of numbers that attention multiplies or adds up, and not of what it is to do with them.
bool is_operand(Slot slot) {
  return slot <= Slot::v || (slot > Slot::mask && slot < Slot::q_lengths) || slot == Slot::k_new ||
         slot == Slot::v_new || slot >= Slot::d_out;
}

/// "  mask=0,-inf"; a large one by its shape, and of q, k and v, whose extents stand before them, not at all.
std::string tensor_text(const Case& c, Slot slot) {
  constexpr std::int64_t shown = 8;
  const Tensor& tensor = c[slot];
  if (!tensor.present()) return {};
  if (tensor.elements() > shown)
    return slot < Slot::mask ? "" : fmt::format("  {} {}", name_of(slot), tensor.shape().to_string());
  std::string words = fmt::format("  {}=", name_of(slot));
  for (std::int64_t at = 0; at < tensor.elements(); ++at)
    words += fmt::format("{}{}", at == 0 ? "" : ",", short_number(tensor[at]));
  return words;
}

/// "bf16  H=4 KV=2 M=1 N=1 dk=1 dv=1  q=0,0,0,0  k=0,0  v=1,0".
std::string smallest_of(const FindingRecord& finding, const Case* c, const Tiles& tiles) {
  if (c == nullptr) return fmt::format("case {} of {}", finding.k, one_line(finding.subject.property));
  const Extents e = extents_of(*c);
  std::string words = fmt::format("{} ", name_of(c->dtype()));
  const auto extent = [&](std::string_view name, std::int64_t value, bool shown) {
    if (shown) words += fmt::format(" {}={}", name, value);
  };
  extent("B", e.batch, e.batch > 1);
  extent("H", e.heads, e.heads > 1);
  extent("KV", e.kv_heads, e.heads > 1 && e.kv_heads > 0);
  extent("M", e.queries, true);
  extent("N", e.keys, true);
  extent("dk", e.dk, true);
  extent("dv", e.dv, e.dv != e.dk);
  if (const std::string in_tiles = tiles_text(e, tiles); c->provenance.shrunk && !in_tiles.empty())
    words += fmt::format(" ({})", in_tiles);
  if (c->causal != Causal::none) words += fmt::format(" causal {}", name_of(c->causal));
  words += positions_text(*c);
  words += factors_text(*c);
  if (c->append > 0) words += fmt::format(" appends {}", c->append);
  if (c->softcap > 0) words += fmt::format(" softcap={}", short_number(c->softcap));
  if (c->dropout_p > 0) words += fmt::format(" dropout_p={}", short_number(c->dropout_p));
  if (!is_inverse_root(c->scale, e.dk)) words += fmt::format(" scale={}", short_number(c->scale));
  // All numbers may be 0 where a kernel reads what lies between them.
  if (c->provenance.strides) words += fmt::format(" strides {}", one_line(*c->provenance.strides));
  // What is to be done with the numbers, then these: where room is short, they are what is cut.
  for (const bool operands : {false, true})
    for (int slot = 0; slot < slot_count; ++slot)
      if (is_operand(static_cast<Slot>(slot)) == operands) words += tensor_text(*c, static_cast<Slot>(slot));
  return words;
}

/// Whether what was found is no element of the answer to the case itself, since another number is right there: the
/// property calls the kernel with other tensors, too, that it makes of it. False where that takes too long to answer.
bool is_of_another_call(const FindingRecord& finding, const Case& c) {
  constexpr double most = 1 << 20;
  if (c.operation != Operation::attention || cost_of(c) > most || !is_against_exact(finding)) return false;
  if (finding.verdict.violation == Violation::lse) return false;
  const ComparedRecord& one = finding.compared[0];
  if (one.shape != (one.gradient ? c[slot_of(*one.gradient)].shape() : c.out_shape())) return true;
  const auto at = static_cast<std::size_t>(one.element);
  const Enclosure right = one.gradient ? gradient_enclosures(c)[static_cast<std::size_t>(*one.gradient)].at(at)
                                       : exact_elements(c, Arithmetic()).at(at).exact;
  // Both are certain; where nothing is defined here, there something was.
  return !(right.lower <= one.exact->upper && one.exact->lower <= right.upper);
}

/// With as many digits as it takes to tell them apart.
std::pair<std::string, std::string> told_apart(double found, double exact) {
  std::pair texts{short_number(found), short_number(exact)};
  for (int digits = 4; texts.first == texts.second && found != exact && digits <= 17; ++digits)
    texts = {fmt::format("{:.{}g}", found, digits), fmt::format("{:.{}g}", exact, digits)};
  return texts;
}

/// "out[0, 1, 0, 0] = 0, exact 1, allowed ± 0.0039: 256 times too far".
std::string found_of(const FindingRecord& finding) {
  const Verdict& verdict = finding.verdict;
  if (finding.repetition)
    return fmt::format("not repeatable: wrong in {} of {} further calls", finding.repetition->again,
                       finding.repetition->of);
  if (!is_against_exact(finding) || verdict.violation == Violation::lse) return one_line(verdict.reason);
  const ComparedRecord& one = finding.compared[0];
  const auto [found, exact] = told_apart(one.found, one.exact->lower);
  std::string words = fmt::format("{} = {}, exact {}", one.place(), found, exact);
  if (verdict.violation != Violation::bound) return words;
  // Of a sum of zeros next to nothing is allowed, and how many times it is exceeded says nothing.
  constexpr double many = 1e6;
  words += verdict.utilisation > many ? fmt::format(", allowed ± {}", short_number(verdict.allowed))
                                      : fmt::format(", allowed ± {}: {} times as far", short_number(verdict.allowed),
                                                    short_number(verdict.utilisation));
  return words;
}

std::string fails_of(const Cause& cause) {
  constexpr std::size_t shown = 3;
  std::string words = cause.properties.size() == 1 ? "" : fmt::format("{} properties: ", cause.properties.size());
  for (std::size_t i = 0; i < std::min(shown, cause.properties.size()); ++i)
    words += fmt::format("{}{}", i == 0 ? "" : ", ", one_line(cause.properties[i]));
  if (cause.properties.size() > shown) words += fmt::format(", +{}", cause.properties.size() - shown);
  return words;
}

}  // namespace

std::vector<CauseWords> words_of_causes(const Summary& summary, const std::string& folder, const std::string& typed) {
  std::vector<CauseWords> all;
  for (const Cause& cause : summary.causes) {
    const FindingRecord* const example = example_of(summary, cause);
    const std::size_t number = all.size() + 1;
    CauseWords words{.kernel = kernel_name(summary, cause.kernel),
                     .dtypes = one_line(fmt::format("{}", fmt::join(cause.dtypes, ", "))),
                     .title = summary.causes.size() > 1 ? fmt::format("cause {}", number) : "",
                     .of = {},
                     .what = what_of(summary, cause, example),
                     .why = why_of(summary, cause, example),
                     .when = when_of(cause),
                     .smallest = {},
                     .found = {},
                     .right = right_of(cause),
                     .replay = {},
                     .fails = fails_of(cause),
                     .cause = &cause};
    words.of = fmt::format("{} in {}", words.kernel, words.dtypes);
    if (example != nullptr) {
      const KernelSummary* const kernel = kernel_of(summary, cause);
      const std::optional<Case> c = case_of(*example, folder);
      words.smallest = smallest_of(*example, c ? &*c : nullptr, kernel == nullptr ? Tiles() : kernel->tiles);
      words.found = found_of(*example);
      if (c && is_of_another_call(*example, *c))
        // A script calls the forward pass alone.
        words.found +=
            fmt::format("; {} makes another input of it for that call{}", one_line(example->subject.property),
                        example->compared[0].gradient ? "" : ", which replay --script FILE.py shows");
      if (words.found == words.what) words.found.clear();
      words.case_file = example->case_file;
      words.kind = example->kind();
      if (!typed.empty())
        words.replay = fmt::format("{} replay {}{}", command_name(), shell_quoted(typed),
                                   number == 1 ? "" : fmt::format(" --cause {}", number));
    }
    all.push_back(std::move(words));
  }
  return all;
}

}  // namespace attest
