#include "properties/diagnosis/variants/cache_misreadings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "properties/arrangement/arrange.h"

namespace attest {
namespace {

/// As memory would be read by other tables, or lengths.
class MisreadMemory {
 public:
  explicit MisreadMemory(const Case& c) : laid_out_(laid_out_in_cache(c)) {}

  void add(std::string words, const std::function<void(Case& laid_out)>& change) {
    Case other = laid_out_;
    change(other);
    if (other == laid_out_) return;
    found_.push_back({std::move(words), outside_of_caches(read_from_cache(std::move(other)))});
  }
  /// What a table or an index names, within what there is.
  void add_names(std::string words, Slot slot, const std::function<double(std::int64_t at, double old)>& name) {
    if (!laid_out_[slot].present()) return;
    const auto last = static_cast<double>(laid_out_.k().shape()[0] - 1);
    add(std::move(words), [&](Case& other) {
      other[slot] =
          mapped(other[slot], [&](std::int64_t at, double old) { return std::clamp(name(at, old), 0.0, last); });
    });
  }
  [[nodiscard]] const Case& laid_out() const { return laid_out_; }
  [[nodiscard]] std::vector<MisreadSequences> take() { return std::move(found_); }

 private:
  Case laid_out_;
  std::vector<MisreadSequences> found_;
};

void misread_pages(MisreadMemory& memory) {
  const Tensor& table = memory.laid_out()[Slot::page_table];
  const std::int64_t columns = table.shape()[1], page = memory.laid_out().k().shape()[2];
  memory.add_names("pages lay in the pool in their order", Slot::page_table,
                   [](std::int64_t at, double) { return static_cast<double>(at); });
  memory.add_names("every sequence had the pages of the first", Slot::page_table,
                   [&](std::int64_t at, double) { return table[at % columns]; });
  memory.add_names("a table named the page behind each of its pages", Slot::page_table,
                   [](std::int64_t, double old) { return old + 1; });
  memory.add_names("a table named the page before each of its pages", Slot::page_table,
                   [](std::int64_t, double old) { return old - 1; });
  memory.add_names("the numbers of pages had 16 bits", Slot::page_table,
                   [](std::int64_t, double old) { return std::fmod(old, 65536); });
  memory.add("values had the table of keys", [](Case& other) { other[Slot::page_table_v] = Tensor(); });
  using Length = std::function<std::int64_t(std::int64_t b, std::int64_t length)>;
  const auto lengths = [&](const char* words, const Length& length) {
    memory.add(words, [&](Case& other) {
      other[Slot::kv_lengths] = mapped(other[Slot::kv_lengths], [&](std::int64_t b, double old) {
        const double pad = other[Slot::left_pad].present() ? other[Slot::left_pad][b] : 0;
        return std::max(static_cast<double>(length(b, static_cast<std::int64_t>(old))), pad);
      });
    });
  };
  // A table's entries that nobody is to read may be no pages.
  const auto has_page = [&](std::int64_t b, std::int64_t column) {
    const auto pages = static_cast<double>(memory.laid_out().k().shape()[0]);
    return column < columns && std::ranges::all_of(
                                   std::array{Slot::page_table, Slot::page_table_v},
                                   [&](Slot slot) {
                                     const Tensor& one = memory.laid_out()[slot];
                                     return !one.present() ||
                                            (one[b * columns + column] >= 0 && one[b * columns + column] < pages);
                                   });
  };
  lengths("the slot behind a sequence's last key were a key of it",
          [&](std::int64_t, std::int64_t length) { return length % page == 0 ? length : length + 1; });
  lengths("the slot behind a sequence's last key were a key of it, on the next page as well",
          [&](std::int64_t b, std::int64_t length) { return has_page(b, length / page) ? length + 1 : length; });
  lengths("the last page of a sequence were read as a whole",
          [&](std::int64_t, std::int64_t length) { return (length + page - 1) / page * page; });
  lengths("a page that is not full were not there",
          [&](std::int64_t, std::int64_t length) { return length > page ? length / page * page : length; });
}

/// As if new keys had not come, or not to where they belong.
std::vector<MisreadSequences> misread_append(const Case& c) {
  const auto shorter = [&](std::int64_t keys) {
    Case other = outside_of_caches(c);
    other[Slot::kv_lengths] =
        mapped(c[Slot::kv_lengths], [&](std::int64_t, double length) { return length - static_cast<double>(keys); });
    return other;
  };
  Case stale = laid_out_in_cache(c);
  stale[Slot::kv_lengths] = c[Slot::kv_lengths];
  stale[Slot::k_new] = stale[Slot::v_new] = Tensor();
  std::vector<MisreadSequences> found;
  found.push_back({"the keys that the call appends were not there", shorter(c.append)});
  if (c.append > 1) found.push_back({"the last of the keys that the call appends were not there", shorter(1)});
  found.push_back({"what was in their slots before were the keys that the call appends",
                   outside_of_caches(read_from_cache(std::move(stale)))});
  return found;
}

}  // namespace

std::vector<MisreadSequences> misread_cache(const Case& c) {
  if (c.operation != Operation::attention || !is_in_cache(c)) return {};
  Case all_there = c;
  drop_variant(all_there, append_variant.name);
  std::vector<MisreadSequences> found;
  if (c.append > 0) found = misread_append(c);
  if (!is_in_cache(all_there)) return found;
  MisreadMemory memory(all_there);
  if (c[Slot::page_table].present()) misread_pages(memory);
  memory.add_names("rows of the cache were those of the batch", Slot::cache_index,
                   [](std::int64_t at, double) { return static_cast<double>(at); });
  std::ranges::move(memory.take(), std::back_inserter(found));
  return found;
}

}  // namespace attest
