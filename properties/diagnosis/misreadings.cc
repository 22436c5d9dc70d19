#include "properties/diagnosis/misreadings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/misread_numbers.h"
#include "properties/diagnosis/readings/narrowing.h"
#include "properties/diagnosis/readings/reading.h"
#include "properties/diagnosis/row_misreadings.h"
#include "properties/diagnosis/variants/sequence_misreadings.h"

namespace attest {
namespace {

/// What readings say of a case with more products than these is not asked: each costs an answer of the oracle.
constexpr std::int64_t most_products = std::int64_t{1} << 22;

/// Are there factors for each head and row?
bool factors_serve(const Case& problem) {
  return std::ranges::all_of(std::array{Slot::q, Slot::k, Slot::v}, [&](Slot tensor) {
    const Tensor& factors = problem[descale_of(tensor)];
    if (!factors.present()) return true;
    const Shape &shape = factors.shape(), &of = problem[tensor].shape();
    const std::int64_t block = tensor == Slot::q ? problem.q_descale_block : problem.kv_descale_block;
    const bool serve = (shape[0] == 1 || shape[0] == of[0]) && (shape[1] == 1 || shape[1] == of[1]);
    return serve && (shape[2] == 1 || shape[2] * block >= of[2]);
  });
}

/// Are there sinks, slopes, factors and what keep says for each of its heads? Axes that are read as others may leave
/// more heads than there are of these, or other rows.
bool serves_its_axes(const Case& problem) {
  const Tensor &sinks = problem[Slot::sink], &keep = problem[Slot::keep], &slopes = problem[Slot::alibi_slopes];
  if (sinks.present() && sinks.elements() != heads_of(problem)) return false;
  if (!factors_serve(problem)) return false;
  const auto serves = [](std::int64_t pages, std::int64_t all) { return pages == 1 || pages == all; };
  if (slopes.present() && (slopes.shape()[1] != heads_of(problem) || !serves(slopes.shape()[0], batch_of(problem))))
    return false;
  if (!keep.present()) return true;
  const Shape& shape = keep.shape();
  return serves(shape[0], batch_of(problem)) && serves(shape[1], heads_of(problem)) &&
         shape[2] == queries_of(problem) && shape[3] == keys_of(problem);
}

/// How an answer fares as one to that problem.
Outcome outcome_as(const Case& problem, const Tensor& out, const Arithmetic& arithmetic) {
  if (out.shape() != problem.out_shape() || !serves_its_axes(problem)) return Outcome::violated;
  return judge_attention(problem, out, Tensor(), arithmetic).outcome;
}

/// A case that the kernel answers wrong.
struct Wrong {
  const Case* value;
  Tensor out;
  /// The error is several times what is allowed. A little beyond the bound a narrower format lies as well, and another
  /// problem that is nearly the same.
  bool far;
};

std::vector<Wrong> wrong_answers(Kernel& kernel, std::span<const Case> cases) {
  constexpr double several = 4;
  std::vector<Wrong> wrong;
  for (const Case& c : cases) {
    const Extents e = extents_of(c);
    if (c.operation != Operation::attention || e.queries == 0 || e.keys == 0) continue;
    if (e.batch * e.heads * e.queries * e.keys * (e.dk + e.dv) > most_products) continue;
    Reply reply = kernel.run(c);
    if (reply.status != CallStatus::ok || !reply.out.present()) continue;
    const Verdict verdict = judge_attention(c, reply.out, Tensor(), kernel.manifest().arithmetic_for(c));
    if (verdict.outcome == Outcome::violated)
      wrong.push_back({&c, std::move(reply.out), !(verdict.utilisation < several)});
  }
  return wrong;
}

/// The sequences that are answered wrong, each as a case of its own, of which `kept` is the memory.
std::vector<Wrong> taken_apart(std::vector<Wrong> wrong, const Manifest& manifest, std::deque<Case>& kept) {
  std::vector<Wrong> parts;
  for (Wrong& one : wrong) {
    if (!has_sequences(*one.value)) {
      parts.push_back(std::move(one));
      continue;
    }
    for (std::int64_t s = 0; s < sequence_count(*one.value); ++s) {
      const Sequence own = sequence_of(*one.value, s);
      if (own.queries == 0 || own.keys == 0) continue;
      const Case& part = kept.emplace_back(alone(*one.value, s));
      Tensor out = rows_of_sequence(one.out, *one.value, s);
      if (outcome_as(part, out, manifest.arithmetic_for(part)) == Outcome::violated)
        parts.push_back({&part, std::move(out), one.far});
    }
  }
  return parts;
}

std::vector<MisreadProblem> readings_of_sequences(const Case& c) {
  std::vector<MisreadProblem> readings;
  for (MisreadSequences& reading : misread_sequences(c))
    readings.push_back({.words = std::move(reading.words),
                        .size = 0,
                        .is_told = reading.problem.has_value(),
                        .problem = reading.problem ? *std::move(reading.problem) : c});
  return readings;
}

std::vector<std::string> misread_problem(const std::vector<Wrong>& wrong, const Manifest& manifest,
                                         std::vector<MisreadProblem> (*readings_in)(const Case& c)) {
  Narrowing narrowing;
  for (const Wrong& one : wrong) {
    const std::vector<MisreadProblem> readings = readings_in(*one.value);
    std::vector<Narrowing::Read> read;
    for (const MisreadProblem& reading : readings) {
      if (!narrowing.still_fits(reading.words, reading.size)) continue;
      const auto same = std::ranges::find_if(readings, [&](const MisreadProblem& other) {
        return other.words == reading.words &&
               static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
      });
      const Outcome outcome =
          !reading.is_told ? Outcome::excused
                           : outcome_as(reading.problem, reading.rearranged ? reading.rearranged(one.out) : one.out,
                                        manifest.arithmetic_for(*one.value));
      read.push_back({reading.words, reading.size, outcome, same - readings.begin()});
    }
    narrowing.add(read, one.far);
    if (narrowing.is_over()) break;
  }
  return narrowing.words();
}

/// The same of rows alone.
std::vector<std::string> misread_rows(const std::vector<Wrong>& wrong, const Manifest& manifest) {
  Narrowing narrowing;
  // The numbers of a reading are rounded to f64, which is no less than what is allowed of answers in it.
  const bool narrow = std::ranges::any_of(wrong, [](const Wrong& one) { return one.value->dtype() != DType::f64; });
  // When a sink comes into a row's sum is every kernel's own affair: rows without one tell of the others.
  const auto sinks = [](const Wrong& one) { return has_variant(*one.value, sink_variant.name); };
  const bool plain = !std::ranges::all_of(wrong, sinks);
  for (const Wrong& one : wrong) {
    if ((narrow && one.value->dtype() == DType::f64) || (plain && sinks(one))) continue;
    const Arithmetic& arithmetic = manifest.arithmetic_for(*one.value);
    for (const ExaminedRow& place : rows_to_look_at(*one.value, one.out, arithmetic)) {
      const std::vector<RowReading> readings = readings_of_row(*one.value, place);
      if (readings.empty()) continue;
      const Tensor row = row_of(one.out, place);
      std::vector<Narrowing::Read> read;
      for (const RowReading& reading : readings) {
        if (!narrowing.still_fits(reading.words, reading.size)) continue;
        const auto same = std::ranges::find_if(readings, [&](const RowReading& other) {
          return other.words == reading.words &&
                 static_cast<const Problem&>(other.problem) == static_cast<const Problem&>(reading.problem);
        });
        read.push_back(
            {reading.words, reading.size, outcome_as(reading.problem, row, arithmetic), same - readings.begin()});
      }
      narrowing.add(read, one.far, place.is_wrong);
      if (narrowing.is_over()) return {};
    }
  }
  return narrowing.words();
}

}  // namespace

std::vector<std::string> misreadings_of(Kernel& kernel, std::span<const Case> cases) {
  const std::vector<Wrong> wrong = wrong_answers(kernel, cases);
  if (wrong.empty()) {
    const std::optional<std::string> lse = misread_lse(kernel, cases);
    return lse ? std::vector{*lse} : std::vector<std::string>();
  }
  std::deque<Case> kept;
  const std::vector<Wrong> parts = taken_apart(wrong, kernel.manifest(), kept);
  std::vector<std::string> words;
  // What is wrong of sequences alone is said of them: of one that is taken apart, its last key is the last of all.
  if (std::ranges::all_of(wrong, [](const Wrong& one) { return has_sequences(*one.value) || is_in_cache(*one.value); }))
    words = misread_problem(wrong, kernel.manifest(), readings_of_sequences);
  if (words.empty()) words = misread_problem(parts, kernel.manifest(), readings_of);
  if (words.empty()) words = misread_rows(parts, kernel.manifest());
  if (!words.empty()) return words;
  const auto not_finite = std::ranges::find_if(wrong, [](const Wrong& one) {
    for (std::int64_t at = 0; at < one.out.elements(); ++at)
      if (!std::isfinite(one.out[at])) return true;
    return false;
  });
  if (not_finite == wrong.end()) return {};
  const std::optional<std::string> exp = overflowing_exp(kernel, *not_finite->value);
  return exp ? std::vector{*exp} : std::vector<std::string>();
}

}  // namespace attest
