// Keys and values of a call that lie in a cache, one after another, as Attest's own kernels read them: not with what
// laid them out (core/problem/kv_cache.h), which they are held against.
#pragma once

#include <attest/kernel.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "core/value/tensor.h"

namespace attest {

/// How a kernel goes about it, where that is not as it should be.
struct CacheHabits {
  /// The page of k, or of v, in which an entry's column lies, in the place of what its table says.
  std::function<std::int64_t(std::int64_t entry, std::int64_t column, bool values)> page_of;
  /// The key of its entry as which a new one is written, in the place of the next ones; none below 0.
  std::function<std::int64_t(std::int64_t entry, std::int64_t token, bool values)> written_as;
};

class GatheredKeys {
 public:
  explicit GatheredKeys(const attest_problem& p, const CacheHabits& habits = {}) : problem(p), habits_(habits) {
    constexpr auto cached = static_cast<std::uint32_t>(ATTEST_PAGED | ATTEST_CACHE_INDEX | ATTEST_APPEND);
    if ((p.variants & cached) == 0) return;
    problem.variants &= ~cached;
    if ((p.variants & ATTEST_APPEND) != 0) append(p);
    const bool paged = (p.variants & ATTEST_PAGED) != 0;
    for (const bool values : {false, true}) {
      const attest_tensor& from = values ? p.v : p.k;
      attest_tensor& to = values ? problem.v : problem.k;
      std::vector<std::byte>& memory = values ? v_ : k_;
      const std::int64_t keys = paged ? p.page_table.shape[1] * from.shape[2] : from.shape[2];
      to = row_major(from, p.q.shape[0], keys, memory);
      for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
        if (!paged) {
          copy_rows(from, row_of(p, b), 0, keys, to, b, 0);
          continue;
        }
        const std::int64_t page = from.shape[2],
                           length = problem.kv_lengths.data != nullptr ? number(problem.kv_lengths, b, 0) : keys;
        for (std::int64_t column = 0; column * page < length; ++column)
          copy_rows(from, page_of(p, b, column, values), 0, page, to, b, column * page);
      }
    }
  }
  GatheredKeys(const GatheredKeys&) = delete;
  GatheredKeys& operator=(const GatheredKeys&) = delete;

  [[nodiscard]] static std::int64_t page_in_table(const attest_problem& p, std::int64_t entry, std::int64_t column,
                                                  bool values) {
    return number(values && p.page_table_v.data != nullptr ? p.page_table_v : p.page_table, entry, column);
  }

  attest_problem problem;  ///< without the variants of a cache, new keys counted; what no length needs is 0

 private:
  [[nodiscard]] std::int64_t page_of(const attest_problem& p, std::int64_t entry, std::int64_t column,
                                     bool values) const {
    return habits_.page_of ? habits_.page_of(entry, column, values) : page_in_table(p, entry, column, values);
  }
  [[nodiscard]] static std::int64_t row_of(const attest_problem& p, std::int64_t entry) {
    return (p.variants & ATTEST_CACHE_INDEX) != 0 ? number(p.cache_index, entry, 0) : entry;
  }
  /// Writes the new keys into the cache, and counts them.
  void append(const attest_problem& p) {
    const std::int64_t batch = p.q.shape[0], tokens = p.k_new.shape[2];
    for (const bool values : {false, true}) {
      const attest_tensor &from = values ? p.v_new : p.k_new, &to = values ? p.v : p.k;
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t t = 0; t < tokens; ++t) {
          const std::int64_t next = number(p.kv_lengths, b, 0) + t,
                             key = habits_.written_as ? habits_.written_as(b, t, values) : next;
          if (key < 0) continue;
          if ((p.variants & ATTEST_PAGED) != 0)
            copy_rows(from, b, t, 1, to, page_of(p, b, key / to.shape[2], values), key % to.shape[2]);
          else
            copy_rows(from, b, t, 1, to, row_of(p, b), key);
        }
    }
    lengths_.resize(static_cast<std::size_t>(batch) + 1);
    for (std::int64_t b = 0; b < batch; ++b)
      lengths_[static_cast<std::size_t>(b)] = static_cast<std::int32_t>(number(p.kv_lengths, b, 0) + tokens);
    problem.kv_lengths.data = lengths_.data();
    problem.kv_lengths.stride[0] = 1;
  }
  [[nodiscard]] static std::int64_t number(const attest_tensor& t, std::int64_t i, std::int64_t j) {
    return std::int64_t{static_cast<const std::int32_t*>(t.data)[offset_in(t, i, j)]};
  }
  /// [batch, heads of `like`, keys, its width] over `memory`.
  static attest_tensor row_major(const attest_tensor& like, std::int64_t batch, std::int64_t keys,
                                 std::vector<std::byte>& memory) {
    attest_tensor t = like;
    t.shape[0] = batch, t.shape[2] = keys;
    t.stride[3] = 1, t.stride[2] = t.shape[3], t.stride[1] = keys * t.stride[2], t.stride[0] = t.shape[1] * t.stride[1];
    memory.resize(static_cast<std::size_t>(batch * t.stride[0]) * size_of(static_cast<DType>(t.dtype)) + 1);
    t.data = memory.data();
    return t;
  }
  static void copy_rows(const attest_tensor& from, std::int64_t entry, std::int64_t from_row, std::int64_t rows,
                        const attest_tensor& to, std::int64_t b, std::int64_t first) {
    const std::size_t size = size_of(static_cast<DType>(from.dtype));
    for (std::int64_t h = 0; h < from.shape[1]; ++h)
      for (std::int64_t j = 0; j < rows; ++j)
        for (std::int64_t c = 0; c < from.shape[3]; ++c)
          std::memcpy(
              static_cast<std::byte*>(to.data) + static_cast<std::size_t>(offset_in(to, b, h, first + j, c)) * size,
              static_cast<const std::byte*>(from.data) +
                  static_cast<std::size_t>(offset_in(from, entry, h, from_row + j, c)) * size,
              size);
  }

  CacheHabits habits_;
  std::vector<std::byte> k_, v_;
  std::vector<std::int32_t> lengths_;
};

}  // namespace attest
