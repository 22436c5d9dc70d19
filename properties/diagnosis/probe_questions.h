// What every probe of a kernel stands on: plain problems of a size that it answers right, and the readings of a
// question that all its answers fit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "properties/diagnosis/probe.h"
#include "properties/generators/stream.h"

namespace attest {

/// Problems per question. Readings that stay together through all of them are told apart by nothing.
inline constexpr int probe_rounds = 6;

struct ProbeSize {
  std::int64_t batch = 2, heads = 2, kv_heads = 2, queries = 4, keys = 7, dk = 8, dv = 8;
};

/// What a question may have been taken for.
struct Reading {
  std::string words;
  Case problem;
};
struct Question {
  Case asked;
  std::vector<Reading> readings;
};

/// How a question ended: not answered, or the readings that every answer fits.
struct Settled {
  CallStatus status = CallStatus::ok;
  std::string message;
  std::vector<std::string> readings;
  [[nodiscard]] bool is(std::string_view words) const { return readings.size() == 1 && readings.front() == words; }
  [[nodiscard]] std::string text() const;
};

/// Asks one kernel, in one of its dtypes (f32 where it lists it), and keeps what it found.
class ProbeQuestions {
 public:
  /// Asks the attention entry, or the multihead one where that is all there is. Looks for a size at which the plainest
  /// problem is answered right; throws UsageError where there is none.
  ProbeQuestions(Kernel& kernel, std::uint64_t seed);

  [[nodiscard]] Kernel& kernel() { return kernel_; }
  [[nodiscard]] const Manifest& manifest() const { return kernel_.manifest(); }
  [[nodiscard]] const Arithmetic& arithmetic() const { return manifest().arithmetic.usual_for(dtype_); }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] Operation operation() const { return operation_; }
  /// A multihead kernel that takes one tensor as q, k and v: as many queries as keys.
  [[nodiscard]] bool is_self() const { return operation_ == Operation::multihead && manifest().self_attention_only; }
  [[nodiscard]] const ProbeSize& size() const { return size_; }
  [[nodiscard]] Probed& result() { return result_; }

  /// Random q, k and v of multiples of 1/8 in [-1, 1], which every format holds; scale 1/sqrt(dk). For multihead with
  /// weights and biases of such numbers, heads·dk being the width of every token; `kv_heads` counts for attention only.
  /// Where the manifest has no keys or values but whole numbers, with the factors by which these are as large.
  [[nodiscard]] Case plain(const ProbeSize& size);
  /// A mask [1, 1, M, N], each row with a key that it sees and one that it does not, where N >= 2.
  [[nodiscard]] Tensor hiding(bool boolean, const ProbeSize& size);
  [[nodiscard]] bool fits(const Case& problem, const Tensor& out) const;
  /// What is exact of both attention problems is the same, but for what is lost where one is written out as a mask.
  [[nodiscard]] bool have_one_answer(const Case& a, const Case& b) const;
  /// Asks probe_rounds times.
  [[nodiscard]] Settled settle(const std::function<Question()>& ask);
  /// "yes", or what became of the plain problem of that size.
  [[nodiscard]] std::string answer_at(const ProbeSize& size);

  /// Keeps an answer. A kernel that says it cannot do what its manifest offers is skipped in a run, and contradicts
  /// nothing.
  void note(std::string question, bool offered, const Settled& settled, bool does);
  void note(std::string question, std::string declared, std::string found, bool contradicts, bool beyond);

 private:
  Case plain_multihead(const ProbeSize& size);
  /// why_over_budget of such a problem.
  [[nodiscard]] std::string over_budget(const ProbeSize& size) const;
  Tensor numbers(const Shape& shape);
  double bias();
  [[nodiscard]] Verdict judge(const Case& problem, const Tensor& out) const;
  void find_footing();

  Kernel& kernel_;
  Stream stream_;
  DType dtype_ = DType::f32;
  Operation operation_ = Operation::attention;
  ProbeSize size_;
  Probed result_;
};

[[nodiscard]] std::string yes_or_no(bool yes);
/// f32 where the manifest lists it, else its first.
[[nodiscard]] DType asked_dtype(const Manifest& manifest);

}  // namespace attest
