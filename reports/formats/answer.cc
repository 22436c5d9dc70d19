#include "reports/formats/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "core/problem/shape_class.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "reports/results/cause_words.h"
#include "reports/results/combinations.h"
#include "reports/results/other_rules.h"
#include "reports/results/otherwise.h"
#include "reports/results/shapes_beyond.h"
#include "reports/results/tolerance.h"
#include "reports/run/progress.h"
#include "reports/run_folder/version.h"
#include "reports/text/text.h"
#include "reports/text/wrap.h"

namespace attest {
namespace {

/// Where the texts behind labels begin.
constexpr std::size_t label_columns = 12;
/// Causes that are told whole; and those of which there is a line or two each.
constexpr std::size_t most_causes = 4;

std::string_view verdict_word(Outcome verdict) {
  switch (verdict) {
    case Outcome::violated:
      return "WRONG";
    case Outcome::held:
      return "right where judged";
    case Outcome::inconclusive:
      return "UNDECIDED";
    case Outcome::skipped:
    case Outcome::excused:
      break;
  }
  return "NOT TESTED";
}
std::string_view mark_of(Outcome verdict) {
  return verdict == Outcome::violated ? "✗" : verdict == Outcome::held ? "✓" : "?";
}

/// A kernel's dtypes of one verdict.
struct Line {
  Outcome verdict;  ///< skipped where no case was judged
  bool known;       ///< it is violated as was expected
  std::string kernel;
  std::vector<std::string> dtypes;
};

class Answer {
 public:
  Answer(const Summary& summary, const Journal& journal, const Conclusion& conclusion, const AnswerPlace& place)
      : summary_(summary), journal_(journal), conclusion_(conclusion), place_(place) {}

  /// As full as fits on one screen.
  std::string text(Ending ending, double seconds) {
    constexpr std::ptrdiff_t most_lines = 25;
    // What is least needed goes first: how to read the shapes, what other tolerances do.
    for (int level = 0; level <= most_squeeze; ++level) {
      terse_ = std::min(level, 2), squeeze_ = std::max(0, level - 2);
      text_.clear();
      compose(ending, seconds);
      if (std::ranges::count(text_, '\n') <= most_lines) break;
    }
    return std::move(text_);
  }
  std::string text_of_causes() {
    causes();
    return std::move(text_);
  }

 private:
  static constexpr int most_squeeze = 7;

  void compose(Ending ending, double seconds) {
    kernels();
    text_ += labelled("",
                      fmt::format("({}, exit status {}; attest {}, seed {}, {} judged cases in {})",
                                  conclusion_.headline, conclusion_.exit_status, version(), summary_.seed,
                                  with_commas(summary_.judged()), duration_text(seconds)),
                      2, place_.width);
    causes();
    // What a run that stopped early did not come to is no news.
    if (ending != Ending::failed_fast) undecided();
    text_ += '\n';
    otherwise();
    coverage();
    tolerances();
    notes();
    how_it_ended(ending);
    what_ours_show();
    add_line("report", (std::filesystem::path(place_.folder) / "report.html").string());
    add_line("all of it", fmt::format("{} findings {}", command_name(), shell_quoted(place_.folder)));
  }

  void add(std::string_view label, std::string_view said, std::size_t most = 100) {
    text_ += labelled(label, said, label_columns, place_.width, most);
  }

  /// What one types or opens is copied, so it stands on one line, however long.
  void add_line(std::string_view label, const std::string& line) {
    text_ += fmt::format("  {:<{}}{}\n", label, label_columns - 2, line);
  }

  /// Kernels by their verdicts, the wrong ones first; of right ones that are many the names alone.
  void kernels() {
    std::vector<Line> lines;
    for (const KernelSummary& kernel : summary_.kernels) {
      const bool known = is_known(kernel);
      const Outcome verdict =
          kernel.judged() == 0 && kernel.verdict != Outcome::violated ? Outcome::skipped : kernel.verdict;
      const auto same = std::ranges::find_if(lines, [&](const Line& line) {
        return line.kernel == kernel.name && line.verdict == verdict && line.known == known;
      });
      if (same == lines.end())
        lines.push_back({verdict, known, kernel.name, {kernel.dtype}});
      else
        same->dtypes.push_back(kernel.dtype);
    }
    const auto rank = [](Outcome verdict) {
      return verdict == Outcome::violated ? 0 : verdict == Outcome::inconclusive ? 1 : verdict == Outcome::held ? 2 : 3;
    };
    const auto many = [&](Outcome verdict) { return std::ranges::count(lines, verdict, &Line::verdict) > 4; };
    std::map<std::string, int> lines_of;
    for (const Line& line : lines) ++lines_of[line.kernel];
    std::map<int, std::vector<Line>> by_rank;
    for (Line& line : lines) by_rank[rank(line.verdict)].push_back(std::move(line));
    for (const auto& [ranked, of] : by_rank) {
      const Outcome verdict = of.front().verdict;
      if (!many(verdict) && of.size() <= 4) {
        for (const Line& line : of)
          text_ += labelled(mark_of(verdict),
                            fmt::format("{}  {}  {}{}", one_line(line.kernel),
                                        one_line(fmt::format("{}", fmt::join(line.dtypes, " "))), verdict_word(verdict),
                                        verdict == Outcome::violated && line.known ? ", as is known" : ""),
                            4, place_.width);
        continue;
      }
      std::string names;
      for (const Line& line : of) {
        // Of a kernel with two verdicts it takes the dtypes to tell which has which.
        const bool apart = lines_of.at(line.kernel) > 1;
        names += fmt::format(
            "{}{}{}", names.empty() ? "" : ", ", one_line(line.kernel),
            apart ? fmt::format(" in {}", one_line(fmt::format("{}", fmt::join(line.dtypes, " and ")))) : "");
      }
      text_ += labelled(mark_of(verdict), fmt::format("{}: {}", verdict_word(verdict), names), 4, place_.width,
                        /*most=*/4);
    }
  }

  void causes() {
    std::size_t told = 0;
    const std::vector<CauseWords> all = words_of_causes(summary_, place_.folder, place_.folder);
    for (const CauseWords& cause : all) {
      if (told == most_causes - static_cast<std::size_t>(std::max(0, squeeze_ - 2))) break;
      ++told;
      text_ += '\n';
      const bool known = std::ranges::all_of(summary_.kernels, [&](const KernelSummary& kernel) {
        return kernel.id != cause.cause->kernel || is_known(kernel);
      });
      // What else there is to say goes first, as long as one mistake alone is told.
      const int brief = all.size() > 1 ? squeeze_ : squeeze_ > 3 ? 2 : std::min(squeeze_, 1);
      tell(cause, std::min(2, brief + (known ? 1 : 0)));
    }
    if (summary_.causes.size() > told) add("", fmt::format("and {} more causes", summary_.causes.size() - told));
    if (!summary_.causes.empty() || summary_.verdict != Outcome::violated) return;
    // Of a run that was interrupted, or compared two kernels: the first finding of each kernel.
    for (const KernelSummary& kernel : summary_.kernels) {
      for (const PropertySummary& property : kernel.properties) {
        if (property.findings.empty() || property.verdict != Outcome::violated || told == most_causes) continue;
        ++told;
        text_ += '\n';
        add("what",
            fmt::format("{} in {}: {}", one_line(property.name), one_line(kernel.dtype),
                        one_line(property.findings[0].verdict.reason)),
            4);
        add_line("replay", replay_of(property.findings[0]));
        break;
      }
    }
  }

  /// `brief`: 0 everything, 1 without the numbers, 2 what, when and replay alone.
  void tell(const CauseWords& cause, int brief) {
    if (!cause.title.empty()) add(cause.title, cause.of);
    add("what", cause.what, brief == 0 && cause.why.empty() ? 4 : 2);
    if (brief < 2 && !cause.why.empty()) add("why", cause.why, brief == 0 ? 4 : 2);
    if (!cause.when.empty()) add("when", cause.when);
    if (brief < 2 && !cause.smallest.empty()) add("smallest", cause.smallest, brief == 0 ? 3 : 2);
    if (brief < 1 && !cause.found.empty()) add("", cause.found, 3);
    if (brief < 1 && !cause.right.empty()) add("right", cause.right, 2);
    if (!cause.replay.empty()) add_line("replay", cause.replay);
    if (brief < 2) add("fails", cause.fails, brief == 0 ? 2 : 1);
  }

  [[nodiscard]] std::string replay_of(const FindingRecord& finding) const {
    return fmt::format("{} replay {}", command_name(),
                       shell_quoted((std::filesystem::path(place_.folder) / finding.case_file).string()));
  }

  /// What leaves a verdict open, the first of each kernel.
  void undecided() {
    constexpr std::size_t most = 3;
    // Beside what is wrong it is no answer, and a kernel's dtypes leave open the same.
    const std::size_t lines = squeeze_ > 1 ? 1 : summary_.causes.empty() ? 4 : 2;
    std::set<std::string> kernels;
    std::size_t told = 0;
    for (const KernelSummary& kernel : summary_.kernels) {
      if (kernel.verdict != Outcome::inconclusive) continue;
      std::string why = kernel.left_out;
      for (const PropertySummary& property : kernel.properties)
        if (why.empty() && property.verdict == Outcome::inconclusive)
          why = fmt::format("{}: {}", property.name, property.reason);
      if (why.empty() || !kernels.insert(kernel.id).second) continue;
      if (++told > most) continue;
      if (told == 1) text_ += '\n';
      add("undecided", fmt::format("{} in {}: {}", one_line(kernel.name), one_line(kernel.dtype), one_line(why)),
          lines);
    }
    if (told > most) add("", fmt::format("and {} more kernels", told - most));
    for (const KernelRecord& kernel : summary_.not_started)
      add("skipped", fmt::format("{}: {}", one_line(kernel.id), one_line(kernel.not_started)), 2);
  }

  /// What a kernel that is wrong does right all the same.
  void otherwise() {
    if (summary_.verdict != Outcome::violated || !summary_.against.empty()) return;
    if (squeeze_ > 2 && !all_violated()) return;
    const OtherwiseRight right = otherwise_right(summary_);
    std::string words = right.cases == 0 ? "right in no judged case"
                                         : fmt::format("right where judged: {} cases", with_commas(right.cases));
    if (right.share > 0 && right.share < 1)
      words += fmt::format(", 99 % of them within {} of what is allowed", short_number(right.share));
    if (all_violated()) words += "; " + properties_text(summary_);
    add("otherwise", words, squeeze_ > 1 ? 2 : 3);
  }
  [[nodiscard]] bool all_violated() const {
    return std::ranges::all_of(summary_.kernels,
                               [](const KernelSummary& kernel) { return kernel.verdict == Outcome::violated; });
  }

  void coverage() {
    // Of kernels that are all wrong `otherwise` says it.
    if (!all_violated() || !summary_.against.empty()) {
      std::string words = covered_text(summary_);
      double worst = 0;
      for (const KernelSummary& kernel : summary_.kernels)
        if (kernel.verdict == Outcome::held && kernel.worst() != nullptr)
          worst = std::max(worst, kernel.worst()->tally.worst_utilisation);
      if (worst > 0)
        words += fmt::format("; of what held the worst error is {} of what is allowed",
                             short_number(worst) == "1" ? "all" : short_number(worst));
      // A manifest that is silent about what the kernel has keeps it from being sent that.
      if (const std::string needs = needs_text(summary_); !needs.empty()) words += "; " + needs;
      add("coverage", words, 4);
    }
    strips();
    never();
    combinations();
    if (!conclusion_.quick_look.empty()) add("", conclusion_.quick_look, squeeze_ > 2 ? 1 : 2);
  }

  /// Judged cases of a facet, by the class that `of` makes of its number.
  template <std::size_t classes, class Of>
  [[nodiscard]] std::array<std::int64_t, classes> counts_of(ShapeFacet facet, Of of) const {
    std::array<std::int64_t, classes> counts{};
    for (const KernelSummary& kernel : summary_.kernels) {
      const ShapeCounts shapes = kernel.shapes();
      for (const auto& [index, count] : shapes.of(facet)) counts[of(std::size_t{index})] += count.judged;
    }
    return counts;
  }

  /// How many cases there were of each length, width and number of heads, from ▁ to █ by their logarithm; · where there
  /// was none.
  void strips() {
    constexpr std::size_t lengths = length_ranges.size();
    const auto queries = counts_of<lengths>(ShapeFacet::lengths, [](std::size_t index) { return index / lengths; });
    const auto keys = counts_of<lengths>(ShapeFacet::lengths, [](std::size_t index) { return index % lengths; });
    const auto itself = [](std::size_t index) { return index; };
    const auto widths = counts_of<head_dim_ranges.size()>(ShapeFacet::head_dim, itself);
    const auto heads = counts_of<head_ranges.size()>(ShapeFacet::heads, itself);
    const std::int64_t most = std::max(std::ranges::max(queries), std::ranges::max(keys));
    if (most <= 1) return;
    const auto drawn = [](const auto& strip) {
      static constexpr std::string_view blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
      const double largest = std::log2(static_cast<double>(std::ranges::max(strip)) + 1);
      std::string all;
      for (const std::int64_t count : strip) {
        const double share = std::log2(static_cast<double>(count) + 1) / largest;
        all += count == 0 ? "·" : blocks[std::min<std::size_t>(static_cast<std::size_t>(share * 8), 7)];
      }
      return all;
    };
    add("shapes",
        fmt::format("M {}  N {}  dk {}  H {}  · never", drawn(queries), drawn(keys), drawn(widths), drawn(heads)));
    if (terse_ > 0) return;
    add("", fmt::format("M, N {}; dk {}; H {}", range_words(length_ranges), range_words(head_dim_ranges),
                        range_words(head_ranges)));
  }
  /// "0, 1, to 16, to 64, more".
  template <std::size_t count>
  static std::string range_words(const std::array<ExtentRange, count>& ranges) {
    std::string words;
    for (const ExtentRange& range : ranges) {
      words += words.empty() ? "" : ", ";
      words += range.most == any_extent ? "more" : fmt::format("{}{}", range.least < range.most ? "–" : "", range.most);
    }
    return words;
  }

  /// Beyond what no case was judged, and what to add to the command for that.
  void never() {
    const std::string beyond = never_judged(summary_);
    if (beyond.empty()) return;
    std::string words = "never judged: " + beyond;
    const std::optional<Reach> judged = largest_judged(summary_);
    const auto asked = std::ranges::find_if(summary_.kernels, [](const auto& one) { return one.judged() > 0; });
    // Of captured cases and of campaigns it is no option.
    if (!summary_.drawn_whole || !judged || asked == summary_.kernels.end()) return add("", words, 2);
    const std::optional<Manifest> manifest = manifest_of(journal_, asked->id);
    if (manifest && manifest->attention) {
      const std::vector<Extents> shapes = shapes_beyond(*judged, *manifest, both_judged(summary_));
      const std::size_t shown = terse_ > 1 ? 1 : shapes.size();
      for (std::size_t i = 0; i < std::min(shown, shapes.size()); ++i)
        words += fmt::format("{} {}", i == 0 ? "; for some of it add" : "", shape_option(shapes[i]));
    }
    add("", words, summary_.causes.empty() || squeeze_ < 2 ? 3 : 1);
  }

  /// What of the variants was judged with no case of something else.
  void combinations() {
    if (squeeze_ > (conclusion_.exit_status == 1 ? 1 : 2)) return;
    const std::string words = combinations_text(combinations_in(summary_));
    if (!words.empty()) add("", words, 2);
    if (const std::string pairs = pairs_text(pairs_in(summary_)); !pairs.empty()) add("", pairs, 2);
  }

  void tolerances() {
    constexpr std::size_t most = 4;
    std::size_t told = 0;
    for (const ToleranceRow& row : rows_for_suites(tolerance_rows(summary_, journal_))) {
      const auto kernel = std::ranges::find_if(
          summary_.kernels, [&](const KernelSummary& one) { return one.id == row.kernel && one.dtype == row.dtype; });
      if (kernel == summary_.kernels.end() || !row.is_ordinary()) continue;
      // Of what is wrong in most cases there is hardly an error that anybody wants to accept.
      const bool wrong = kernel->verdict == Outcome::violated;
      if (kernel->verdict != Outcome::held && !(wrong && squeeze_ == 0)) continue;
      if (!std::isfinite(row.tolerance.atol) || !row.caution().empty()) continue;
      // Of many kernels the page has them.
      if (++told > most || kernels_named() > 1) return;
      const std::string beside = terse_ > 0 ? "" : beside_pytorch(row);
      std::string missed =
          row.missed_of == 0 ? "" : fmt::format("misses {} of {} planted faults; ", row.missed.size(), row.missed_of);
      missed += beside.empty() ? "" : beside + "; ";
      if (!missed.empty()) missed.resize(missed.size() - 2);
      add(told == 1 ? "tolerance" : "",
          fmt::format("{}  atol {}  rtol {}{}{}", one_line(row.label()), number_text(row.tolerance.atol),
                      number_text(row.tolerance.rtol), wrong ? ", by its right answers" : "",
                      missed.empty() ? "" : fmt::format("  ({})", missed)));
    }
  }
  /// What a run without --kernel shows whoever has just installed this, and what comes next.
  void what_ours_show() {
    if (!place_.of_ours) return;
    const bool known = conclusion_.known && !conclusion_.known->expected.empty();
    if (conclusion_.exit_status == 0) {
      add("shown", fmt::format("the set-up works, and Attest's own kernels are right{}",
                               known ? "; what is wrong in PyTorch is known: reports/findings.md" : ""));
    }
    add_line("next", fmt::format("{} check --kernel 'exec:python3 mine.py'  (or ./libmine.so)", command_name()));
    add_line("", fmt::format("{} init DIR  writes one to begin with", command_name()));
  }
  /// All that is violated of the kernel in that dtype is known.
  [[nodiscard]] bool is_known(const KernelSummary& kernel) const {
    return std::ranges::all_of(kernel.properties, [&](const PropertySummary& property) {
      return property.verdict != Outcome::violated || conclusion_.of(kernel, property) == Counted::expected;
    });
  }
  [[nodiscard]] std::size_t kernels_named() const {
    std::set<std::string> ids;
    for (const KernelSummary& kernel : summary_.kernels) ids.insert(kernel.id);
    return ids.size();
  }

  void notes() {
    const std::size_t most = squeeze_ > 1 ? 1 : 2;
    std::vector<std::string> lines = warning_lines(summary_.scarce);
    for (const KernelNote& note : summary_.notes)
      lines.push_back(fmt::format("{}: {}", one_line(note.kernel), one_line(note.text)));
    if (squeeze_ > 2 && lines.size() > 1) {
      add("note", fmt::format("{} notes stand in the report", lines.size()));
      return;
    }
    for (std::size_t i = 0; i < std::min(most, lines.size()); ++i) {
      std::string line = lines[i];
      while (!line.empty() && line.back() == '\n') line.pop_back();
      // What the lines begin with elsewhere is the label here.
      for (const std::string_view word : {"warning: ", "note on ", "note: "})
        if (line.starts_with(word)) line.erase(0, word.size());
      add("note", line, squeeze_ > 0 ? 1 : 2);
    }
    if (lines.size() > most) add("", fmt::format("and {} more notes", lines.size() - most));
  }

  void how_it_ended(Ending ending) {
    if (ending == Ending::interrupted)
      add("ended", "interrupted: the journal is complete to the last batch, --resume goes on");
    if (ending == Ending::out_of_time) add("ended", "the time is over");
    if (ending == Ending::failed_fast) add("ended", "stopped at the first violation");
  }

  const Summary& summary_;
  const Journal& journal_;
  const Conclusion& conclusion_;
  const AnswerPlace& place_;
  std::string text_;
  int terse_ = 0;    ///< how much of what is nice to know is left out, before anything else is
  int squeeze_ = 0;  ///< how much of the rest is
};

}  // namespace

std::string answer_of(const Summary& summary, const Journal& journal, const Conclusion& conclusion, Ending ending,
                      double seconds, const AnswerPlace& place) {
  return Answer(summary, journal, conclusion, place).text(ending, seconds);
}

std::string causes_text(const Summary& summary, const Journal& journal, const Conclusion& conclusion,
                        const AnswerPlace& place) {
  return Answer(summary, journal, conclusion, place).text_of_causes();
}

}  // namespace attest
