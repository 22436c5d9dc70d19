#include "reports/causes/find_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <set>
#include <tuple>

#include "properties/diagnosis/conditions.h"
#include "properties/diagnosis/misreadings.h"
#include "properties/diagnosis/right_nearby.h"
#include "properties/road/watched_kernel.h"
#include "reports/run/interrupt.h"

namespace attest {
namespace {

/// Cases of a kernel that are drawn again, at most; each of its subjects gets as many.
constexpr std::size_t most_observed = 8000;
/// Cases that are put to the kernel, saved ones and drawn ones.
constexpr std::size_t most_saved = 12, most_drawn = 6;

constexpr std::size_t most_asked_by_own_answers = 3;

/// A finding with its case.
struct Saved {
  const FindingRecord* finding;
  Case value;
};

/// A subject of a kernel with violated cases.
struct Failing {
  const Property* property;
  DType dtype;
  std::int64_t last_k = 0;  ///< behind the last case of its batches
  Tally tally;
};

/// Those of one kernel.
std::map<Subject, Failing> failing_of(const Journal& journal, const std::string& kernel) {
  std::map<Subject, Failing> all;
  for (const BatchRecord& batch : journal.batches) {
    if (batch.subject.kernel != kernel) continue;
    const auto property = std::ranges::find(catalogue(), std::string_view(batch.subject.property), &Property::name);
    const std::optional<DType> dtype = named<DType>(batch.subject.dtype);
    if (property == catalogue().end() || !dtype) continue;
    Failing& failing = all.try_emplace(batch.subject, Failing{*property, *dtype, 0, {}}).first->second;
    failing.last_k = std::max(failing.last_k, batch.last_k);
    failing.tally.merge(batch.tally);
  }
  std::erase_if(all, [](const auto& one) { return one.second.tally.violated == 0; });
  return all;
}

/// At most `most` of them, as evenly spread as they are.
std::vector<std::int64_t> spread(const std::vector<std::int64_t>& ks, std::size_t most) {
  if (ks.size() <= most) return ks;
  std::vector<std::int64_t> some;
  some.reserve(most);
  for (std::size_t i = 0; i < most; ++i) some.push_back(ks[i * ks.size() / most]);
  return some;
}

/// A case that was looked at: where it is from.
struct Origin {
  const Subject* subject;
  std::int64_t k;
};

/// Everything about one kernel.
class Causes {
 public:
  Causes(const Journal& journal, const RunFolder& folder, const HowDrawn* draw, Kernel& kernel)
      : folder_(folder), draw_(draw), kernel_(kernel, interrupt_requested), failing_(failing_of(journal, kernel.id())) {
    for (const FindingRecord& finding : journal.findings) {
      if (finding.subject.kernel != kernel.id() || finding.verdict.outcome != Outcome::violated) continue;
      findings_.push_back(&finding);
      if (!finding.repetition) found_at_[{finding.subject, finding.k}] = &finding;
    }
  }

  std::vector<Cause> find() {
    if (failing_.empty()) return {};
    std::vector<Condition> conditions;
    if (draw_ != nullptr) {
      // Laws arrange the case before they put it to the kernel; whoever holds the output against the exact answer puts
      // it as it is.
      observe(/*laws=*/false);
      conditions = conditions_of(observed_);
      if (conditions.empty() || conditions[0].words.empty()) {
        observe(/*laws=*/true);
        conditions = conditions_of(observed_);
      }
    }
    if (conditions.empty()) conditions.emplace_back();
    place(conditions);
    std::vector<Cause> causes;
    causes.reserve(conditions.size());
    for (std::size_t i = 0; i < conditions.size(); ++i) causes.push_back(cause_of(conditions[i], i));
    // What no case of was looked at, or saved, stands for nothing.
    std::erase_if(causes, [](const Cause& cause) { return cause.example.property.empty(); });
    return causes;
  }

 private:
  Case drawn(const Subject& subject, std::int64_t k) {
    const Failing& failing = failing_.at(subject);
    return draw_->road.project(draw_->road.generate(*failing.property, failing.dtype, draw_->seed, k),
                               kernel_.manifest());
  }

  void observe(bool laws) {
    const auto concerns = [&](const Failing& one) {
      const std::string_view name = one.property->name;
      return laws || is_oracle(name) || name.ends_with(".any-length");
    };
    const auto subjects = std::ranges::count_if(failing_, [&](const auto& one) { return concerns(one.second); });
    if (subjects == 0) return;
    observed_.clear();
    origins_.clear();
    const std::size_t each = std::max<std::size_t>(most_observed / static_cast<std::size_t>(subjects), 64);
    for (const auto& [subject, failing] : failing_) {
      const std::vector<std::int64_t>& violated = failing.tally.violated_k;
      if (violated.empty() || !concerns(failing)) continue;
      // Behind the last that is known others may be violated, too.
      const bool all_known = std::ssize(violated) == failing.tally.violated;
      const std::int64_t behind = all_known ? failing.last_k : violated.back() + 1;
      std::vector<std::int64_t> others;
      for (std::int64_t k = 0; k < std::min<std::int64_t>(behind, 100000); ++k)
        if (draw_->shard.takes(k) && !std::ranges::binary_search(violated, k)) others.push_back(k);
      // Of a kernel that was given up as it answered nothing, the rest was not judged.
      if (all_known && failing.tally.judged() == failing.tally.violated) others.clear();
      std::vector<std::int64_t> seen = spread(violated, each / 2);
      // Those that were saved above all: it is known what is left of them where they are smaller.
      for (const std::int64_t k : violated)
        if (found_at_.contains({subject, k}) && !std::ranges::binary_search(seen, k))
          seen.insert(std::ranges::lower_bound(seen, k), k);
      for (const std::int64_t k : seen) observe(subject, k, /*violated=*/true);
      for (const std::int64_t k : spread(others, std::max(each, 2 * seen.size()) - seen.size()))
        observe(subject, k, /*violated=*/false);
    }
    leave_out_empty_ones();
  }
  /// Of an empty problem nearly everything holds: where nothing else was found in one, the condition is not to say that
  /// there are queries and keys.
  void leave_out_empty_ones() {
    const auto is_empty = [](const Observed& one) {
      return one.traits.extents.queries == 0 || one.traits.extents.keys == 0;
    };
    if (std::ranges::any_of(observed_, [&](const Observed& one) { return one.violated && is_empty(one); })) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < observed_.size(); ++i) {
      if (is_empty(observed_[i])) continue;
      if (kept != i) observed_[kept] = std::move(observed_[i]), origins_[kept] = origins_[i];
      ++kept;
    }
    observed_.resize(kept);
    origins_.resize(kept);
  }
  void observe(const Subject& subject, std::int64_t k, bool violated) {
    if (interrupt_requested()) throw Abandoned();
    try {
      observed_.push_back({traits_of(drawn(subject, k)), violated, violated ? smaller(subject, k) : std::nullopt});
      origins_.push_back({&subject, k});
    } catch (const std::bad_alloc&) {
      return;  // it may have been skipped for that
    }
  }

  std::optional<Traits> smaller(const Subject& subject, std::int64_t k) const {
    const auto found = found_at_.find({subject, k});
    if (found == found_at_.end() || !folder_.files().holds(found->second->case_file)) return std::nullopt;
    return traits_of(case_of(*found->second));
  }
  [[nodiscard]] Case case_of(const FindingRecord& finding) const {
    return decode_case(folder_.files().read(finding.case_file), (folder_.path() / finding.case_file).native());
  }

  /// Which condition a violated case belongs to; what was not looked at belongs to the first.
  void place(const std::vector<Condition>& conditions) {
    for (std::size_t i = 0; i < conditions.size(); ++i) {
      for (const std::size_t at : conditions[i].of) {
        if (!observed_[at].violated) continue;
        placed_[{*origins_[at].subject, origins_[at].k}] = i;
      }
    }
  }
  [[nodiscard]] std::size_t place_of(const Subject& subject, std::int64_t k) const {
    const auto found = placed_.find({subject, k});
    return found == placed_.end() ? 0 : found->second;
  }

  Cause cause_of(const Condition& condition, std::size_t number) {
    Cause cause{.kernel = kernel_.id(),
                .dtypes = {},
                .properties = {},
                .misreadings = {},
                .right = {},
                .condition = condition.words,
                .by_own_answers = false,
                .cases = condition.cases,
                .violated = condition.violated,
                .others = condition.others,
                .others_violated = condition.others_violated,
                .example = {}};
    name_subjects(cause, number);
    std::vector<Saved> saved;
    for (const FindingRecord* finding : findings_) {
      if (place_of(finding->subject, finding->k) != number || !folder_.files().holds(finding->case_file)) continue;
      saved.push_back({finding, case_of(*finding)});
    }
    const auto order = [](const Saved& one) {
      const FindingRecord& f = *one.finding;
      const bool exact = is_against_exact(f) && !f.subject.property.starts_with("softmax.");
      std::int64_t elements = 0;
      for (const Tensor& tensor : one.value.tensors) elements += tensor.elements();
      return std::tuple(f.repetition.has_value(), !exact, elements, !is_oracle(f.subject.property), f.subject, f.k);
    };
    std::ranges::sort(saved, {}, order);
    if (!saved.empty()) {
      const FindingRecord& example = *saved[0].finding;
      cause.example = example.subject, cause.example_k = example.k;
      if (!example.repetition) cause.right = right_nearby(kernel_, saved[0].value);
    }
    cause.by_own_answers = wrong_by_own_answers(saved);
    std::vector<Case> asked;
    for (const Saved& one : saved) {
      const Violation violation = one.finding->verdict.violation;
      const bool numbers =
          violation == Violation::bound || violation == Violation::not_finite || violation == Violation::lse;
      if (numbers && !one.finding->repetition && one.value.operation == Operation::attention &&
          asked.size() < most_saved)
        asked.push_back(one.value);
    }
    if (asked.empty()) return cause;
    add_drawn(asked, number);
    cause.misreadings = misreadings_of(kernel_, asked);
    return cause;
  }
  /// The row that judges gradients by the kernel's own answers is of other draws than those that are wrong, and may
  /// have held on them.
  bool wrong_by_own_answers(const std::vector<Saved>& saved) {
    const auto given = std::ranges::find(catalogue(), std::string_view("backward.given"), &Property::name);
    std::size_t asked = 0;
    for (const Saved& one : saved) {
      if (!one.finding->subject.property.starts_with("backward.oracle-") || one.finding->repetition) continue;
      if (asked++ == most_asked_by_own_answers) break;
      if (check_case(**given, kernel_, one.value).outcome == Outcome::violated) return true;
    }
    return false;
  }
  /// Cases as they were drawn, which have more in them than shrunk ones: of each property one before any has a second.
  void add_drawn(std::vector<Case>& asked, std::size_t number) {
    using Drawn = std::pair<const Subject*, std::int64_t>;
    std::map<std::string, std::size_t> of_property;
    std::map<std::size_t, std::vector<Drawn>> rounds;
    for (const auto& [at, place] : placed_) {
      const auto& [subject, k] = at;
      if (place == number && failing_.at(subject).property->operation == Operation::attention)
        rounds[of_property[subject.property]++].emplace_back(&subject, k);
    }
    std::size_t drawn_ones = 0;
    for (const auto& [round, all] : rounds) {
      for (const auto& [subject, k] : all) {
        if (drawn_ones == most_drawn) return;
        try {
          asked.push_back(drawn(*subject, k));
        } catch (const std::bad_alloc&) {
          continue;
        }
        ++drawn_ones;
      }
    }
  }
  void name_subjects(Cause& cause, std::size_t number) const {
    std::map<std::string, std::int64_t> properties;
    std::set<DType> dtypes;
    const auto add = [&](const Subject& subject, std::int64_t cases) {
      properties[subject.property] += cases;
      dtypes.insert(failing_.at(subject).dtype);
    };
    for (const auto& [at, place] : placed_)
      if (place == number) add(at.first, 1);
    for (const FindingRecord* finding : findings_)
      if (place_of(finding->subject, finding->k) == number && failing_.contains(finding->subject))
        add(finding->subject, 0);
    std::vector<std::pair<std::int64_t, std::string>> order;
    order.reserve(properties.size());
    for (const auto& [name, cases] : properties) order.emplace_back(-cases, name);
    std::ranges::sort(order);
    for (const auto& [cases, name] : order) cause.properties.push_back(name);
    for (const DType dtype : dtypes) cause.dtypes.emplace_back(name_of(dtype));
  }

  const RunFolder& folder_;
  const HowDrawn* draw_;
  WatchedKernel kernel_;
  std::map<Subject, Failing> failing_;
  std::vector<const FindingRecord*> findings_;
  std::map<std::pair<Subject, std::int64_t>, const FindingRecord*> found_at_;  ///< of findings_
  std::vector<Observed> observed_;
  std::vector<Origin> origins_;  ///< of observed_
  std::map<std::pair<Subject, std::int64_t>, std::size_t> placed_;
};

}  // namespace

std::vector<Cause> causes_of(const Journal& journal, const RunFolder& folder,
                             std::span<const std::unique_ptr<Kernel>> kernels, const HowDrawn* draw) {
  std::vector<Cause> all;
  for (const std::unique_ptr<Kernel>& kernel : kernels) {
    std::vector<Cause> causes = Causes(journal, folder, draw, *kernel).find();
    std::ranges::move(causes, std::back_inserter(all));
  }
  return all;
}

}  // namespace attest
