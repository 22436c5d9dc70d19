#include "core/journal/batch_join.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "core/problem/case.h"

namespace attest {
namespace {

using Range = std::pair<std::int64_t, std::int64_t>;

[[noreturn]] void overlap(const Subject& subject, std::int64_t k) {
  throw UsageError(fmt::format("case {} of {} on {} {} is in two of the runs; merge the shards of one run, each once",
                               k, subject.property, subject.kernel, subject.dtype));
}

/// r where the range is that of batch r of so many shards: batch_start(r) to batch_start(r + 1), times their number.
std::optional<std::int64_t> batch_number(const Range& range, std::int64_t shards) {
  if (range.first % shards != 0 || range.second % shards != 0) return std::nullopt;
  constexpr std::int64_t medium_r = 64, large_r = 304;
  constexpr std::int64_t medium = batch_start(medium_r), large = batch_start(large_r);
  const std::int64_t first = range.first / shards, last = range.second / shards;
  const auto [r_before, start, size] = first >= large ? std::array{large_r, large, std::int64_t{4096}}
                                       : first >= medium
                                           ? std::array{medium_r, medium, std::int64_t{256}}
                                           : std::array{std::int64_t{0}, std::int64_t{0}, std::int64_t{64}};
  if (last - first != size || (first - start) % size != 0) return std::nullopt;
  return r_before + (first - start) / size;
}

/// Sorted, and neighbours joined.
std::vector<Range> join_neighbours(const Subject& subject, std::vector<Range> ranges) {
  std::ranges::sort(ranges);
  std::vector<Range> joined;
  for (const Range& range : ranges) {
    if (!joined.empty() && range.first < joined.back().second) overlap(subject, range.first);
    if (!joined.empty() && range.first == joined.back().second)
      joined.back().second = range.second;
    else
      joined.push_back(range);
  }
  return joined;
}

/// Two shards meet in a case exactly when their indices agree modulo the greatest common divisor of their counts.
bool can_meet(const Shard& a, const Shard& b) {
  const std::int64_t divisor = std::gcd(a.count, b.count);
  return a.index % divisor == b.index % divisor;
}

/// Throws where a range of the one shard meets one of the other; both are sorted.
template <class Ranges>
void refuse_overlaps(const Subject& subject, const Ranges& left, const Ranges& right) {
  auto a = left.begin();
  for (auto b = right.begin(); a != left.end() && b != right.end();) {
    if (a->range.second <= b->range.first)
      ++a;
    else if (b->range.second <= a->range.first)
      ++b;
    else
      overlap(subject, std::max(a->range.first, b->range.first));
  }
}

/// The range of the sorted ones that holds k.
template <class Ranges, class RangeOf>
auto holder(Ranges& ranges, std::int64_t k, RangeOf range_of) {
  const auto behind = std::ranges::upper_bound(ranges, k, {}, [&](const auto& one) { return range_of(one).first; });
  const bool there = behind != ranges.begin() && k < range_of(*std::prev(behind)).second;
  return there ? std::prev(behind) : ranges.end();
}

}  // namespace

void BatchJoin::Batches::insert(const Range& range) {
  if (const std::optional<std::int64_t> r = batch_number(range, shards))
    cut += boost::icl::right_open_interval<std::int64_t>(*r, *r + 1);
  else
    others.insert(range);
}

bool BatchJoin::Batches::contains(const Range& range) const {
  const std::optional<std::int64_t> r = batch_number(range, shards);
  return r ? boost::icl::contains(cut, *r) : others.contains(range);
}

std::vector<BatchJoin::Range> BatchJoin::Batches::ranges() const {
  std::vector<Range> ranges(others.begin(), others.end());
  for (const auto& numbers : cut)
    ranges.emplace_back(shards * batch_start(numbers.lower()), shards * batch_start(numbers.upper()));
  return ranges;
}

void BatchJoin::Batches::keep_common(const Batches& other) {
  cut &= other.cut;
  std::erase_if(others, [&](const Range& range) { return !other.others.contains(range); });
}

void BatchJoin::Batches::remove(const Batches& other) {
  cut -= other.cut;
  for (const Range& range : other.others) others.erase(range);
}

void BatchJoin::note(const BatchHead& head) {
  Subjects& of = subjects_.at(head.subject);
  // An empty range says that the subject was planned and not reached.
  if (head.first_k == head.last_k) return;
  const auto [part, added] = of.parts.try_emplace(head.shard);
  if (added) part->second.batches.shards = part->second.seen.shards = head.shard.count;
  part->second.batches.insert({head.first_k, head.last_k});
}

void BatchJoin::plan() {
  subjects_.for_each([](const Subject& subject, Subjects& of) { plan(subject, of); });
}

void BatchJoin::plan(const Subject& subject, Subjects& of) {
  std::map<std::int64_t, std::int64_t> present;
  for (const auto& [shard, part] : of.parts) ++present[shard.count];
  std::erase_if(present, [](const auto& count) { return count.first == 1 || count.first != count.second; });
  if (!present.empty()) of.parts[{0, 1}];
  Part* const whole = present.empty() ? nullptr : &of.parts[{0, 1}];
  // Batches that all shards of one count have.
  for (const auto& [count, ignored] : present) {
    Batches common = of.parts[{0, count}].batches;
    for (std::int64_t index = 1; index < count; ++index) common.keep_common(of.parts[{index, count}].batches);
    for (std::int64_t index = 0; index < count; ++index) of.parts[{index, count}].batches.remove(common);
    Moved& moved = of.moved[count];
    moved.left_out.shards = count;
    for (const Range& range : common.others) {
      if (whole->batches.contains(range)) moved.left_out.others.insert(range);
    }
    common.remove(moved.left_out);
    for (const Range& range : common.others) whole->batches.insert(range);
    for (const auto& numbers : common.cut)
      whole->from_shards.emplace_back(count * batch_start(numbers.lower()), count * batch_start(numbers.upper()));
    moved.moved = std::move(common);
  }
  for (auto& [shard, part] : of.parts) {
    std::vector<Range> ranges = part.batches.ranges();
    ranges.insert(ranges.end(), part.from_shards.begin(), part.from_shards.end());
    part.joined = join_neighbours(subject, std::move(ranges));
  }
  // Ranges that all shards of one count have: of parts that were joined before.
  std::set<Range> ranges_of_whole;
  if (whole != nullptr) ranges_of_whole.insert(whole->joined.begin(), whole->joined.end());
  for (const auto& [count, ignored] : present) {
    std::vector<Range> common = of.parts[{0, count}].joined;
    for (std::int64_t index = 1; index < count && !common.empty(); ++index) {
      const std::vector<Range>& others = of.parts[{index, count}].joined;
      std::erase_if(common, [&](const Range& range) { return !std::ranges::binary_search(others, range); });
    }
    Moved& moved = of.moved[count];
    for (const Range& range : common)
      (ranges_of_whole.insert(range).second ? moved.ranges_moved : moved.ranges_left_out).insert(range);
  }
  std::vector<std::pair<const Shard*, const Part*>> results;
  for (auto& [shard, part] : of.parts) {
    std::vector<Range> ranges = part.joined;
    if (&part == whole) ranges.assign(ranges_of_whole.begin(), ranges_of_whole.end());
    if (const auto moved = of.moved.find(shard.count); moved != of.moved.end()) {
      std::erase_if(ranges, [&](const Range& range) {
        return moved->second.ranges_moved.contains(range) || moved->second.ranges_left_out.contains(range);
      });
    }
    for (const Range& range : join_neighbours(subject, std::move(ranges))) part.result.push_back({range, std::nullopt});
    if (!part.result.empty()) results.emplace_back(&shard, &part);
  }
  for (auto a = results.begin(); a != results.end(); ++a) {
    for (auto b = std::next(a); b != results.end(); ++b) {
      if (can_meet(*a->first, *b->first)) refuse_overlaps(subject, a->second->result, b->second->result);
    }
  }
}

void BatchJoin::add(const BatchRecord& batch) {
  const auto changed = [] {
    throw UsageError("a journal was changed while it was read; merge it again when nothing writes it");
  };
  Subjects* const found = subjects_.find(batch.subject);
  if (found == nullptr) changed();
  if (batch.first_k == batch.last_k) return;
  Subjects& of = *found;
  const auto own = of.parts.find(batch.shard);
  if (own == of.parts.end()) changed();
  const Range range{batch.first_k, batch.last_k};
  // The same batch twice is what a killed and resumed run, or a run given twice, leaves: the first counts.
  if (own->second.seen.contains(range)) return;
  own->second.seen.insert(range);
  Part* part = &own->second;
  if (const auto moved = of.moved.find(batch.shard.count); moved != of.moved.end()) {
    const Moved& all = moved->second;
    if (all.left_out.contains(range)) return;
    bool to_whole = all.moved.contains(range);
    if (!to_whole) {
      const auto joined = holder(part->joined, batch.first_k, [](const Range& one) { return one; });
      if (joined == part->joined.end()) changed();
      if (all.ranges_left_out.contains(*joined)) return;
      to_whole = all.ranges_moved.contains(*joined);
    }
    if (to_whole) part = &of.parts.at({0, 1});
  }
  const auto result = holder(part->result, batch.first_k, [](const auto& one) { return one.range; });
  if (result == part->result.end() || result->range.second < batch.last_k) changed();
  if (result->tally)
    result->tally->merge(batch.tally);
  else
    result->tally = batch.tally;
}

std::vector<BatchRecord> BatchJoin::take() {
  std::vector<BatchRecord> batches;
  subjects_.for_each([&](const Subject& subject, Subjects& of) {
    if (of.parts.empty()) batches.push_back({.subject = subject, .first_k = 0, .last_k = 0, .shard = {}, .tally = {}});
    for (auto& [shard, part] : of.parts) {
      for (auto& [range, tally] : part.result)
        batches.push_back({subject, range.first, range.second, shard, std::move(tally).value_or(Tally())});
    }
  });
  subjects_ = {};
  return batches;
}

}  // namespace attest
