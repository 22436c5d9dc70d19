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
    for (squeeze_ = 0; squeeze_ <= most_squeeze; ++squeeze_) {
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
  static constexpr int most_squeeze = 5;

  void compose(Ending ending, double seconds) {
    kernels();
    text_ += labelled("",
                      fmt::format("({}, exit status {}; attest {}, seed {}, {} judged cases in {})",
                                  conclusion_.headline, conclusion_.exit_status, version(), summary_.seed,
                                  with_commas(summary_.judged()), duration_text(seconds)),
                      2, place_.width);
    causes();
    undecided();
    text_ += '\n';
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
      tell(cause, std::min(2, squeeze_ + (known ? 1 : 0)));
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
    if (brief < 2 && !cause.smallest.empty()) add("smallest", cause.smallest, brief == 0 ? 3 : 1);
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

  void coverage() {
    std::string words = conclusion_.coverage;
    double worst = 0;
    for (const KernelSummary& kernel : summary_.kernels)
      if (kernel.verdict == Outcome::held && kernel.worst() != nullptr)
        worst = std::max(worst, kernel.worst()->tally.worst_utilisation);
    if (worst > 0) words += fmt::format("; of what held the worst error is {} of what is allowed", short_number(worst));
    add("coverage", words, 4);
    strips();
    if (!conclusion_.quick_look.empty()) add("", conclusion_.quick_look, 2);
  }

  /// How many cases there were of each length, from ▁ to █ by their logarithm; · where there was none.
  void strips() {
    std::array<std::array<std::int64_t, length_ranges.size()>, 2> counts{};
    for (const KernelSummary& kernel : summary_.kernels) {
      const ShapeCounts shapes = kernel.shapes();
      for (const auto& [index, count] : shapes.of(ShapeFacet::lengths)) {
        counts[0][static_cast<std::size_t>(index) / length_ranges.size()] += count.judged;
        counts[1][static_cast<std::size_t>(index) % length_ranges.size()] += count.judged;
      }
    }
    std::int64_t most = 1;
    for (const auto& strip : counts) most = std::max(most, *std::ranges::max_element(strip));
    if (most == 1) return;
    const auto drawn = [&](const auto& strip) {
      static constexpr std::string_view blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
      std::string all;
      for (const std::int64_t count : strip) {
        const double share = std::log2(static_cast<double>(count) + 1) / std::log2(static_cast<double>(most) + 1);
        all += count == 0 ? "·" : blocks[std::min<std::size_t>(static_cast<std::size_t>(share * 8), 7)];
      }
      return all;
    };
    add("shapes", fmt::format("M {}  N {}  of 0, 1, up to 16, 64, 128, 512, 4096, 65536, more; · never",
                              drawn(counts[0]), drawn(counts[1])));
  }

  void tolerances() {
    constexpr std::size_t most = 4;
    std::size_t told = 0;
    for (const ToleranceRow& row : rows_for_suites(tolerance_rows(summary_, journal_))) {
      const auto kernel = std::ranges::find_if(
          summary_.kernels, [&](const KernelSummary& one) { return one.id == row.kernel && one.dtype == row.dtype; });
      // What is wrong has errors that nobody wants to accept; and of many kernels the page has them.
      if (kernel == summary_.kernels.end() || kernel->verdict != Outcome::held || !row.is_ordinary()) continue;
      if (!std::isfinite(row.tolerance.atol) || !row.caution().empty()) continue;
      if (++told > most || kernels_named() > 1) return;
      add(told == 1 ? "tolerance" : "",
          fmt::format("{}  atol {}  rtol {}{}", one_line(row.dtype), number_text(row.tolerance.atol),
                      number_text(row.tolerance.rtol),
                      row.missed_of == 0
                          ? ""
                          : fmt::format("  (misses {} of {} planted faults)", row.missed.size(), row.missed_of)));
    }
  }
  /// What a run without --kernel shows whoever has just installed this, and what comes next.
  void what_ours_show() {
    if (!place_.of_ours) return;
    const bool known = conclusion_.known && !conclusion_.known->expected.empty();
    if (conclusion_.exit_status == 0) {
      add("shown", fmt::format("the set-up works, and Attest's own kernels are right{}",
                               known ? "; what is wrong in PyTorch 1.13 is known: reports/findings.md" : ""));
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
  int squeeze_ = 0;  ///< how much is left out
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
