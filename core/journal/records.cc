#include <fmt/format.h>

#include <algorithm>

#include "core/journal/journal.h"
#include "core/support/json_writer.h"
#include "core/support/visible.h"

namespace attest {
namespace {

JsonWriter begin(std::string_view kind) {
  JsonWriter json;
  json.begin_object().member("kind", kind);
  return json;
}

std::string finish(JsonWriter& json) {
  return json.end_object().text() + '\n';
}

void write_subject(JsonWriter& json, const Subject& subject) {
  json.member("property", subject.property).member("kernel", subject.kernel).member("dtype", subject.dtype);
}

void write_tally(JsonWriter& json, const Tally& tally) {
  json.member("held", tally.held)
      .member("violated", tally.violated)
      .member("skipped", tally.skipped)
      .member("excused", tally.excused)
      .member("inconclusive", tally.inconclusive)
      .member("worst", tally.worst_utilisation)
      .member("worst_k", tally.worst_k);
  json.key("level").begin_array();
  for (const std::int64_t count : tally.level) json.value(count);
  json.end_array().key("histogram").begin_array();
  for (std::size_t bin = 0; bin < tally.histogram.size(); ++bin) {
    if (tally.histogram[bin] != 0) json.begin_array().value(bin).value(tally.histogram[bin]).end_array();
  }
  json.end_array().key("reasons").begin_object();
  for (const auto& [reason, count] : tally.reasons) json.member(reason.text(), count);
  json.end_object();
  if (!tally.violated_k.empty()) {
    json.key("violated_k").begin_array();
    for (const std::int64_t k : tally.violated_k) json.value(k);
    json.end_array();
  }
  if (tally.bits_compared > 0)
    json.key("same_bits").begin_array().value(tally.bits_agreed).value(tally.bits_compared).end_array();
  if (!tally.drawn.empty()) write_drawn(json.key("drawn"), tally.drawn);
  if (!tally.errors.empty()) write_errors(json.key("errors"), tally.errors);
  if (tally.reach) write_reach(json.key("reach"), *tally.reach);
  if (!tally.shapes.empty()) write_shapes(json.key("shapes"), tally.shapes);
  if (!tally.alarm) return;
  json.key("alarm")
      .begin_object()
      .member("elements", tally.alarm->all.elements)
      .member("beyond", tally.alarm->all.beyond)
      .member("uncovered", tally.alarm->all.uncovered)
      .member("cases", tally.alarm->cases)
      .member("worst", tally.alarm->all.worst)
      .member("worst_k", tally.alarm->worst_k)
      .end_object();
}

void write_verdict(JsonWriter& json, const Verdict& verdict) {
  json.begin_object()
      .member("outcome", name_of(verdict.outcome))
      .member("utilisation", verdict.utilisation)
      .member("error", verdict.error)
      .member("allowed", verdict.allowed)
      .member("element", verdict.element)
      .member("level", verdict.level)
      .member("reason", verdict.reason)
      .end_object();
}

}  // namespace

void write_drawn(JsonWriter& json, const DrawnCounts& drawn) {
  json.begin_object();
  std::string_view open;
  for (const auto& [word, cases] : drawn) {
    const std::size_t colon = word.find(':');
    const std::string_view group = std::string_view(word).substr(0, colon);
    if (group != open) {
      if (!open.empty()) json.end_object();
      json.key(group).begin_object();
      open = group;
    }
    json.member(std::string_view(word).substr(std::min(colon + 1, word.size())), cases);
  }
  if (!open.empty()) json.end_object();
  json.end_object();
}

void write_reach(JsonWriter& json, const Reach& reach) {
  json.begin_object();
  for (const auto& [name, extent] : reach_members) json.member(name, reach.*extent);
  json.end_object();
}

std::string_view FindingRecord::kind() const {
  return verdict.outcome == Outcome::violated ? name_of(verdict.violation) : name_of(verdict.outcome);
}

std::string to_line(const RunRecord& record) {
  JsonWriter json = begin("run");
  json.member("schema", "attest-journal/2").member("seed", record.seed);
  if (!record.case_files.empty()) {
    json.key("case_files").begin_array();
    for (const std::string& file : record.case_files) json.value(file);
    json.end_array();
  }
  if (record.alarm > 0) json.member("alarm", record.alarm);
  if (!record.against.empty()) json.member("against", record.against);
  if (record.fuzz) json.member("source", "fuzz");
  if (!record.shapes.empty()) json.member("shapes", record.shapes);
  return finish(json);
}

std::string to_line(const MetaRecord& record) {
  JsonWriter json = begin("meta");
  json.member("event", record.event);
  for (const auto& [name, fact] : record.facts) json.member(name, fact);
  return finish(json);
}

std::string to_line(const KernelRecord& record) {
  JsonWriter json = begin("kernel");
  json.member("id", record.id);
  if (!record.manifest.empty()) json.key("manifest").raw(visible_json(record.manifest));
  if (!record.not_started.empty()) json.member("not_started", record.not_started);
  if (!record.files.empty()) {
    json.key("files").begin_object();
    for (const auto& [name, hashes] : record.files) {
      json.key(name).begin_array();
      for (const std::string& hash : hashes) json.value(hash);
      json.end_array();
    }
    json.end_object();
  }
  return finish(json);
}

std::string to_line(const BatchRecord& record) {
  JsonWriter json = begin("batch");
  write_subject(json, record.subject);
  json.member("first", record.first_k).member("last", record.last_k);
  if (record.shard.count != 1) {
    json.key("shard").begin_array().value(record.shard.index).value(record.shard.count).end_array();
  }
  write_tally(json, record.tally);
  return finish(json);
}

std::string ComparedRecord::place() const {
  return fmt::format("{}{}", gradient ? name_of(*gradient) : "out", index_text(element, shape));
}

std::string to_line(const FindingRecord& record) {
  JsonWriter json = begin("finding");
  write_subject(json, record.subject);
  json.member("k", record.k).member("class", record.kind()).member("case", record.case_file).key("verdict");
  write_verdict(json, record.verdict);
  if (record.repetition) {
    json.key("repetition").begin_object().member("again", record.repetition->again).member("of", record.repetition->of);
    json.key("before").begin_array();
    for (const std::string& file : record.repetition->before) json.value(file);
    json.end_array().end_object();
  }
  if (record.compared.empty()) return finish(json);
  json.key("compared").begin_array();
  for (const ComparedRecord& side : record.compared) {
    json.begin_object().key("shape").begin_array();
    for (int axis = 0; axis < side.shape.rank(); ++axis) json.value(side.shape[axis]);
    json.end_array().member("element", side.element).member("keys", side.keys).member("found", side.found);
    if (side.exact) json.key("exact").begin_array().value(side.exact->lower).value(side.exact->upper).end_array();
    if (side.gradient) json.member("gradient", name_of(*side.gradient));
    json.end_object();
  }
  json.end_array();
  return finish(json);
}

std::string to_line(const ProofRecord& record) {
  JsonWriter json = begin("proof");
  json.member("property", record.property).member("level", record.level).member("subject", record.subject);
  json.member("words", record.words);
  return finish(json);
}

std::string to_text(const Journal& journal) {
  const std::size_t lines =
      1 + journal.kernels.size() + journal.findings.size() + journal.proofs.size() + journal.batches.size();
  std::string text;
  LineStamper stamper;
  if (journal.run) {
    std::string run = to_line(*journal.run);
    // It is written whole or not at all, so that an end that is gone is damage and no kill's.
    run.insert(run.rfind('}'), ",\"lines\":" + std::to_string(lines));
    text += stamper.stamp(run);
  }
  for (const KernelRecord& record : journal.kernels) text += stamper.stamp(to_line(record));
  for (const FindingRecord& record : journal.findings) text += stamper.stamp(to_line(record));
  for (const ProofRecord& record : journal.proofs) text += stamper.stamp(to_line(record));
  for (const BatchRecord& record : journal.batches) text += stamper.stamp(to_line(record));
  return text;
}

}  // namespace attest
