#include "reports/conclusion/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/conclusion/noise.h"
#include "reports/results/summary_words.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// Of campaigns, growth of the worst known utilisation by less than this factor is no change.
constexpr double champion_growth = 1.25;
/// Where another arithmetic is declared, growth of the largest error with so many keys by less than this factor.
constexpr double octave_growth = 2;

std::string share_of(std::int64_t part, std::int64_t whole) {
  return fmt::format("{} of {}", part, whole);
}

/// The upper edge of a bin of Tally::histogram, in figures.
std::string edge_text(int bin) {
  return short_number(std::exp2((bin - 55) / 4.0));
}

std::int64_t above(const SubjectFigures& figures, int bin) {
  std::int64_t cases = 0;
  for (std::size_t i = static_cast<std::size_t>(bin) + 1; i < figures.histogram.size(); ++i)
    cases += figures.histogram[i];
  return cases;
}

/// Compares the kernels of two runs one by one.
class Comparing {
 public:
  Comparing(const Figures& before, const Figures& now) : before_(before), now_(now) {
    for (const SubjectFigures& one : now.subjects)
      now_subjects_[{one.subject.kernel, one.subject.dtype}][one.subject.property] = &one;
  }

  Comparison run() {
    result_.bred = now_.bred;
    std::set<const KernelFigures*> met;
    for (const KernelFigures& kernel : before_.kernels) {
      kernel_ = &kernel;
      if (const KernelFigures* same = find(kernel)) {
        met.insert(same);
        compare_kernel(*same);
      } else {
        add(Direction::worse, "coverage", "", "is not part of this run any more");
      }
    }
    for (const KernelFigures& kernel : now_.kernels) {
      kernel_ = &kernel;
      if (!met.contains(&kernel)) add(Direction::neither, "coverage", "", "is not part of the baseline");
    }
    const auto order = [](const Difference& one) {
      return std::tie(one.direction, one.kernel, one.dtype, one.property, one.what, one.words);
    };
    std::ranges::sort(result_.differences, {}, order);
    return std::move(result_);
  }

 private:
  void add(Direction direction, std::string_view what, std::string_view property, std::string words) {
    result_.differences.push_back(
        {direction, std::string(what), kernel_->name, kernel_->dtype, std::string(property), std::move(words)});
  }

  /// The kernel of now that is that kernel of before; null where there is none.
  [[nodiscard]] const KernelFigures* find(const KernelFigures& kernel) const {
    const KernelFigures* named = nullptr;
    std::int64_t names = 0;
    for (const KernelFigures& other : now_.kernels) {
      if (other.dtype != kernel.dtype) continue;
      if (other.id == kernel.id) return &other;
      if (other.name == kernel.name) named = &other, ++names;
    }
    for (const KernelFigures& other : before_.kernels) {
      // Two of that name before: no telling which of them it is.
      if (&other != &kernel && other.dtype == kernel.dtype && other.name == kernel.name) return nullptr;
    }
    return names == 1 ? named : nullptr;
  }

  void compare_kernel(const KernelFigures& now) {
    const KernelFigures& before = *kernel_;
    same_arithmetic_ = before.arithmetic == now.arithmetic;
    if (!same_arithmetic_) {
      add(Direction::neither, "arithmetic", "",
          "declares another arithmetic: its bound is another one, and errors are held against each other instead of "
          "utilisations");
    }
    for (const std::string& claim : before.claims) {
      if (std::ranges::find(now.claims, claim) == now.claims.end())
        add(Direction::worse, "claims", "", fmt::format("does not claim to be {} any more", in_quotes(claim)));
    }
    if (!now_.bred) {
      compare_drawn(before, now);
      compare_shapes(before, now);
    }
    const auto& subjects = now_subjects_[{now.id, now.dtype}];
    fewer_ = 0;
    Reach reach_before, reach_now;
    for (const SubjectFigures& one : before_.subjects) {
      if (one.subject.kernel != before.id || one.subject.dtype != before.dtype) continue;
      const auto other = subjects.find(one.subject.property);
      if (other == subjects.end()) {
        add(Direction::worse, "coverage", one.subject.property, "is not checked any more");
        continue;
      }
      ++result_.subjects;
      compare_subject(one, *other->second);
      // One of the two may be a run of before reaches were kept.
      if (!one.reach || !other->second->reach) continue;
      reach_before.merge(*one.reach);
      reach_now.merge(*other->second->reach);
    }
    if (!now_.bred) compare_reach(reach_before, reach_now);
    if (fewer_ > 0) {
      add(Direction::worse, "coverage", "",
          fmt::format("{} properties had fewer cases than in the baseline, as {}; run as many or more, or make the "
                      "baseline anew with fewer",
                      fewer_, example_));
    }
  }

  /// Cases of a kind of which the baseline had so many let some be expected.
  static constexpr std::int64_t enough = 20;

  /// Classes of shapes that are gone, a line for each facet.
  void compare_shapes(const KernelFigures& before, const KernelFigures& now) {
    if (now.shapes.empty()) return;  // not recorded
    for (std::size_t i = 0; i < shape_facet_count; ++i) {
      const auto facet = static_cast<ShapeFacet>(i);
      std::set<std::string> gone;
      for (const auto& [index, count] : before.shapes.facets.at(i)) {
        const auto still = now.shapes.facets.at(i).find(index);
        const bool judged = still != now.shapes.facets.at(i).end() && still->second.judged > 0;
        if (count.judged >= enough && !judged)
          gone.insert(fmt::format("{} ({})", class_words(facet, index), count.judged));
      }
      if (gone.empty()) continue;
      add(Direction::worse, "coverage", "",
          fmt::format("no case of these shapes is judged any more, by {}, of as many in the baseline: {}",
                      name_of(facet), some_of(gone)));
    }
  }

  void compare_drawn(const KernelFigures& before, const KernelFigures& now) {
    for (const auto& [kind, cases] : before.drawn) {
      if (cases < enough || now.drawn.contains(kind)) continue;
      add(Direction::worse, "coverage", "",
          fmt::format("no judged case has {} any more; {} of the baseline had", in_quotes(kind), cases));
    }
  }

  /// The cases of one seed are the same ones, however many follow them; of another seed the longest are others by
  /// chance.
  void compare_reach(const Reach& before, const Reach& now) {
    const bool same_cases = now_.seed == before_.seed && fewer_ == 0;
    const bool smaller = std::ranges::any_of(reach_members, [&](const auto& member) {
      const std::int64_t then = before.*member.second, largest = now.*member.second;
      return same_cases ? largest < then : 2 * largest < then;
    });
    if (!smaller) return;
    add(same_cases ? Direction::worse : Direction::neither, "coverage", "",
        fmt::format("was judged against the exact answer up to {} only; in the baseline up to {}", reach_text(now),
                    reach_text(before)));
  }

  void compare_subject(const SubjectFigures& before, const SubjectFigures& now) {
    const std::string& property = before.subject.property;
    if (const int far = distance_from_held(now.verdict) - distance_from_held(before.verdict); far != 0) {
      add(far > 0 ? Direction::worse : Direction::better, "verdict", property,
          fmt::format("was {} and is {}", name_of(before.verdict), name_of(now.verdict)));
    }
    if (now_.bred) {
      compare_champions(before, now);
      return;
    }
    compare_coverage(before, now);
    // Where something is violated now, that says it all.
    const bool newly_violated = now.verdict == Outcome::violated && before.verdict != Outcome::violated;
    if (before.judged == 0 || now.judged == 0 || newly_violated) return;
    if (same_arithmetic_) {
      compare_utilisations(before, now);
    } else {
      compare_errors(before, now);
    }
  }

  void compare_coverage(const SubjectFigures& before, const SubjectFigures& now) {
    if (now.cases < before.cases) {
      if (fewer_++ == 0)
        example_ = fmt::format("{}: {} instead of {}", before.subject.property, now.cases, before.cases);
      return;
    }
    if (before.judged == 0) return;
    // The share of cases judged is a sample in both runs; with the same seed the cases are the same ones.
    const double rate = static_cast<double>(before.judged) / static_cast<double>(before.cases);
    const double cases = static_cast<double>(now.cases), earlier = static_cast<double>(before.cases);
    // One more of each: that all were judged before does not say that all ever are.
    const double likely = (static_cast<double>(before.judged) + 1) / (earlier + 2);
    const double deviation = std::sqrt(likely * (1 - likely) * cases * (1 + cases / earlier));
    const bool same_cases = now_.seed == before_.seed && now.cases == before.cases;
    const double slack = same_cases ? 0.01 * rate * cases : 6 * deviation + 1;
    if (static_cast<double>(now.judged) >= rate * cases - slack) return;
    add(Direction::worse, "coverage", before.subject.property,
        fmt::format("{} cases were judged, in the baseline {}", share_of(now.judged, now.cases),
                    share_of(before.judged, before.cases)));
  }

  void compare_utilisations(const SubjectFigures& before, const SubjectFigures& now) {
    const std::string& property = before.subject.property;
    if (const int bin = grown_beyond(before, now); bin >= 0) {
      add(Direction::worse, "errors", property,
          fmt::format("errors grew by more than 19 %: {} judged cases lie above {} of the bound, 19 % more than the {} "
                      "above which {} did in the baseline",
                      share_of(above(now, bin), now.judged), edge_text(bin), edge_text(bin - 1),
                      share_of(above(before, bin - 1), before.judged)));
    } else if (const int shrunk = grown_beyond(now, before); shrunk >= 0) {
      add(Direction::better, "errors", property,
          fmt::format("errors shrank by more than 19 %: {} judged cases lie above {} of the bound; in the baseline {} "
                      "above {}, which is 19 % more",
                      share_of(above(now, shrunk - 1), now.judged), edge_text(shrunk - 1),
                      share_of(above(before, shrunk), before.judged), edge_text(shrunk)));
    }
    const double expected = worst_expected(before, now.judged);
    if (now.worst_utilisation > expected) {
      add(Direction::worse, "worst", property,
          fmt::format("worst utilisation {}, in the baseline {}; more than {} is beyond its noise",
                      short_number(now.worst_utilisation), short_number(before.worst_utilisation),
                      short_number(expected)));
    } else if (now.worst_utilisation > 2 * before.worst_utilisation && now.worst_utilisation > 0.01) {
      add(Direction::neither, "worst", property,
          fmt::format("worst utilisation {}, in the baseline {}; its few large errors leave room for that",
                      short_number(now.worst_utilisation), short_number(before.worst_utilisation)));
    }
  }

  void compare_errors(const SubjectFigures& before, const SubjectFigures& now) {
    for (const auto& [exponent, scaled] : before.octaves) {
      const auto other = now.octaves.find(exponent);
      if (other == now.octaves.end()) continue;
      const double then = size_of_code(scaled.error), error = size_of_code(other->second.error);
      // Half a unit is what rounding the output alone may take.
      if (error <= octave_growth * std::max(then, 0.5)) continue;
      add(Direction::worse, "errors", before.subject.property,
          fmt::format("with {} to {} keys errors reach {} u sum |weight v|, in the baseline {}",
                      std::int64_t{1} << exponent, (std::int64_t{2} << exponent) - 1, short_number(error),
                      short_number(then)));
    }
  }

  void compare_champions(const SubjectFigures& before, const SubjectFigures& now) {
    constexpr double band = champion_growth;
    const bool grew = now.worst_utilisation > band * before.worst_utilisation && now.worst_utilisation > 0.01;
    const bool shrank = before.worst_utilisation > band * now.worst_utilisation && before.worst_utilisation > 0.01;
    if (!same_arithmetic_ || (!grew && !shrank)) return;
    add(grew ? Direction::worse : Direction::neither, "worst", before.subject.property,
        fmt::format("worst known utilisation {}, in the baseline {}", short_number(now.worst_utilisation),
                    short_number(before.worst_utilisation)));
  }

  const Figures& before_;
  const Figures& now_;
  std::map<std::pair<std::string, std::string>, std::map<std::string, const SubjectFigures*>> now_subjects_;
  const KernelFigures* kernel_ = nullptr;  ///< that changes are about
  bool same_arithmetic_ = true;
  std::int64_t fewer_ = 0;  ///< properties with fewer cases, and one of them
  std::string example_;
  Comparison result_;
};

std::string about(const Difference& one) {
  const std::string kernel = fmt::format("{} in {}", one.kernel, one.dtype);
  return one.property.empty() ? kernel : fmt::format("{} by {}", one.property, kernel);
}

}  // namespace

std::int64_t Comparison::count(Direction direction) const {
  return std::ranges::count(differences, direction, &Difference::direction);
}

Comparison compare(const Figures& before, const Figures& now) {
  if (before.bred != now.bred)
    throw UsageError("one of the two runs is a fuzz campaign and the other is not; compare two of a kind");
  if (before.against != now.against) {
    throw UsageError(
        fmt::format("the two runs were compared with different kernels, {} and {}; compare runs of one --against",
                    in_quotes(before.against), in_quotes(now.against)));
  }
  const bool judged = std::ranges::any_of(before.subjects, [](const SubjectFigures& one) { return one.judged > 0; });
  if (!judged) throw UsageError("the baseline judged no case, so nothing could be worse; compare with a run that did");
  return Comparing(before, now).run();
}

ChangesInWords in_words(const Comparison& comparison) {
  ChangesInWords words;
  words.counts =
      fmt::format("{} worse, {} better, of {} properties that both runs have", comparison.count(Direction::worse),
                  comparison.count(Direction::better), comparison.subjects);
  words.noise = comparison.differences.empty() ? "Nothing lies beyond the noise between two runs of one kernel: "
                                               : "The noise between two runs of one kernel: ";
  if (comparison.bred) {
    words.noise += fmt::format("of campaigns, the worst known case counts as grown only by more than a factor of {}.",
                               short_number(champion_growth));
    return words;
  }
  words.noise += fmt::format(
      "errors count as grown only by a factor of {:.2f} or more, where chance does that in less than 1 of {:.0f} "
      "comparisons; a worst case only beyond what chance exceeds in 1 of {:.0f}",
      least_growth, 1 / noise_chance, 1 / worst_chance);
  if (std::ranges::find(comparison.differences, "arithmetic", &Difference::what) != comparison.differences.end()) {
    words.noise += fmt::format("; where another arithmetic is declared, errors only by more than a factor of {}",
                               short_number(octave_growth));
  }
  words.noise += '.';
  return words;
}

std::string line_of(const Difference& difference) {
  return fmt::format("{}: {}", one_line(about(difference)), one_line(difference.words));
}

std::string changes_text(const Comparison& comparison, const std::array<std::size_t, 3>& most) {
  constexpr std::array<std::string_view, 3> heads{"WORSE", "BETTER", "NOTE"};
  std::string text;
  for (const Direction direction : {Direction::worse, Direction::better, Direction::neither}) {
    const std::string_view head = heads.at(static_cast<std::size_t>(direction));
    const std::size_t limit = most.at(static_cast<std::size_t>(direction));
    std::size_t shown = 0;
    for (const Difference& one : comparison.differences) {
      if (one.direction != direction || shown++ >= limit) continue;
      text += fmt::format("{} {}\n", head, line_of(one));
    }
    if (limit > 0 && shown > limit) text += fmt::format("{} and {} more\n", head, shown - limit);
  }
  return text;
}

std::string changes_json(const Comparison& comparison, std::span<const Trend> trends,
                         std::span<const std::string> names) {
  JsonWriter json;
  json.begin_object().member("schema", "attest-comparison/1");
  json.member("worse", comparison.count(Direction::worse)).member("better", comparison.count(Direction::better));
  json.member("subjects", comparison.subjects).key("changes").begin_array();
  for (const Difference& one : comparison.differences) {
    json.begin_object().member("direction", name_of(one.direction)).member("what", one.what);
    json.member("kernel", one.kernel).member("dtype", one.dtype).member("property", one.property);
    json.member("words", one.words).end_object();
  }
  json.end_array();
  if (!trends.empty()) write_trends(json.key("trends"), trends, names);
  return json.end_object().text() + '\n';
}

}  // namespace attest
