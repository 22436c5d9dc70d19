// Sequences of lengths of their own, padded or packed, in every planted kernel: each is a problem of its own.
#pragma once

#include <cstdint>
#include <functional>

#include "properties/faults/make.h"

namespace attest {

/// By how much a slip counts a sequence's rows or keys from elsewhere than its own first ones.
struct Miscount {
  std::int64_t slopes = 0;      ///< by so much slopes take rows to lie further behind their keys than they do
  std::int64_t chunk_rows = 0;  ///< by so much chunks take positions to be larger than they are
  std::int64_t chunk_keys = 0;  ///< and keys
};

/// Where a sequence lies in the tensors that it is cut out of.
struct SequencePlace {
  std::int64_t first_query = 0, first_key = 0;
  Miscount miscount = {};
};

[[nodiscard]] bool has_sequences(const attest_problem& p);

/// attend(problem, result, place) for each sequence, as the slip understands them: views of the tensors, of one
/// batch entry and without the variants that say where the sequence lies. Rows of no sequence become 0.
void for_each_sequence(const attest_problem& p, attest_result& result, Slip slip,
                       const std::function<void(const attest_problem&, attest_result&, const SequencePlace&)>& attend);

}  // namespace attest
