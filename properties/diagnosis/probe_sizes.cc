#include "properties/diagnosis/probe_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "core/kernel/limits.h"

namespace attest {

void ask_lengths(ProbeQuestions& probe) {
  const Manifest& m = probe.manifest();
  const auto ask = [&](const char* what, std::int64_t queries, std::int64_t keys, bool must) {
    if (!allowed_queries(m).has(queries) || !allowed_keys(m).has(keys) || (m.same_lengths && queries != keys)) return;
    ProbeSize s = probe.size();
    s.queries = queries, s.keys = keys;
    const std::string found = probe.answer_at(s);
    // What a kernel says it cannot do is skipped in a run.
    probe.note(what, must ? "yes" : "either", found, must && found != "yes" && !found.starts_with("unsupported"),
               false);
  };
  if (probe.is_self()) {
    ask("no token", 0, 0, false);
    ask("one token", 1, 1, true);
    ask("129 tokens", 129, 129, true);
    return;
  }
  ask("M = 0", 0, probe.size().keys, true);
  ask("N = 0", probe.size().queries, 0, false);
  ask("one query", 1, probe.size().keys, true);
  ask("one key", probe.size().queries, 1, true);
  ask("more queries than keys", 9, 5, true);
  ask("1023 keys", 2, 1023, true);
  if (probe.operation() == Operation::attention) ask("4097 keys", 2, 4097, true);
}

void ask_head_dimensions(ProbeQuestions& probe) {
  constexpr std::int64_t widths[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 64, 80, 96, 128, 160, 192, 256, 512};
  // The weights of a multihead problem grow with the square of it, and the exact answer costs as much.
  const std::int64_t largest_tried = probe.operation() == Operation::multihead ? 32 : 512;
  const Manifest& m = probe.manifest();
  const auto offered = [&](std::int64_t d) { return allowed_head_dims(m).has(d) && allowed_value_dims(m).has(d); };
  if (!m.head_dims.empty() || !m.value_dims.empty()) return;  // they are all there are
  std::vector<std::int64_t> taken;
  std::string wrong;
  for (const std::int64_t d : widths) {
    if (d > largest_tried) break;
    ProbeSize s = probe.size();
    s.dk = s.dv = d;
    const std::string found = probe.answer_at(s);
    if (found == "yes") {
      taken.push_back(d);
    } else if (offered(d) && !found.starts_with("unsupported")) {
      wrong += fmt::format("{}{}: {}", wrong.empty() ? "" : "; ", d, found);
    }
  }
  // The least multiple all of whose tried multiples are taken, up to the largest that is.
  std::int64_t multiple = 1;
  const auto all_taken = [&](std::int64_t step) {
    return std::ranges::all_of(widths, [&](std::int64_t d) {
      return d % step != 0 || d > taken.back() || std::ranges::find(taken, d) != taken.end();
    });
  };
  while (!taken.empty() && multiple < 64 && !all_taken(multiple)) multiple *= 2;
  const std::string limit = m.max_head_dim ? fmt::format(" up to {}", *m.max_head_dim) : "";
  const std::string declared = fmt::format("multiples of {}{}", m.head_dim_multiple, limit);
  const bool more = std::ranges::any_of(taken, [&](std::int64_t d) { return !offered(d); });
  probe.result().answers.push_back({.question = "head dimensions",
                                    .declared = declared,
                                    .found = taken.empty()
                                                 ? "none"
                                                 : fmt::format("multiples of {} up to {}, of those tried{}", multiple,
                                                               taken.back(), wrong.empty() ? "" : "; not " + wrong),
                                    .contradicts = !wrong.empty(),
                                    .beyond = more});
  if (!taken.empty()) {
    probe.result().manifest.head_dim_multiple = multiple;
    if (taken.back() < largest_tried) probe.result().manifest.max_head_dim = taken.back();
  }
  ProbeSize s = probe.size();
  s.dv =
      2 * s.dk <= m.max_head_dim.value_or(2 * s.dk) ? 2 * s.dk : s.dk / 2 / m.head_dim_multiple * m.head_dim_multiple;
  if (s.dv == 0 || s.dv == s.dk) return;
  const std::string found = probe.answer_at(s);
  const bool offered_too = !m.value_dim_equals_head_dim, does = found == "yes";
  probe.note("dv other than dk", yes_or_no(offered_too), found,
             offered_too && !does && !found.starts_with("unsupported"), !offered_too && does);
  probe.result().manifest.value_dim_equals_head_dim = found != "yes";
}

}  // namespace attest
