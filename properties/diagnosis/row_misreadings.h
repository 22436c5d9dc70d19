// What a wrong kernel may have made of a row: hidden keys with a finite score, sums that are not rescaled where the
// maximum rises. As another problem of that one row, with values and additions to scores as real numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/problem/case.h"

namespace attest {

/// A reading of a row, as a problem of one query.
struct RowReading {
  std::string words;      ///< with a # for the size, where there is one
  std::int64_t size = 0;  ///< 0: none
  Case problem;
  bool tells_all_sizes = false;  ///< of several sizes that fit all are told, though they are not the same problem
  bool is_silent = false;        ///< its numbers are not finite: it says nothing of the row
};

/// A row of an attention case: of the batch entry, head and query.
struct ExaminedRow {
  std::int64_t batch = 0, head = 0, query = 0;
  bool is_wrong = false;  ///< an element of it lies beyond its bound
};

/// The same readings of every row; some are the row's own problem. Empty where a number of the row is not finite, or it
/// sees no key, which says nothing.
[[nodiscard]] std::vector<RowReading> readings_of_row(const Case& c, const ExaminedRow& row);

/// Rows of a wrong output to look at: some with an element beyond its bound, and some that are right.
[[nodiscard]] std::vector<ExaminedRow> rows_to_look_at(const Case& c, const Tensor& out, const Arithmetic& arithmetic);

/// The row's elements, as an output of its problem.
[[nodiscard]] Tensor row_of(const Tensor& out, const ExaminedRow& row);

}  // namespace attest
