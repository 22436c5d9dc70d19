#include "reports/test/journals.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace attest::fake {

Tally tally_of(std::int64_t held, std::int64_t violated, std::int64_t skipped, std::int64_t inconclusive) {
  Tally tally;
  std::int64_t k = 0;
  for (std::int64_t i = 0; i < held; ++i) tally.add(k++, {.utilisation = 0.25});
  for (std::int64_t i = 0; i < violated; ++i)
    tally.add(k++, {.outcome = Outcome::violated, .violation = Violation::bound, .utilisation = 3});
  for (std::int64_t i = 0; i < skipped; ++i) tally.add(k++, {.outcome = Outcome::skipped, .reason = "has 9 keys"});
  for (std::int64_t i = 0; i < inconclusive; ++i)
    tally.add(k++, {.outcome = Outcome::inconclusive, .reason = "undecided"});
  return tally;
}

Journal ended_journal() {
  Journal journal;
  journal.run = RunRecord{};
  journal.meta.push_back({"begin", {{"time", "2026-01-31T01:02:03Z"}, {"host", "here"}, {"version", "0.1.0"}}});
  journal.meta.push_back({"end", {{"time", "2026-01-31T01:02:05Z"}}});
  return journal;
}

void add_batch(Journal& journal, const Subject& subject, const Tally& tally) {
  journal.batches.push_back({subject, 0, tally.cases(), {}, tally});
}

void add_finding(Journal& journal, const Subject& subject, const std::string& reason, std::int64_t k, Outcome outcome) {
  Verdict verdict{.outcome = outcome, .reason = reason};
  if (outcome == Outcome::violated) verdict.violation = Violation::bound, verdict.utilisation = 3;
  journal.findings.push_back({subject, k, fmt::format("cases/k{}.safetensors", k), verdict});
}

Journal mixed_journal() {
  Journal journal = ended_journal();
  const auto subject = [](const char* property) { return Subject{property, "builtin:bad", "f32"}; };
  add_batch(journal, subject("attention.oracle"), tally_of(3, 2));
  add_batch(journal, subject("attention.finite"), tally_of(5));
  add_batch(journal, subject("masked.row-shift"), tally_of(0, 0, 4));
  add_batch(journal, subject("softmax.monotone"), tally_of(2, 0, 0, 1));
  add_batch(journal, {"attention.oracle", "builtin:good", "bf16"}, tally_of(9));
  add_finding(journal, subject("attention.oracle"), "out[0] = 2; accepted is [0, 1]");
  add_finding(journal, subject("softmax.monotone"), "within rounding", 2, Outcome::inconclusive);
  journal.kernels = {{"builtin:bad", "{}", ""}, {"builtin:good", "{}", ""}, {"pytorch:*", "", "no torch"}};
  return journal;
}

Journal hostile_journal(const std::string& evil) {
  Journal journal = ended_journal();
  const Subject subject{"p" + evil, "exec:" + evil, "f32" + evil}, skipped{"q", "exec:" + evil, "f32"};
  Tally tally = tally_of(1, 2, 0, 1);
  tally.reasons[{Outcome::skipped, evil}] = 2;
  add_batch(journal, subject, tally);
  Tally none;
  none.skip(3, "skipped: " + evil);
  add_batch(journal, skipped, none);
  add_finding(journal, subject, evil);
  journal.findings.back().case_file = "cases/" + evil;
  // Names of manifests are valid UTF-8, for JSON is.
  const std::string manifest =
      nlohmann::json{{"name", evil}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  journal.kernels = {{"exec:" + evil, manifest, ""}, {evil, "", evil}};
  journal.meta.push_back({"note", {{"kernel", evil}, {"text", evil}}});
  journal.meta.push_back({"explanation", {{"kernel", "exec:" + evil}, {"dtype", "f32" + evil}, {"text", evil}}});
  journal.run->against = evil;
  return journal;
}

}  // namespace attest::fake
