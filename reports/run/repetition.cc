#include "reports/run/repetition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/run_folder/run_folder.h"

namespace attest {
namespace {

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

std::string repetition_text(const Repetition& repetition) {
  const std::string at_once =
      fmt::format("checked again at once it was violated in {} of {}", repetition.again, repetition.of);
  if (repetition.before.empty()) {
    return fmt::format("not repeatable: {}{}; no calls before it were found that bring it back", at_once,
                       repetition.again == repetition.of ? ", and by a kernel started afresh it is not" : "");
  }
  return fmt::format(
      "not repeatable by itself: a kernel started afresh violates it after {} other call{}, which replay "
      "makes first; {}",
      repetition.before.size(), repetition.before.size() == 1 ? "" : "s", at_once);
}

void note_repetition(FindingRecord& finding, Case& saved) {
  const Repetition& repetition = *finding.repetition;
  finding.verdict.reason += "; " + repetition_text(repetition);
  saved.provenance.violated_again = fmt::format("{} of {}", repetition.again, repetition.of);
  std::string names;
  for (const std::string& file : repetition.before)
    names += (names.empty() ? "" : " ") + std::filesystem::path(file).filename().string();
  if (!names.empty()) saved.provenance.calls_before = names;
}

Case call_file(const Call& call) {
  Case c = call.problem;
  c.provenance.call_output = name_of(call.output);
  c.provenance.call_lse = call.want_lse ? "yes" : "no";
  return c;
}

std::optional<Repetition> repetition_of(const Case& saved) {
  if (!saved.provenance.violated_again) return std::nullopt;
  Repetition repetition;
  const std::string_view text = *saved.provenance.violated_again;
  const std::size_t word = text.find(" of ");
  if (word != std::string_view::npos) {
    repetition.again = number_of(text.substr(0, word)).value_or(0);
    repetition.of = number_of(text.substr(word + 4)).value_or(0);
  }
  const std::string names = saved.provenance.calls_before.value_or("");
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    if (end > at) repetition.before.emplace_back(names, at, end - at);
    at = end + 1;
  }
  return repetition;
}

std::vector<Call> calls_before(const Repetition& repetition, const std::filesystem::path& file) {
  std::vector<Call> calls;
  for (const std::string& name : repetition.before) {
    // The name is another's input: a file beside the case, and nothing else.
    if (name.find('/') != std::string::npos || name.starts_with('.'))
      throw UsageError(
          fmt::format("{}: names {} as a call before it; it must be a file beside it", file.string(), in_quotes(name)));
    Case c;
    try {
      c = load_named_case(file.parent_path() / name).value;
    } catch (const UsageError& wrong) {
      throw UsageError(
          fmt::format("{}: needs the calls before it, and one cannot be made: {}", file.string(), wrong.what()));
    }
    const std::optional<DType> output = named<DType>(c.provenance.call_output.value_or(""));
    const bool want_lse = c.provenance.call_lse == "yes";
    const DType own = c.dtype();
    calls.push_back({std::move(c), output.value_or(own), want_lse});
  }
  return calls;
}

}  // namespace attest
