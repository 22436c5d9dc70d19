#include "properties/diagnosis/probe_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/support/errors.h"
#include "core/support/infinity.h"
#include "properties/language/answer.h"
#include "properties/road/case_budget.h"
#include "properties/road/fit_form.h"

namespace attest {

std::string yes_or_no(bool yes) {
  return yes ? "yes" : "no";
}

std::string Settled::text() const {
  if (status != CallStatus::ok) return fmt::format("{}: {}", name_of(status), message.empty() ? "no reason" : message);
  if (readings.empty()) return "an answer that fits no reading";
  return fmt::format("{}{}", fmt::join(readings, " or "), readings.size() > 1 ? ", not told apart" : "");
}

DType asked_dtype(const Manifest& manifest) {
  const auto f32 = std::ranges::find(manifest.dtypes, DType::f32);
  return f32 == manifest.dtypes.end() ? manifest.dtypes.front() : *f32;
}

ProbeQuestions::ProbeQuestions(Kernel& kernel, std::uint64_t seed) : kernel_(kernel), stream_(seed) {
  const Manifest& m = kernel.manifest();
  if (!m.attention) operation_ = Operation::multihead;
  if (is_self()) size_.queries = size_.keys;
  dtype_ = asked_dtype(m);
  result_.manifest = m;
  find_footing();
}

Tensor ProbeQuestions::numbers(const Shape& shape) {
  Tensor tensor(dtype_, shape);
  for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, static_cast<double>(stream_.between(-8, 8)) / 8.0);
  return tensor;
}

std::string ProbeQuestions::over_budget(const ProbeSize& s) const {
  Extents asked{.batch = s.batch, .heads = s.heads, .kv_heads = s.kv_heads, .queries = s.queries, .keys = s.keys};
  asked.dk = s.dk, asked.dv = s.dv;
  if (operation_ == Operation::multihead) asked.c_q = asked.c_k = asked.c_v = asked.d_o = s.heads * s.dk;
  return why_over_budget(operation_, Extents(), asked);
}

Case ProbeQuestions::plain_multihead(const ProbeSize& s) {
  Case c;
  c.operation = Operation::multihead;
  c.heads = static_cast<std::int32_t>(s.heads);
  c.scale = inverse_root(s.dk);
  const std::int64_t width = s.heads * s.dk, value_width = s.heads * s.dv;
  c[Slot::q] = numbers({s.batch, s.queries, width});
  c[Slot::k] = is_self() ? c.q() : numbers({s.batch, s.keys, width});
  c[Slot::v] = is_self() ? c.q() : numbers({s.batch, s.keys, width});
  c[Slot::w_q] = numbers({width, width});
  c[Slot::w_k] = numbers({width, width});
  c[Slot::w_v] = numbers({width, value_width});
  c[Slot::w_o] = numbers({value_width, width});
  c[Slot::b_q] = numbers({width});
  c[Slot::b_k] = numbers({width});
  c[Slot::b_v] = numbers({value_width});
  c[Slot::b_o] = numbers({width});
  return c;
}

Case ProbeQuestions::plain(const ProbeSize& s) {
  if (operation_ == Operation::multihead) return plain_multihead(s);
  Case c;
  c[Slot::q] = numbers({s.batch, s.heads, s.queries, s.dk});
  c[Slot::k] = numbers({s.batch, s.kv_heads, s.keys, s.dk});
  c[Slot::v] = numbers({s.batch, s.kv_heads, s.keys, s.dv});
  c.scale = inverse_root(s.dk);
  const std::vector<KvDtypes> formats = manifest().kv_dtypes_for(dtype_);
  for (const auto& [slot, format] : {std::pair{Slot::k, &KvDtypes::k}, std::pair{Slot::v, &KvDtypes::v}})
    if (std::ranges::all_of(formats, [format](const KvDtypes& one) { return one.*format == DType::i8; }))
      c[descale_of(slot)] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{1});
  return in_kv_dtypes(std::move(c), manifest());
}

Tensor ProbeQuestions::hiding(bool boolean, const ProbeSize& s) {
  Tensor mask(boolean ? DType::boolean : dtype_, {1, 1, s.queries, s.keys});
  for (std::int64_t i = 0; i < s.queries; ++i) {
    const std::int64_t seen = stream_.below(s.keys), hidden = (seen + 1 + stream_.below(s.keys - 1)) % s.keys;
    for (std::int64_t j = 0; j < s.keys; ++j) {
      const bool sees = j == seen || (j != hidden && stream_.one_in(2));
      mask.set(i * s.keys + j, boolean ? (sees ? 1.0 : 0.0) : (sees ? bias() : -infinity));
    }
  }
  return mask;
}

double ProbeQuestions::bias() {
  return static_cast<double>(stream_.between(-6, 6)) / 2.0;
}

Verdict ProbeQuestions::judge(const Case& problem, const Tensor& out) const {
  return operation_ == Operation::multihead ? judge_multihead(problem, out, arithmetic())
                                            : judge_attention(problem, out, Tensor(), arithmetic());
}

bool ProbeQuestions::fits(const Case& problem, const Tensor& out) const {
  return judge(problem, out).outcome == Outcome::held;
}

bool ProbeQuestions::have_one_answer(const Case& a, const Case& b) const {
  const AttentionBounds of_a = attention_bounds(a, arithmetic()), of_b = attention_bounds(b, arithmetic());
  for (std::size_t e = 0; e < of_a.elements.size(); ++e) {
    const ElementBound &one = of_a.elements[e], &other = of_b.elements[e];
    if (is_of_row(one.excuse) && is_of_row(other.excuse)) continue;
    const double lost = 0x1p-40 * (1 + std::fabs(one.value)) + one.certificate + other.certificate;
    if (!(std::fabs(one.value - other.value) <= lost)) return false;
  }
  return true;
}

Settled ProbeQuestions::settle(const std::function<Question()>& ask) {
  Settled settled;
  for (int round = 0; round < probe_rounds; ++round) {
    const Question question = ask();
    const Reply reply = kernel_.run(question.asked);
    if (reply.status != CallStatus::ok) return {reply.status, reply.message, {}};
    std::vector<std::string> fitting;
    for (const Reading& reading : question.readings) {
      const bool still = round == 0 || std::ranges::find(settled.readings, reading.words) != settled.readings.end();
      if (still && fits(reading.problem, reply.out)) fitting.push_back(reading.words);
    }
    settled.readings = std::move(fitting);
    if (settled.readings.empty()) break;
  }
  return settled;
}

std::string ProbeQuestions::answer_at(const ProbeSize& s) {
  const Case c = plain(s);
  const Reply reply = kernel_.run(c);
  if (reply.status != CallStatus::ok)
    return fmt::format("{}: {}", name_of(reply.status), reply.message.empty() ? "no reason" : reply.message);
  // Nothing to judge: no query, or no key.
  if (s.queries == 0 || s.keys == 0) return "yes";
  return fits(c, reply.out) ? "yes" : "a wrong answer";
}

void ProbeQuestions::note(std::string question, bool offered, const Settled& settled, bool does) {
  note(std::move(question), yes_or_no(offered), settled.text(),
       offered && !does && settled.status != CallStatus::unsupported, !offered && does);
}

void ProbeQuestions::note(std::string question, std::string declared, std::string found, bool contradicts,
                          bool beyond) {
  result_.answers.push_back({.question = std::move(question),
                             .declared = std::move(declared),
                             .found = std::move(found),
                             .contradicts = contradicts,
                             .beyond = beyond});
}

void ProbeQuestions::find_footing() {
  const Manifest& m = kernel_.manifest();
  std::string last = "no size was tried";
  for (const std::int64_t dk :
       {std::int64_t{4}, std::int64_t{8}, std::int64_t{16}, std::int64_t{32}, std::int64_t{64}, std::int64_t{128},
        m.head_dim_multiple, m.head_dims.empty() ? 1 : m.head_dims.front()}) {
    if (!allowed_head_dims(m).has(dk)) continue;
    size_.dk = dk;
    size_.dv = m.value_dim_equals_head_dim ? dk : allowed_value_dims(m).nearest(dk);
    size_.heads = size_.kv_heads =
        2 * m.heads_multiple <= m.max_heads.value_or(64) ? 2 * m.heads_multiple : m.heads_multiple;
    if (!m.group_sizes.empty()) size_.heads *= m.group_sizes.front();
    size_.queries = allowed_queries(m).nearest(size_.queries);
    size_.keys = allowed_keys(m).nearest(std::max(size_.keys, size_.queries + 3));
    if (is_self() || m.same_lengths)
      size_.queries = size_.keys = allowed_tokens(m).nearest(std::min(size_.queries, size_.keys));
    if (std::string why = over_budget(size_); !why.empty()) {
      last = std::move(why);
      continue;
    }
    const Case c = plain(size_);
    if (std::string why = why_unsupported(m, c); !why.empty()) {
      last = fmt::format("the plain problem {}", why);
      continue;
    }
    const Reply reply = kernel_.run(c);
    if (reply.status != CallStatus::ok) {
      last = ending_text(reply.status, reply.message);
      continue;
    }
    const Verdict verdict = judge(c, reply.out);
    if (verdict.outcome == Outcome::held) return;
    last = verdict.reason;
  }
  throw UsageError(
      fmt::format("{}: answers no plain {} problem in {} right, so nothing can be read from what it answers "
                  "(the last: {}); attest check tells what is wrong",
                  kernel_.id(), name_of(operation_), name_of(dtype_), last));
}

}  // namespace attest
