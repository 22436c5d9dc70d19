// The table of a run's cases: a row each, for who computes with them (a scatter, a regression on the keys, a
// bootstrap). The journal keeps sums over batches alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/journal/journal.h"
#include "properties/road/road.h"

namespace attest {

/// A file of CSV (RFC 4180): a header, then a row for each case, in batches as they end; k says which case it is. An
/// extent that an operation does not have is 0; a number that was not measured is empty. reports/guide/verdicts.md says
/// what the columns are.
class CaseTable {
 public:
  /// Begins the file anew, or goes on with it where a run is resumed. Throws UsageError where it cannot be written.
  CaseTable(std::filesystem::path file, bool resumes);

  [[nodiscard]] static std::string row(const Subject& subject, std::int64_t k, const Walked& walked);
  /// Throws UsageError where the file cannot be written any more.
  void append(const std::string& rows);

 private:
  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace attest
