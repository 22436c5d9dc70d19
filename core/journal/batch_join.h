// Batches of one run joined into as few ranges as they make.
#pragma once

#include <boost/icl/interval_set.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/journal/reader.h"
#include "core/journal/subject_map.h"

namespace attest {

/// Which batches end up in one range follows from all their ranges and shards, so the batches are seen twice: their
/// heads first, then they themselves, and a tally is added to its range as it comes. Memory is that of the result, and
/// of a set of ranges: batches that batch_start cuts make one entry as long as none is missing between them, others
/// make one each.
class BatchJoin {
 public:
  /// First round: every batch.
  void note(const BatchHead& head);
  /// Between the rounds. Shards that complete each other are joined batch by batch, neighbours are joined, and so are
  /// then the shards' joined ranges. Throws UsageError where two ranges overlap.
  void plan();
  /// Second round, in the order of the first. A batch that came before is not counted again. Throws UsageError for one
  /// that was not noted.
  void add(const BatchRecord& batch);
  /// By subject, shard and range; a subject without a case has one empty range.
  [[nodiscard]] std::vector<BatchRecord> take();

 private:
  using Range = std::pair<std::int64_t, std::int64_t>;
  using Numbers = boost::icl::interval_set<std::int64_t, std::less, boost::icl::right_open_interval<std::int64_t>>;

  /// Ranges of batches: by number where they are cut as batch_start says, the others as they are.
  struct Batches {
    std::int64_t shards = 1;
    Numbers cut;
    std::set<Range> others;

    void insert(const Range& range);
    [[nodiscard]] bool contains(const Range& range) const;
    [[nodiscard]] std::vector<Range> ranges() const;
    void keep_common(const Batches& other);  ///< of as many shards
    void remove(const Batches& other);       ///< of as many shards
  };

  /// What all shards of one count have: it is moved to the run without shards, or, where that has it already, left out.
  struct Moved {
    Batches moved, left_out;
    std::set<Range> ranges_moved, ranges_left_out;
  };

  struct Result {
    Range range;
    std::optional<Tally> tally;  ///< nothing before the first batch
  };

  struct Part {
    Batches batches, seen;
    std::vector<Range> from_shards;  ///< of the run without shards: what was moved to it by number
    std::vector<Range> joined;       ///< before the shards' joined ranges are joined
    std::vector<Result> result;
  };

  struct Subjects {
    std::map<Shard, Part> parts;
    std::map<std::int64_t, Moved> moved;  ///< by the count of shards
  };

  static void plan(const Subject& subject, Subjects& of);

  SubjectMap<Subjects> subjects_;
};

}  // namespace attest
