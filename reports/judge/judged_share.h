// What of a contract a kernel was judged on, counted cell by cell while the run goes on.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/measure/verdict.h"
#include "reports/judge/contract.h"

namespace attest {

/// Thread-safe. A cell is judged once an answer of the kernel to a case of it was held against the exact one, whatever
/// came of it; a refusal, a crash or a lateness is no answer.
class JudgedShare {
 public:
  /// `contract` must outlive it.
  explicit JudgedShare(const Contract& contract) : contract_(contract) {}
  void add(const Case& c, const Verdict& verdict);

  [[nodiscard]] std::int64_t cells() const { return static_cast<std::int64_t>(contract_.cells.size()); }
  [[nodiscard]] std::int64_t judged_cells() const;
  [[nodiscard]] double share() const;
  [[nodiscard]] bool is_enough() const { return share() >= contract_.share; }
  [[nodiscard]] bool is_judged(const ContractCell& cell) const;
  /// A cell is not judged although a case of it was asked, of which the definition says nothing: another would mend
  /// that.
  [[nodiscard]] bool lacks_an_answer() const;
  /// Cases that were skipped, and why the first of them was.
  struct Skipped {
    std::int64_t cases = 0;
    std::string first;
  };
  [[nodiscard]] Skipped skipped() const;

 private:
  const Contract& contract_;
  mutable std::mutex mutex_;
  std::map<ContractCell, std::int64_t> judged_;  ///< answers
  std::set<ContractCell> excused_;
  Skipped skipped_;
};

/// "judged 24 of 24 shapes x dtypes x forms of flash-bf16 (100 %; 95 % are the least)", and below it a strip: a line
/// for each shape, a column for each form, a mark for each dtype.
[[nodiscard]] std::string share_text(const Contract& contract, const JudgedShare& share, std::size_t width = 80);

}  // namespace attest
