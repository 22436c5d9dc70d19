// What is in no sequence (core/problem/sequences.h) of outputs and of gradients: what a kernel says of it, held against
// what it did, and what is left of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// The rows of a case that are padding, and what the manifest says of them.
class PaddingRows {
 public:
  PaddingRows(const Manifest& manifest, const Case& c);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Takes the elements out of `untouched`, ascending flat indices of those that a call left as they were, that may be
  /// so: of rows of `width` elements. `is_lse`: nobody says anything of that of a row which is none.
  void excuse(std::vector<std::int64_t>& untouched, std::int64_t width, bool is_lse) const;
  /// Why the call broke its word, where rows that it was to leave alone are not among the `untouched`, of which there
  /// are `most` at most; nothing: it did not, as far as can be told.
  [[nodiscard]] std::optional<std::string> trespass(const std::vector<std::int64_t>& untouched, std::size_t most,
                                                    std::int64_t width, const char* name) const;
  /// Sets what nobody is to look at to 0: the rows, but of an output that says that they are 0.
  void clear(Reply& reply) const;

 private:
  std::vector<std::int64_t> rows_;  ///< as the output has them, ascending
  Padding padding_;
  std::int64_t queries_;
};

/// The elements of a gradient that are in no sequence, ascending: rows of dq, dk and dv, and of dmask what no sequence
/// has both the row and the key of. A backward pass may leave them as they were, whatever its manifest says of the rows
/// of an output. None of a gradient that the problem has not.
[[nodiscard]] std::vector<std::int64_t> padding_of(const Problem& c, Gradient gradient);
/// Sets them to 0 in all gradients of the reply: nobody is to look at them.
void clear_padding(const Problem& c, Reply& reply);

}  // namespace attest
